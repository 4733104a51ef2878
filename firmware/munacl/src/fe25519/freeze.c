/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "fe25519.h"

void munacl_fe_freeze(munacl_fe a)
{
    /* a < 2^256 = 2p + 38: adding 19 shows in bit 255 whether p or more, and q p is taken off by
     * adding 19 q and dropping bit 255. Twice, for values of 2p and above. */
    for (int pass = 0; pass < 2; pass++) {
        uint64_t sum = 19;
        for (int i = 0; i < 8; i++) {
            sum += a[i];
            if (i < 7)
                sum >>= 32;
        }
        uint32_t q = (uint32_t)(sum >> 31);
        sum = q * 19;
        for (int i = 0; i < 8; i++) {
            sum += a[i];
            a[i] = (uint32_t)sum;
            sum >>= 32;
        }
        a[7] &= 0x7fffffff;
    }
}
