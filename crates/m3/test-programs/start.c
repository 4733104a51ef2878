/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Start-up code and console of the test programs: vector table, .data and .bss, main, SYS_EXIT. */
#include <stdint.h>

extern uint32_t __data_load[], __data_start[], __data_end[];
extern uint32_t __bss_start[], __bss_end__[], __stack_top[];
int main(void);
void start(void);

static int semihosting(int number, const void *parameter)
{
    register int r0 __asm__("r0") = number;
    register const void *r1 __asm__("r1") = parameter;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void print(const char *text)
{
    semihosting(0x04, text);
}

void print_hex(uint32_t value)
{
    char text[9];
    for (int i = 0; i < 8; i++)
        text[i] = "0123456789abcdef"[value >> (28 - 4 * i) & 15];
    text[8] = 0;
    print(text);
}

void leave(int code)
{
    const uint32_t block[2] = {0x20026, (uint32_t)code};
    semihosting(0x20, block);
    for (;;) {}
}

__attribute__((weak, noreturn)) void start_c(void)
{
    for (uint32_t *from = __data_load, *to = __data_start; to < __data_end;)
        *to++ = *from++;
    for (uint32_t *to = __bss_start; to < __bss_end__;)
        *to++ = 0;
    leave(main());
    for (;;) {}
}

__attribute__((weak, noreturn)) void fault(void)
{
    leave(99);
    for (;;) {}
}

__attribute__((weak)) void usage_fault(void) { fault(); }
__attribute__((weak)) void sv_call(void) { fault(); }
__attribute__((weak)) void pend_sv(void) { fault(); }
__attribute__((weak)) void sys_tick(void) { fault(); }
__attribute__((weak)) void interrupt0(void) { fault(); }

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    __stack_top, (void *)start_c, (void *)fault, (void *)fault,
    (void *)fault, (void *)fault, (void *)usage_fault, 0,
    0, 0, 0, (void *)sv_call,
    (void *)fault, 0, (void *)pend_sv, (void *)sys_tick,
    (void *)interrupt0,
};
