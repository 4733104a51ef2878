/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The console of a program that runs on a board as well as under a debugger or in the simulator:
 * semihosting where somebody answers it, otherwise the board's UART. Without a debugger BKPT is a
 * HardFault (DDI 0403E section C1.6.4), whose handler steps over it and says so. */
#include "board.h"
#include "semihosting.h"
#include "start.h"

#define AIRCR (*(volatile uint32_t *)0xe000ed0c)

enum { UNKNOWN, SEMIHOSTING, UART };
static uint8_t console;
static volatile uint32_t nobody_answered;

/* Called with the stacked registers: r0 to r3, r12, lr, pc, xPSR. */
__attribute__((used)) static void fault(uint32_t *stacked)
{
    enum { BKPT_AB = 0xbeab };
    if (*(const uint16_t *)stacked[6] != BKPT_AB) {
        console = UART;
        munacl_print("# fault at ");
        munacl_print_number(stacked[6]);
        munacl_print("\n");
        munacl_leave(99);
    }
    nobody_answered = 1;
    stacked[0] = UINT32_MAX;
    stacked[6] += 2;
}

__attribute__((naked)) void munacl_fault(void)
{
    __asm__("mov r0, sp\n b fault");
}
#ifdef MUNACL_DEVICE_HEADER
void HardFault_Handler(void) __attribute__((alias("munacl_fault")));
#endif

void munacl_console_begin(void)
{
    semihosting(SYS_WRITE0, "");
    console = nobody_answered ? UART : SEMIHOSTING;
    munacl_board_clocks();
    if (console == UART)
        munacl_board_uart();
}

const char *munacl_console_board(void)
{
    return console == UART ? munacl_board_name : "none";
}

uint32_t munacl_console_hz(void)
{
    return console == UART ? munacl_board_hz() : 0;
}

int munacl_console_is_power_up(void)
{
    return console == UART && munacl_board_is_power_up();
}

void munacl_print(const char *text)
{
    if (console != UART) {
        semihosting(SYS_WRITE0, text);
        return;
    }
    for (; *text; text++) {
        if (*text == '\n')
            munacl_board_send('\r');
        munacl_board_send(*text);
    }
}

int munacl_read(void)
{
    return console == UART ? (unsigned char)munacl_board_receive() : semihosting(SYS_READC, 0);
}

/* On a board: waits for a character, then starts the program again. */
void munacl_leave(int code)
{
    if (console == UART) {
        munacl_print("# left with code ");
        munacl_print_number((uint32_t)code);
        munacl_print("; send a character for another run\n");
        munacl_board_receive();
        AIRCR = 0x05fa0004; /* SYSRESETREQ, with its key (DDI 0403E section B3.2.6) */
        for (;;) {}
    }
    semihosting_exit(code);
    for (;;) {}
}
