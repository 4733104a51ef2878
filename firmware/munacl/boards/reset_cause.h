/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Whether the last reset was a power-up, after which memory holds what it came up with. Each clears
 * the chip's flags, so that the next reset shows its own cause: ask once. Untested on boards. */
#ifndef MUNACL_RESET_CAUSE_H
#define MUNACL_RESET_CAUSE_H

#include <stdint.h>

/* LPC1768: RSID (UM10360 section 3.4), POR is bit 0; a bit is cleared by writing 1. */
static inline int munacl_lpc1768_is_power_up(void)
{
    volatile uint32_t *rsid = (volatile uint32_t *)0x400fc180;
    uint32_t causes = *rsid;
    *rsid = causes;
    return causes & 1;
}

/* STM32F103: RCC_CSR (RM0008 section 7.3.10), PORRSTF is bit 27; RMVF, bit 24, clears all. */
static inline int munacl_stm32f103_is_power_up(void)
{
    volatile uint32_t *csr = (volatile uint32_t *)0x40021024;
    uint32_t causes = *csr;
    *csr = causes | 1u << 24;
    return causes >> 27 & 1;
}

#endif
