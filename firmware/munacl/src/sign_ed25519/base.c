/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Multiples of the base point by a signed comb (M. Hamburg, "Fast and compact elliptic-curve
 * cryptography", section 3.3): every digit is 1 or -1, so that no column is zero. */
#include "ed25519.h"

/* 2^(TEETH SPACING) - 1 modulo L. */
static const uint32_t ones[8] = {
#if MUNACL_ED_TEETH * MUNACL_ED_SPACING == 255
    0x75473484, 0x977f4a47, 0x8b3ab623, 0x6de72ae9, 0xffffffff, 0xffffffff, 0xffffffff, 0x0fffffff,
#else
    0x8d98951c, 0xd6ec3174, 0x737dcf70, 0xc6ef5bf4, 0xfffffffe, 0xffffffff, 0xffffffff, 0x0fffffff,
#endif
};

void munacl_ed_signs(uint32_t out[8], const unsigned char *s)
{
    /* And L if the sum is odd. */
    uint32_t odd = 0 - (((uint32_t)s[0] + ones[0]) & 1);
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++) {
        sum += munacl_load32(s + 4 * i);
        sum += ones[i];
        sum += munacl_load32(munacl_sc_order + 4 * i) & odd;
        out[i] = (uint32_t)sum;
        sum >>= 32;
    }
    for (int i = 0; i < 8; i++)
        out[i] = out[i] >> 1 | (i < 7 ? out[i + 1] << 31 : 0);
}

uint32_t munacl_ed_column(const uint32_t signs[8], unsigned column)
{
    uint32_t bits = 0;
    for (unsigned tooth = 0; tooth < MUNACL_ED_TEETH; tooth++) {
        unsigned bit = column + MUNACL_ED_SPACING * tooth;
        bits |= (signs[bit >> 5] >> (bit & 31) & 1) << tooth;
    }
    /* A top bit of 0 negates the column: the other bits are then complemented. */
    uint32_t negative = (bits >> (MUNACL_ED_TEETH - 1)) - 1;
    return ((bits ^ negative) & (MUNACL_ED_POINTS - 1)) | (negative & 0x80000000);
}

void munacl_ed_base(munacl_fe *slots, const unsigned char *s)
{
    uint32_t signs[8];
    munacl_ed_signs(signs, s);
    munacl_ed_zero(slots);
    for (unsigned column = MUNACL_ED_SPACING; column--;) {
        if (column != MUNACL_ED_SPACING - 1)
            munacl_fe_run(slots, munacl_ed_double, 0);
        uint32_t index = munacl_ed_column(signs, column);
        munacl_ed_look_up(slots + YPX, index & 0x7fffffff);
        munacl_ed_negate(slots, (uint32_t)((int32_t)index >> 31));
        munacl_fe_run(slots, munacl_ed_add_affine, 0);
    }
    munacl_wipe(signs, sizeof signs);
}
