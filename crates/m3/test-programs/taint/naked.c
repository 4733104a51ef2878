/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A routine of assembly whose label has neither type nor size, and that branches on a secret. */
#include "warifu_m3.h"

__asm__(".section .text.naked, \"ax\", %progbits\n"
        ".syntax unified\n"
        ".thumb\n"
        ".balign 4\n"
        ".global naked_first\n"
        "naked_first: mov.w r0, #1\n"
        "bx lr\n"
        ".global naked_leak\n"
        "naked_leak: ldr r0, [r0]\n"
        "cmp r0, #0\n"
        "beq 1f\n"
        "movs r0, #1\n"
        "1: bx lr\n"
        ".text\n");

static unsigned key = 5;

int main(void)
{
    WARIFU_POISON(&key, sizeof key);
    register unsigned *r0 __asm__("r0") = &key;
    __asm__ volatile("bl naked_first\n" ::: "r0", "lr", "cc", "memory");
    r0 = &key;
    __asm__ volatile("bl naked_leak" : "+r"(r0) : : "lr", "cc", "memory");
    return 0;
}
