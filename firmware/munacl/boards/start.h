/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef MUNACL_START_H
#define MUNACL_START_H
#include <stdint.h>

void munacl_print(const char *text);
/* The next character of the console, -1 at the end. */
int munacl_read(void);
void munacl_print_number(uint32_t value);
__attribute__((noreturn)) void munacl_leave(int code);
#endif
