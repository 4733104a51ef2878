/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Start-up code without a C library's: vectors, .data and .bss, main, its result. A device
 * package's start-up code takes the place of the latter part (boards/cmsis.c). */
#include "semihosting.h"
#include "start.h"

__attribute__((weak)) void munacl_console_begin(void) {}

__attribute__((weak)) const char *munacl_console_board(void)
{
    return "none";
}

__attribute__((weak)) uint32_t munacl_console_hz(void)
{
    return 0;
}

__attribute__((weak)) int munacl_console_is_power_up(void)
{
    return 0;
}

__attribute__((weak)) void munacl_print(const char *text)
{
    semihosting(SYS_WRITE0, text);
}

__attribute__((weak)) int munacl_read(void)
{
    return semihosting(SYS_READC, 0);
}

__attribute__((weak, noreturn)) void munacl_leave(int code)
{
    semihosting_exit(code);
    for (;;) {}
}

void munacl_number(char text[11], uint32_t value)
{
    static const uint32_t powers[] = {1000000000, 100000000, 10000000, 1000000, 100000,
                                      10000,      1000,      100,      10,      1};
    int length = 0;
    for (int i = 0; i < 10; i++) {
        char digit = '0';
        for (; value >= powers[i]; value -= powers[i])
            digit++;
        if (length || digit != '0' || i == 9)
            text[length++] = digit;
    }
    text[length] = 0;
}

void munacl_print_number(uint32_t value)
{
    char text[11];
    munacl_number(text, value);
    munacl_print(text);
}

#ifndef MUNACL_DEVICE_HEADER
extern uint32_t __data_load[], __data_start[], __data_end[];
extern uint32_t __bss_start[], __bss_end[], __stack_top[];
int main(void);
void munacl_reset(void);

__attribute__((noreturn)) void munacl_reset(void)
{
    for (uint32_t *from = __data_load, *to = __data_start; to < __data_end;)
        *to++ = *from++;
    for (uint32_t *to = __bss_start; to < __bss_end;)
        *to++ = 0;
    munacl_leave(main());
}

__attribute__((weak, noreturn)) void munacl_fault(void)
{
    munacl_leave(99);
}

/* What the chip's boot ROM asks for in the vector that Arm leaves free; boards/lpc1768.ld has
 * it. */
extern const char munacl_vector_7[] __attribute__((weak));

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    __stack_top, (void *)munacl_reset, (void *)munacl_fault, (void *)munacl_fault,
    (void *)munacl_fault, (void *)munacl_fault, (void *)munacl_fault, munacl_vector_7, 0, 0, 0,
    (void *)munacl_fault, (void *)munacl_fault, 0, (void *)munacl_fault, (void *)munacl_fault,
};
#endif
