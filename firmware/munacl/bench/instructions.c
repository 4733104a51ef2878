/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cycles of single instructions, with operands that make them fast and slow: `NAME CYCLES`, and of
 * UMULL's product made of MUL's of 16 by 16 bits (`product`). */
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
        __asm__ volatile(".rept 16\n" text "\n.endr" : "+r"(r4), "+r"(r5) : : "r6", "r12",    \
                         "r8", "r9", "r10", "cc");                                            \
        uint32_t end = CYCCNT;                                                                \
        ((end - middle) - (middle - begin)) >> 4;                                             \
    })

/* r8, r6 = r4 * r5 */
#define PRODUCT                                                                               \
    "uxth r6, r4\n"                                                                           \
    "uxth r12, r5\n"                                                                          \
    "lsr r8, r4, #16\n"                                                                       \
    "lsr r9, r5, #16\n"                                                                       \
    "mul r10, r6, r9\n"                                                                       \
    "mul r6, r6, r12\n"                                                                       \
    "mul r12, r8, r12\n"                                                                      \
    "mul r8, r8, r9\n"                                                                        \
    "adds r12, r12, r10\n"                                                                    \
    "it cs\n"                                                                                 \
    "addcs r8, r8, #0x10000\n"                                                                \
    "adds r6, r6, r12, lsl #16\n"                                                             \
    "adc r8, r8, r12, lsr #16"

static void row(const char *name, uint32_t cycles)
{
    munacl_print(name);
    munacl_print(" ");
    munacl_print_number(cycles);
    munacl_print("\n");
}

int main(void)
{
    *(volatile uint32_t *)0xe000edfc |= 1 << 24;
    *(volatile uint32_t *)0xe0001000 |= 1;
    row("mul", CYCLES("mul r6, r4, r5", 3, 5));
    row("mul", CYCLES("mul r6, r4, r5", 0xffffffff, 0xfffffffe));
    row("umull", CYCLES("umull r6, r12, r4, r5", 3, 5));
    row("umull", CYCLES("umull r6, r12, r4, r5", 0xffffffff, 0xfffffffe));
    row("smull", CYCLES("smull r6, r12, r4, r5", 3, 5));
    row("smull", CYCLES("smull r6, r12, r4, r5", 0x7fffffff, 0x7ffffffe));
    row("udiv", CYCLES("udiv r6, r4, r5", 3, 5));
    row("udiv", CYCLES("udiv r6, r4, r5", 0xffffffff, 1));
    row("sdiv", CYCLES("sdiv r6, r4, r5", 3, 5));
    row("sdiv", CYCLES("sdiv r6, r4, r5", 0x7fffffff, 1));
    row("ssat", CYCLES("ssat r6, #8, r4", 3, 5));
    row("ssat", CYCLES("ssat r6, #8, r4", 0x7fffffff, 5));
    row("usat", CYCLES("usat r6, #8, r4", 3, 5));
    row("usat", CYCLES("usat r6, #8, r4", 0x7fffffff, 5));
    row("product", CYCLES(PRODUCT, 3, 5));
    row("product", CYCLES(PRODUCT, 0xffffffff, 0xfffffffe));
    return 0;
}
