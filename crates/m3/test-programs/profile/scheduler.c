/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Two threads on process stacks, switched by PendSV; `used_by_...` is how far each stack was
 * written. */
#include <stdint.h>

#define ICSR (*(volatile uint32_t *)0xe000ed04)
#define WORDS 128
#define FRESH 0xdeadbeef

static uint32_t stacks[2][WORDS];
__attribute__((used)) static uint32_t *saved[2];
__attribute__((used)) static volatile int current = -1;
volatile uint32_t used_by_first, used_by_second;
void leave(int code);

__attribute__((naked)) void pend_sv(void)
{
    __asm__ volatile("mrs r0, psp\nldr r3, =current\nldr r2, [r3]\ncmp r2, #0\nblt 1f\n"
                     "stmdb r0!, {r4-r11}\nldr r1, =saved\nstr r0, [r1, r2, lsl #2]\n"
                     "1: eor r2, r2, #1\nand r2, r2, #1\nstr r2, [r3]\nldr r1, =saved\n"
                     "ldr r0, [r1, r2, lsl #2]\n"
                     "ldmia r0!, {r4-r11}\nmsr psp, r0\nmvn lr, #2\nbx lr\n.ltorg");
}

static void yield(void)
{
    ICSR = 1u << 28;
    __asm__ volatile("dsb\nisb");
}

__attribute__((noinline)) static void deep(int calls)
{
    volatile int here[4];
    here[0] = calls;
    if (here[0] > 0)
        deep(calls - 1);
    else
        yield();
    here[1] = calls;
}

static void first(void)
{
    for (;;)
        deep(1);
}

static void second(void)
{
    for (int i = 0; i < 3; i++)
        deep(4);
    for (int thread = 0; thread < 2; thread++) {
        uint32_t fresh = 0;
        while (stacks[thread][fresh] == FRESH)
            fresh++;
        *(thread ? &used_by_second : &used_by_first) = 4 * (WORDS - fresh);
    }
    leave(0);
}

int main(void)
{
    void (*const threads[2])(void) = {first, second};
    for (int thread = 0; thread < 2; thread++) {
        for (int word = 0; word < WORDS; word++)
            stacks[thread][word] = FRESH;
        uint32_t *stack = stacks[thread] + WORDS;
        *--stack = 1u << 24;
        *--stack = (uint32_t)threads[thread];
        for (int word = 0; word < 6 + 8; word++)
            *--stack = 0;
        saved[thread] = stack;
    }
    yield();
    for (;;) {}
}
