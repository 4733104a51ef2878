/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Arm's mps2-an385: 25 MHz, UART 0 (CMSDK APB UART, DDI 0479D section 4.3). */
#include "board.h"

#define REGISTER(at) (*(volatile uint32_t *)(at))
#define DATA REGISTER(0x40004000)
#define STATE REGISTER(0x40004004)
#define CTRL REGISTER(0x40004008)
#define BAUDDIV REGISTER(0x40004010)

enum { HZ = 25000000, TX_FULL = 1, RX_FULL = 2 };

const char munacl_board_name[] = "mps2-an385";

void munacl_board_clocks(void) {}

void munacl_board_uart(void)
{
    BAUDDIV = HZ / MUNACL_BAUD;
    CTRL = 3;
}

uint32_t munacl_board_hz(void)
{
    return HZ;
}

int munacl_board_is_power_up(void)
{
    return 0;
}

size_t munacl_board_id(unsigned char *id)
{
    (void)id;
    return 0;
}

void munacl_board_send(char c)
{
    while (STATE & TX_FULL) {}
    DATA = (unsigned char)c;
}

char munacl_board_receive(void)
{
    while (!(STATE & RX_FULL)) {}
    return (char)DATA;
}
