/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef MUNACL_START_H
#define MUNACL_START_H
#include <stdint.h>

/* Finds out who takes the output, and starts the board's clocks. Nothing without
 * boards/console.c. */
void munacl_console_begin(void);
/* The board and the core's clock rate; "none" and 0 where semihosting answers. */
const char *munacl_console_board(void);
uint32_t munacl_console_hz(void);
/* Whether the last reset was a power-up, by the board's registers; 0 where nobody knows. */
int munacl_console_is_power_up(void);
void munacl_print(const char *text);
/* The next character of the console, -1 at the end. */
int munacl_read(void);
/* Decimal digits and a zero. */
void munacl_number(char text[11], uint32_t value);
void munacl_print_number(uint32_t value);
__attribute__((noreturn)) void munacl_leave(int code);
#endif
