/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* main switches to a process stack by CONTROL and makes calls on it. */
#include <stdint.h>

static uint64_t stack[128];
void leave(int code);

__attribute__((noinline)) static int leaf(int n)
{
    volatile int here[20];
    here[n] = n;
    return here[n] + 1;
}

__attribute__((noinline, noreturn, used)) static void thread(void)
{
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += leaf(i);
    leave(sum != 55);
    for (;;) {}
}

int main(void)
{
    __asm__ volatile("msr psp, %0\nmov r0, #2\nmsr control, r0\nisb\nbl thread"
                     : : "r"(stack + 128) : "r0", "memory");
    return 1;
}
