/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Makes all of a memory secret and public again, without end. */
#include "warifu_m3.h"

int main(void)
{
    for (;;) {
        WARIFU_POISON(0x20000000, 4 << 20);
        WARIFU_UNPOISON(0x20000000, 4 << 20);
    }
}
