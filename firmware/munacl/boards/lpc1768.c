/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* NXP LPC1768 as on the mbed board: 12 MHz crystal, 96 MHz, UART0 at P0.2 and P0.3 (the board's USB
 * port). Numbers are of UM10360. */
#include "board.h"
#include "reset_cause.h"

#define REGISTER(at) (*(volatile uint32_t *)(at))
/* Chapter 3 to 5: system control. */
#define FLASHCFG REGISTER(0x400fc000)
#define PLL0CON REGISTER(0x400fc080)
#define PLL0CFG REGISTER(0x400fc084)
#define PLL0STAT REGISTER(0x400fc088)
#define PLL0FEED REGISTER(0x400fc08c)
#define PCONP REGISTER(0x400fc0c4)
#define CCLKCFG REGISTER(0x400fc104)
#define CLKSRCSEL REGISTER(0x400fc10c)
#define SCS REGISTER(0x400fc1a0)
/* Chapter 8: pins. */
#define PINSEL0 REGISTER(0x4002c000)
/* Chapter 14: UART0. */
#define RBR REGISTER(0x4000c000)
#define THR RBR
#define DLL RBR
#define DLM REGISTER(0x4000c004)
#define FCR REGISTER(0x4000c008)
#define LCR REGISTER(0x4000c00c)
#define LSR REGISTER(0x4000c014)
#define FDR REGISTER(0x4000c028)

enum { HZ = 96000000, LOCKED = 1u << 26, CONNECTED = 1u << 25, ENABLED = 1u << 24 };
enum { ENABLE = 1, CONNECT = 2 }; /* PLL0CON */

const char munacl_board_name[] = "mbed-lpc1768";

static void feed(void)
{
    PLL0FEED = 0xaa; /* section 4.5.8 */
    PLL0FEED = 0x55;
}

void munacl_board_clocks(void)
{
    SCS |= 1u << 5; /* OSCEN */
    while (!(SCS & 1u << 6)) {} /* OSCSTAT */
    FLASHCFG = (FLASHCFG & ~0xf000u) | 4u << 12; /* five clocks, up to 100 MHz (table 49) */
    PLL0CON &= ENABLE; /* section 4.5.13: disconnect, then off, each with a feed of its own */
    feed();
    PLL0CON = 0;
    feed();
    CLKSRCSEL = 1; /* the crystal */
    PLL0CFG = 11; /* M = 12, N = 1: 2 * 12 * 12 MHz = 288 MHz */
    feed();
    PLL0CON = ENABLE;
    feed();
    CCLKCFG = 2; /* by 3 */
    while (!(PLL0STAT & LOCKED)) {}
    PLL0CON = ENABLE | CONNECT;
    feed();
    while ((PLL0STAT & (CONNECTED | ENABLED)) != (CONNECTED | ENABLED)) {}
}

void munacl_board_uart(void)
{
    PCONP |= 1u << 3; /* UART0 */
    PINSEL0 = (PINSEL0 & ~0xf0u) | 0x50; /* TXD0, RXD0 */
    /* Its clock is the core's by 4, as after a reset: PCLKSEL0 may not change once PLL0 is
     * connected (NXP's errata sheet of the LPC176x, PCLKSELx.1). Section 14.4.12.1: 24 MHz /
     * (16 * 13) = 115,385 baud, 0.16 % too fast. */
    LCR = 0x83;
    DLL = 13;
    DLM = 0;
    FDR = 0x10;
    LCR = 3;
    FCR = 7;
}

uint32_t munacl_board_hz(void)
{
    return HZ;
}

int munacl_board_is_power_up(void)
{
    return munacl_lpc1768_is_power_up();
}

/* The serial number is the boot ROM's to tell: its entry with command 58, and where it puts the
 * result and four words (section 32.8). */
size_t munacl_board_id(unsigned char *id)
{
    uint32_t command[5] = {58}, result[5] = {1};
    ((void (*)(uint32_t *, uint32_t *))0x1fff1ff1)(command, result);
    if (result[0] != 0)
        return 0;
    for (size_t i = 0; i < 16; i++)
        id[i] = (unsigned char)(result[1 + i / 4] >> 8 * (i % 4));
    return 16;
}

void munacl_board_send(char c)
{
    while (!(LSR & 1u << 5)) {}
    THR = (unsigned char)c;
}

char munacl_board_receive(void)
{
    while (!(LSR & 1)) {}
    return (char)RBR;
}
