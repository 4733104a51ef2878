/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The stop reasons that the command line distinguishes, selected by -DEND=... */
#include <stdint.h>

void print(const char *text);

#define UNDEFINED 1
#define WILD_JUMP 2
#define NEVER_EXECUTED 3
#define NOT_THUMB 4
#define STACK_OVERFLOW 5
#define ENDLESS 6
#define LOAD_FROM_NOTHING 7
#define STORE_TO_NOTHING 8
#define BREAKPOINT 9
#define ASLEEP 10
#define RESET 11
#define NO_SUCH_CALL 12
#define DIVISION 13
#define CODE 14
#define HANDLED 15
#define FRAME 16

#if END == STACK_OVERFLOW
#pragma GCC diagnostic ignored "-Winfinite-recursion" /* intended */
__attribute__((noinline)) static int deeper(volatile int *outer)
{
    volatile int here[64];
    here[0] = *outer + 1;
    return deeper(here) + here[0];
}
#endif

#if END == FRAME
/* The low end of the frame is not accessed. */
__attribute__((noinline)) static int large(void)
{
    volatile char here[BYTES];
    here[BYTES - 1] = 1;
    return here[BYTES - 1];
}
#endif

#if END == WILD_JUMP || END == NEVER_EXECUTED || END == NOT_THUMB
__attribute__((noinline)) static void jump(uint32_t target)
{
    ((void (*)(void))target)();
}
#endif

#if END == HANDLED
void leave(int code);
void fault(void)
{
    leave(42);
}
#endif

int main(void)
{
    print("begins\n");
#if END == UNDEFINED || END == HANDLED
    __asm__ volatile("udf #7");
#elif END == WILD_JUMP
    jump(0x30000001);
#elif END == NEVER_EXECUTED
    jump(0xe000e001);
#elif END == NOT_THUMB
    jump(0x20000000);
#elif END == STACK_OVERFLOW
    volatile int start = 0;
    return deeper(&start);
#elif END == FRAME
    return large();
#elif END == ENDLESS
    for (;;) {}
#elif END == LOAD_FROM_NOTHING
    return *(volatile int *)0x60000000;
#elif END == STORE_TO_NOTHING
    *(volatile int *)0x60000000 = 1;
#elif END == BREAKPOINT
    __asm__ volatile("bkpt 3");
#elif END == ASLEEP
    __asm__ volatile("wfi");
#elif END == RESET
    *(volatile uint32_t *)0xe000ed0c = 0x05fa0004;
    for (;;) {}
#elif END == NO_SUCH_CALL
    __asm__ volatile("mov r0, #0x77\n bkpt 0xab" ::: "r0");
#elif END == DIVISION
    volatile int zero = 0;
    *(volatile uint32_t *)0xe000ed14 |= 1 << 4;
    return 7 / zero;
#elif END == CODE
    return 9;
#endif
    return 0;
}
