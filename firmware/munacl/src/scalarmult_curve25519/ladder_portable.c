/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "ladder.h"

/* One step. Slots 1 to 4 hold the two points X2, Z2 and X3, Z3; 0 the base point's u-coordinate.
 * The sum of the two points does not depend on their order, so that only what is doubled is
 * selected: afterwards the double is X2, Z2 and the sum X3, Z3, whatever the bit. */
static const munacl_fe_step step[] = {
    FE(ADD, 5, 1, 2), FE(SUB, 6, 1, 2), FE(ADD, 1, 3, 4), FE(SUB, 2, 3, 4),
    FE(MUL, 3, 2, 5), FE(MUL, 4, 1, 6), FE(SELECT, 5, 1, 0), FE(SELECT, 6, 2, 0),
    FE(ADD, 1, 3, 4), FE(SUB, 2, 3, 4), FE(SQR, 3, 1, 1), FE(SQR, 2, 2, 1),
    FE(MUL, 4, 0, 2), FE(SQR, 5, 5, 1), FE(SQR, 6, 6, 1), FE(MUL, 1, 5, 6),
    FE(SUB, 5, 5, 6), FE(A24, 6, 5, 6), FE(MUL, 2, 5, 6), FE(END, 0, 0, 0),
};

void MUNACL_TWIN(munacl_x25519_ladder)(munacl_fe point[2], const uint32_t scalar[8])
{
    munacl_fe slots[7];
    memset(slots, 0, sizeof slots);
    memcpy(slots[0], point[0], 32);
    memcpy(slots[3], point[0], 32);
    slots[1][0] = slots[4][0] = 1;
    uint32_t before = 0;
    for (int bit = 254; bit >= 0; bit--) {
        uint32_t now = scalar[bit >> 5] >> (bit & 31) & 1;
        if (bit == 254)
            now = 1;
        if (bit < 3)
            now = 0;
        munacl_fe_run(slots, step, 0 - (now ^ before));
        before = now;
    }
    memcpy(point, slots[1], 64);
    munacl_wipe(slots, sizeof slots);
}
