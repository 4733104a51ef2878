/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* ST STM32F103 with an 8 MHz crystal (as on Blue Pill and Nucleo boards with one): 72 MHz, USART1
 * at PA9 and PA10. Numbers are of RM0008. */
#include "board.h"
#include "reset_cause.h"

#define REGISTER(at) (*(volatile uint32_t *)(at))
/* Section 3.3.3. */
#define FLASH_ACR REGISTER(0x40022000)
/* Section 7.3. */
#define RCC_CR REGISTER(0x40021000)
#define RCC_CFGR REGISTER(0x40021004)
#define RCC_APB2ENR REGISTER(0x40021018)
/* Section 9.2. */
#define GPIOA_CRH REGISTER(0x40010804)
/* Section 27.6. */
#define USART1_SR REGISTER(0x40013800)
#define USART1_DR REGISTER(0x40013804)
#define USART1_BRR REGISTER(0x40013808)
#define USART1_CR1 REGISTER(0x4001380c)

enum { HZ = 72000000, HSEON = 1 << 16, HSERDY = 1 << 17, PLLON = 1 << 24, PLLRDY = 1 << 25 };
enum { TXE = 1 << 7, RXNE = 1 << 5 };

const char munacl_board_name[] = "stm32f103";

void munacl_board_clocks(void)
{
    RCC_CR |= HSEON;
    while (!(RCC_CR & HSERDY)) {}
    FLASH_ACR = 0x12; /* prefetch, two wait states: 48 to 72 MHz */
    /* PLL 9 times the crystal, APB1 half of it (36 MHz at most). */
    RCC_CFGR = 7u << 18 | 1u << 16 | 4u << 8;
    RCC_CR |= PLLON;
    while (!(RCC_CR & PLLRDY)) {}
    RCC_CFGR |= 2; /* the PLL */
    while ((RCC_CFGR & 0xc) != 8) {}
}

void munacl_board_uart(void)
{
    RCC_APB2ENR |= 1u << 14 | 1u << 2; /* USART1, port A */
    /* PA9 alternate push-pull at 50 MHz, PA10 floating input. */
    GPIOA_CRH = (GPIOA_CRH & ~0xff0u) | 0x4b0;
    USART1_BRR = HZ / MUNACL_BAUD; /* in sixteenths: 115,200 exactly */
    USART1_CR1 = 1u << 13 | 1u << 3 | 1u << 2;
}

uint32_t munacl_board_hz(void)
{
    return HZ;
}

int munacl_board_is_power_up(void)
{
    return munacl_stm32f103_is_power_up();
}

/* Section 30.2: 96 bits. */
size_t munacl_board_id(unsigned char *id)
{
    const volatile unsigned char *from = (const volatile unsigned char *)0x1ffff7e8;
    for (size_t i = 0; i < 12; i++)
        id[i] = from[i];
    return 12;
}

void munacl_board_send(char c)
{
    while (!(USART1_SR & TXE)) {}
    USART1_DR = (unsigned char)c;
}

char munacl_board_receive(void)
{
    while (!(USART1_SR & RXNE)) {}
    return (char)USART1_DR;
}
