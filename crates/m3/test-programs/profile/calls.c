/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of every kind, in numbers that the tests check. */
#include <setjmp.h>
#include <stdint.h>

#include "warifu_m3.h"

#define NOINLINE __attribute__((noipa))

static volatile uint32_t ticks, sink;

NOINLINE static void leaf(void)
{
    for (int i = 0; i < 10; i++)
        sink += 1;
}

NOINLINE static void tail(void)
{
    sink += 1;
    leaf();
}

NOINLINE static int recursive(int depth)
{
    volatile int here = depth;
    if (depth == 0)
        return 0;
    return recursive(depth - 1) + here;
}

NOINLINE static void wide(void)
{
    volatile uint8_t here[512];
    here[0] = 1;
    leaf();
    sink += here[0];
}

static jmp_buf place;

#pragma GCC diagnostic ignored "-Winfinite-recursion" /* it ends by longjmp */
NOINLINE static void jumps(int depth)
{
    if (depth == 0)
        longjmp(place, 1);
    jumps(depth - 1);
    sink += 1;
}

NOINLINE static void caught(void)
{
    if (setjmp(place) == 0)
        jumps(3);
    leaf();
}

NOINLINE static void handled(void)
{
    ticks++;
}

void sys_tick(void)
{
    handled();
    if (ticks == 5)
        *(volatile uint32_t *)0xe000e010 = 0;
}

NOINLINE static void waits(void)
{
    *(volatile uint32_t *)0xe000e014 = 5000;
    *(volatile uint32_t *)0xe000e018 = 0;
    *(volatile uint32_t *)0xe000e010 = 7;
    while (ticks < 5)
        __asm__ volatile("wfi");
}

int main(void)
{
    WARIFU_MARK("leaves");
    for (int i = 0; i < 3; i++)
        leaf();
    tail();
    WARIFU_MARK("deep");
    recursive(5);
    wide();
    WARIFU_MARK("jumps");
    caught();
    WARIFU_MARK("ticks");
    waits();
    return 0;
}
