/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* SysTick and WFI. The output does not depend on when a tick occurs, so that it is the same in
 * QEMU, which may see one more tick before the interrupt is disabled. */
#include <stdint.h>

void print(const char *text);
void print_hex(uint32_t value);

#define CSR (*(volatile uint32_t *)0xe000e010)
#define RVR (*(volatile uint32_t *)0xe000e014)
#define CVR (*(volatile uint32_t *)0xe000e018)

static volatile uint32_t ticks;

void sys_tick(void)
{
    ticks++;
}

int main(void)
{
    RVR = 9999;
    CVR = 0;
    CSR = 7;
    while (ticks < 5)
        __asm__ volatile("wfi");
    CSR = 5;
    uint32_t seen = ticks;
    CVR = 0;
    while (!(CSR >> 16 & 1)) {}
    uint32_t within = CVR;
    CSR = 0;
    print(seen >= 5 ? "ticks\n" : "too few\n");
    print(ticks == seen ? "no more\n" : "more\n");
    print(within <= 9999 ? " within\n" : " beyond\n");
    return 0;
}
