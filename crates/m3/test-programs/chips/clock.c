// SPDX-License-Identifier: Apache-2.0 OR MIT
// The waits of vendors' clock set-ups: enable a source, wait until it is ready, switch to it, wait
// until it is used. A wait that does not end is an error.
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))

static void wait(volatile uint32_t *at, uint32_t mask, uint32_t value)
{
    for (int tries = 0; (*at & mask) != value; tries++)
        if (tries > 1000)
            __builtin_trap();
}

#if defined(STM32F1)
#define RCC 0x40021000
#define FLASH_ACR REGISTER(0x40022000)
#define CFGR REGISTER(RCC + 4)
#elif defined(STM32L1) || defined(STM32F2)
#define RCC 0x40023800
#define FLASH_ACR REGISTER(0x40023c00)
#define CFGR REGISTER(RCC + 8)
#endif

int main(void)
{
#ifdef RCC
    volatile uint32_t *control = &REGISTER(RCC);
    FLASH_ACR = 0x32;
    wait(&FLASH_ACR, 2, 2);
    // The PLL is off until it is configured.
    *control &= ~(1u << 24);
    wait(control, 1u << 25, 0);
    *control |= 1u << 16;
    wait(control, 1u << 17, 1u << 17);
    *control |= 1u << 24;
    wait(control, 1u << 25, 1u << 25);
    CFGR = (CFGR & ~3u) | 2;
    wait(&CFGR, 0xc, 0x8);
    // The same by the bit-band alias, as HAL's macros do it.
    REGISTER(0x42000000 + (RCC - 0x40000000) * 32 + 16 * 4) = 0;
    wait(control, 1u << 17, 0);
#elif defined(LPC1768)
    volatile uint32_t *pll = &REGISTER(0x400fc088);
    REGISTER(0x400fc1a0) = 1u << 5;
    wait(&REGISTER(0x400fc1a0), 1u << 6, 1u << 6);
    REGISTER(0x400fc080) = 1;
    REGISTER(0x400fc08c) = 0xaa;
    REGISTER(0x400fc08c) = 0x55;
    wait(pll, 1u << 26, 1u << 26);
    REGISTER(0x400fc080) = 3;
    wait(pll, 3u << 24, 3u << 24);
    REGISTER(0x400fc000) = 0x403a;
    wait(&REGISTER(0x400fc000), 0xf000, 0x4000);
#elif defined(SAM3X)
    REGISTER(0x400e0a00) = 4u << 8;
    REGISTER(0x400e0c00) = 4u << 8;
    wait(&REGISTER(0x400e0a08), 1, 1);
    REGISTER(0x400e1a54) = 1u << 15;
    REGISTER(0x400e0620) = 0x00370809;
    wait(&REGISTER(0x400e0668), 1u << 16, 1u << 16);
    REGISTER(0x400e0628) = 0x200d3f01;
    wait(&REGISTER(0x400e0668), 1u << 1, 1u << 1);
    REGISTER(0x400e0630) = 0x12;
    wait(&REGISTER(0x400e0668), 1u << 3, 1u << 3);
#else
#error name the family
#endif
    return 0;
}
