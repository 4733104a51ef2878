/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Poisons the whole address space several times, and many ranges in it. */
#include "warifu_m3.h"

int main(void)
{
    for (int i = 0; i < 10; i++)
        WARIFU_POISON(0, 0xffffffff);
    WARIFU_UNPOISON(0, 0xffffffff);
    for (uint32_t i = 0; i < 40000; i++)
        WARIFU_POISON(0x21000000 + i, 1);
    return 0;
}
