/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cycles of single instructions, with operands that make them fast and slow: `NAME CYCLES`. */
#include "start.h"

#define CYCCNT (*(volatile uint32_t *)0xe0001004)

/* Sixteen of them less none, by sixteen. */
#define CYCLES(text, a, b)                                                                    \
    __extension__({                                                                           \
        register uint32_t r4 __asm__("r4") = (a);                                             \
        register uint32_t r5 __asm__("r5") = (b);                                             \
        uint32_t begin = CYCCNT;                                                              \
        __asm__ volatile("" : "+r"(r4), "+r"(r5));                                            \
        uint32_t middle = CYCCNT;                                                             \
        __asm__ volatile(".rept 16\n" text "\n.endr" : "+r"(r4), "+r"(r5) : : "r6", "r7");    \
        uint32_t end = CYCCNT;                                                                \
        ((end - middle) - (middle - begin)) >> 4;                                             \
    })

static void row(const char *name, uint32_t cycles)
{
    munacl_print(name);
    munacl_print(" ");
    munacl_print_number(cycles);
    munacl_print("\n");
}

void randombytes(unsigned char *out, unsigned long long bytes);
void randombytes(unsigned char *out, unsigned long long bytes)
{
    (void)out;
    (void)bytes;
}

int main(void)
{
    *(volatile uint32_t *)0xe000edfc |= 1 << 24;
    *(volatile uint32_t *)0xe0001000 |= 1;
    row("mul", CYCLES("mul r6, r4, r5", 3, 5));
    row("mul", CYCLES("mul r6, r4, r5", 0xffffffff, 0xfffffffe));
    row("umull", CYCLES("umull r6, r7, r4, r5", 3, 5));
    row("umull", CYCLES("umull r6, r7, r4, r5", 0xffffffff, 0xfffffffe));
    row("smull", CYCLES("smull r6, r7, r4, r5", 3, 5));
    row("smull", CYCLES("smull r6, r7, r4, r5", 0x7fffffff, 0x7ffffffe));
    row("udiv", CYCLES("udiv r6, r4, r5", 3, 5));
    row("udiv", CYCLES("udiv r6, r4, r5", 0xffffffff, 1));
    row("sdiv", CYCLES("sdiv r6, r4, r5", 3, 5));
    row("sdiv", CYCLES("sdiv r6, r4, r5", 0x7fffffff, 1));
    row("ssat", CYCLES("ssat r6, #8, r4", 3, 5));
    row("ssat", CYCLES("ssat r6, #8, r4", 0x7fffffff, 5));
    row("usat", CYCLES("usat r6, #8, r4", 3, 5));
    row("usat", CYCLES("usat r6, #8, r4", 0x7fffffff, 5));
    return 0;
}
