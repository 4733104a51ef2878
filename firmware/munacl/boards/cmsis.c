/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Any Cortex-M3 with a CMSIS device package: its clocks by SystemInit(), its console the ITM's port
 * 0, which a debug probe gives as a serial line (SWO). Compile with
 * -DMUNACL_DEVICE_HEADER='"LPC17xx.h"', and link the package's start-up code and system file in
 * place of start.c. */
#include MUNACL_DEVICE_HEADER

#include "board.h"

const char munacl_board_name[] = "cmsis-device";
/* CMSIS-Core: what a debugger sends through ITM_ReceiveChar(). */
volatile int32_t ITM_RxBuffer = ITM_RXBUFFER_EMPTY;

void munacl_board_clocks(void)
{
    SystemCoreClockUpdate(); /* start-up code has called SystemInit() */
}

/* The probe has started the ITM. */
void munacl_board_uart(void) {}

uint32_t munacl_board_hz(void)
{
    return SystemCoreClock;
}

/* Each family has registers of its own: define these two for yours (reset_cause.h has two). */
__attribute__((weak)) int munacl_board_is_power_up(void)
{
    return 0;
}

__attribute__((weak)) size_t munacl_board_id(unsigned char *id)
{
    (void)id;
    return 0;
}

void munacl_board_send(char c)
{
    ITM_SendChar((uint32_t)(unsigned char)c);
}

char munacl_board_receive(void)
{
    while (!ITM_CheckChar()) {}
    return (char)ITM_ReceiveChar();
}
