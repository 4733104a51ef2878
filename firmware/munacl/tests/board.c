/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A board's clocks and UART, started as without a debugger: for a trace of the registers
 * written. */
#include "board.h"
#include "start.h"

int main(void)
{
    munacl_board_clocks();
    munacl_board_uart();
    munacl_board_send('.');
    munacl_leave(0);
}
