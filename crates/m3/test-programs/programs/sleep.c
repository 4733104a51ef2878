/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* WFI and sleep-on-exit to the instruction; QEMU may wake at any time. */
#include <stdint.h>

void print(const char *text);
void print_hex(uint32_t value);

#define REGISTER(at) (*(volatile uint32_t *)(at))
#define SYST_CSR REGISTER(0xe000e010)
#define SYST_RVR REGISTER(0xe000e014)
#define SYST_CVR REGISTER(0xe000e018)
#define SCR REGISTER(0xe000ed10)

static volatile uint32_t ticks, wanted;

void sys_tick(void)
{
    ticks++;
    if (ticks == wanted) {
        SYST_CSR = 0;
        SCR = 0; /* disables sleep-on-exit */
    }
}

static void begin(uint32_t scr)
{
    SYST_RVR = 9999;
    SYST_CVR = 0;
    ticks = 0, wanted = 6;
    SCR = scr;
    SYST_CSR = 7;
}

int main(void)
{
    uint32_t sleeps = 0;
    begin(0);
    while (ticks < wanted) {
        __asm__ volatile("wfi");
        sleeps++;
    }
    print_hex(sleeps), print(" sleeps for six ticks\n");
    begin(2); /* SLEEPONEXIT */
    __asm__ volatile("wfi");
    print_hex(ticks), print(" ticks before the thread goes on\n");
    return 0;
}
