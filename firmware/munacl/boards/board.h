/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a board's file gives the console: its clocks and one UART, at 115,200 baud, 8 data bits, no
 * parity. */
#ifndef MUNACL_BOARD_H
#define MUNACL_BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Starts the clocks that the board runs at, with the flash's wait states. */
void munacl_board_clocks(void);
/* Starts the UART, after the clocks. */
void munacl_board_uart(void);
/* Its name in what is printed. */
extern const char munacl_board_name[];
/* The core's clock rate after munacl_board_clocks(). */
uint32_t munacl_board_hz(void);
/* Whether the last reset was a power-up; asked once. 0 where the board cannot tell. */
int munacl_board_is_power_up(void);
/* The chip's unique number, at most MUNACL_BOARD_ID bytes; how many, 0 where it has none that
 * can be read. */
size_t munacl_board_id(unsigned char *id);
void munacl_board_send(char c);
/* Waits for the next character. */
char munacl_board_receive(void);

enum { MUNACL_BAUD = 115200, MUNACL_BOARD_ID = 16 };

#endif
