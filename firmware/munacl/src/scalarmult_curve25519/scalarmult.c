/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* X25519 (RFC 7748 section 5): the Montgomery ladder. */
#include "fe25519/fe25519.h"

/* One step. Slots 1 to 4 hold the two points X2, Z2 and X3, Z3; 0 the base point's u-coordinate.
 * The sum of the two points does not depend on their order, so that only what is doubled is
 * selected: afterwards the double is X2, Z2 and the sum X3, Z3, whatever the bit. */
static const uint32_t step[] = {
    FE(ADD, 5, 1, 2), FE(SUB, 6, 1, 2), FE(ADD, 1, 3, 4), FE(SUB, 2, 3, 4),
    FE(MUL, 3, 2, 5), FE(MUL, 4, 1, 6), FE(SELECT, 5, 1, 0), FE(SELECT, 6, 2, 0),
    FE(ADD, 1, 3, 4), FE(SUB, 2, 3, 4), FE(SQR, 3, 1, 1), FE(SQR, 2, 2, 1),
    FE(MUL, 4, 0, 2), FE(SQR, 5, 5, 1), FE(SQR, 6, 6, 1), FE(MUL, 1, 5, 6),
    FE(SUB, 5, 5, 6), FE(A24, 6, 5, 6), FE(MUL, 2, 5, 6), FE(END, 0, 0, 0),
};
static const uint32_t quotient[] = {FE(MUL, 3, 3, 1), FE(END, 0, 0, 0)};

int crypto_scalarmult_curve25519(unsigned char *q, const unsigned char *n, const unsigned char *p)
{
    munacl_fe slots[7];
    memset(slots, 0, sizeof slots);
    memcpy(slots[0], p, 32);
    slots[0][7] &= 0x7fffffff;
    memcpy(slots[3], slots[0], 32);
    slots[1][0] = slots[4][0] = 1;
    uint32_t word = munacl_load32(n + 28) << 1 | 0x80000000, before = 0;
    for (int bit = 254; bit >= 0; bit--) {
        if ((bit & 31) == 31) {
            word = munacl_load32(n + (bit >> 3) - 3);
            if (bit == 31)
                word &= ~7u;
        }
        uint32_t swap = (word >> 31) ^ before;
        before = word >> 31;
        word <<= 1;
        munacl_fe_run(slots, step, 0 - swap);
    }
    munacl_fe_run(slots, munacl_fe_power_250, 0);
    munacl_fe_run(slots, munacl_fe_inverse, 0);
    munacl_fe_run(slots, quotient, 0);
    munacl_fe_freeze(slots[3]);
    memcpy(q, slots[3], 32);
    munacl_wipe(slots, sizeof slots);
    return 0;
}
