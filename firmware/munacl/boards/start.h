/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef MUNACL_START_H
#define MUNACL_START_H
#include <stdint.h>

void munacl_print(const char *text);
void munacl_print_number(uint32_t value);
__attribute__((noreturn)) void munacl_leave(int code);
#endif
