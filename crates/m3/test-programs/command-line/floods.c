/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Programs that would exhaust the host's memory or time without limits, selected by -DFLOOD=... */
#include "warifu_m3.h"

#define OUTPUT 1
#define MARKS 2
#define POISONS 3

static char name[1000];

void print(const char *text);

static void write_console(const void *from, uint32_t bytes)
{
    const uint32_t block[3] = {2, (uint32_t)from, bytes};
    register int r0 __asm__("r0") = 0x05;
    register const void *r1 __asm__("r1") = block;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

int main(void)
{
    print("begins\n");
    for (unsigned i = 0; i < sizeof name - 1; i++)
        name[i] = 'a' + i % 26;
    if (FLOOD == OUTPUT)
        for (int i = 0; i < 17; i++)
            write_console((const void *)0x21000000, 1 << 20);
    if (FLOOD == MARKS)
        for (unsigned i = 0; i < (1 << 20) + 7; i++)
            WARIFU_MARK(name + i % 900);
    while (FLOOD == POISONS)
        WARIFU_POISON(0, 0xffffffff);
    return 0;
}
