/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Routines of assembly whose labels have neither type nor size, behind a function that has both. */
__asm__(".section .text.labels, \"ax\", %progbits\n"
        ".syntax unified\n"
        ".thumb\n"
        ".balign 4\n"
        ".global sized\n"
        ".type sized, %function\n"
        "sized: mov.w r0, #1\n"
        "inside: bx lr\n"
        ".global inside_too\n"
        "inside_too: bx lr\n"
        ".size sized, . - sized\n"
        ".global plain_short\n"
        "plain_short: mov.w r0, #1\n"
        "bx lr\n"
        ".global plain_long\n"
        "plain_long: .rept 50\n"
        "mov.w r0, #1\n"
        ".endr\n"
        "bx lr\n"
        ".text\n");

int main(void)
{
    for (int i = 0; i < 3; i++)
        __asm__ volatile("bl sized\n"
                         "bl plain_short\n"
                         "bl plain_long" ::: "r0", "lr", "cc", "memory");
    return 0;
}
