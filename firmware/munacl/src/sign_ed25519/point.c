/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Hisil, Wong, Carter and Dawson, "Twisted Edwards curves revisited", sections 3.1 and 3.3 with
 * a = -1. A doubling does not read T: an addition makes it of what the operation before left. */
#include "ed25519.h"

const munacl_fe_step munacl_ed_double[] = {
    FE(SQR, 4, X, 1), FE(SQR, 5, Y, 1), FE(SQR, 6, Z, 1), FE(ADD, 6, 6, 6), FE(ADD, E, X, Y),
    FE(SQR, E, E, 1), FE(ADD, H, 4, 5), FE(SUB, E, H, E), FE(SUB, 5, 4, 5), FE(ADD, 6, 6, 5),
    FE(MUL, X, E, 6), FE(MUL, Y, 5, H), FE(MUL, Z, 6, 5), FE(END, 0, 0, 0),
};
/* The addition with z from its second step on. */
const munacl_fe_step munacl_ed_add[] = {
    FE(MUL, Z, Z, Z2),
    FE(MUL, T, E, H), FE(SUB, 4, Y, X), FE(MUL, 4, 4, YMX), FE(ADD, 5, Y, X), FE(MUL, 5, 5, YPX),
    FE(MUL, 6, T, T2D), FE(ADD, Z, Z, Z), FE(SUB, E, 5, 4), FE(ADD, H, 5, 4), FE(SUB, 4, Z, 6),
    FE(ADD, 5, Z, 6), FE(MUL, X, E, 4), FE(MUL, Y, 5, H), FE(MUL, Z, 4, 5), FE(END, 0, 0, 0),
};

void munacl_ed_zero(munacl_fe *slots)
{
    memset(slots, 0, (H + 1) * sizeof *slots);
    slots[Y][0] = slots[Z][0] = slots[H][0] = 1;
}

void munacl_ed_negate(munacl_fe *slots, uint32_t mask)
{
    /* 2p - t = 2^256 - 38 - t is the complement of t and 2^256 - 37. */
    uint64_t sum = 0;
    uint32_t addend = mask & -37u;
    for (int i = 0; i < 8; i++) {
        uint32_t swap = (slots[YPX][i] ^ slots[YMX][i]) & mask;
        slots[YPX][i] ^= swap;
        slots[YMX][i] ^= swap;
        sum += slots[T2D][i] ^ mask;
        sum += addend;
        slots[T2D][i] = (uint32_t)sum;
        sum >>= 32;
        addend = mask;
    }
}

static const munacl_fe_step affine[] = {FE(MUL, X, X, Z), FE(MUL, Y, Y, Z), FE(END, 0, 0, 0)};

void munacl_ed_encode(unsigned char *out, munacl_fe *slots)
{
    munacl_fe_invert(slots[Z]);
    munacl_fe_run(slots, affine, 0);
    munacl_fe_freeze(slots[X]);
    munacl_fe_freeze(slots[Y]);
    slots[Y][7] |= slots[X][0] << 31;
    munacl_copy32(out, slots[Y]);
}
