/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bytes written by the host are public; bytes that it does not write stay secret. */
#include "warifu_m3.h"

static uint8_t buffer[64], line[64];
static uint32_t information[6];
static volatile uint8_t seen;

#define LOOK(name, byte)                                          \
    static __attribute__((noinline)) void name(const uint8_t *at) \
    {                                                             \
        if (at[byte])                                             \
            seen = 1;                                             \
    }

LOOK(clean_read, 2)
LOOK(leak_behind_read, 3)
LOOK(leak_far_behind_read, 40)
LOOK(clean_line, 4)
LOOK(leak_behind_line, 5)
LOOK(leak_before_information, 3)
LOOK(clean_information, 19)
LOOK(leak_behind_information, 20)

static void ask(int number, const void *parameter)
{
    register int r0 __asm__("r0") = number;
    register const void *r1 __asm__("r1") = parameter;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

int main(void)
{
    WARIFU_POISON(buffer, sizeof buffer);
    WARIFU_POISON(line, sizeof line);
    WARIFU_POISON(information, sizeof information);
    ask(0x06, (uint32_t[]){1, (uint32_t)buffer, sizeof buffer});
    ask(0x15, (uint32_t[]){(uint32_t)line, sizeof line});
    ask(0x16, (void *[]){&information[1]});
    clean_read(buffer);
    leak_behind_read(buffer);
    leak_far_behind_read(buffer);
    clean_line(line);
    leak_behind_line(line);
    leak_before_information((uint8_t *)information);
    clean_information((uint8_t *)information);
    leak_behind_information((uint8_t *)information);
    return 0;
}
