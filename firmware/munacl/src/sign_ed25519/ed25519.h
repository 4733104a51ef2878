/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Points of Ed25519's curve and scalars modulo its order L (RFC 8032 section 5.1). */
#ifndef MUNACL_ED25519_H
#define MUNACL_ED25519_H

#include "fe25519/fe25519.h"

/* Slots of a point's programs: extended coordinates, T as the product of E and H; then what is
 * added: y + x, y - x, 2dxy and, where it is not 1, z. */
enum { X, Y, Z, T, E = 7, H = 8, YPX, YMX, T2D, Z2, MUNACL_ED_SLOTS };

extern const munacl_fe_step munacl_ed_double[];
/* The addition of a point with z; from its second step on, of one whose z is 1. */
extern const munacl_fe_step munacl_ed_add[];
#define munacl_ed_add_affine (munacl_ed_add + 1)

/* The comb: TEETH bits of a scalar, SPACING apart, select a point of the table, or its negative. */
#ifdef MUNACL_SMALL
#define MUNACL_ED_TEETH 2
#define MUNACL_ED_SPACING 128
#define MUNACL_ED_POINTS 2
#else
#define MUNACL_ED_TEETH 5
#define MUNACL_ED_SPACING 51
#define MUNACL_ED_POINTS 16
#endif
extern const uint32_t munacl_ed_table[MUNACL_ED_POINTS][24];
/* The point of an index that may be secret. */
MUNACL_APART void munacl_ed_look_up(munacl_fe out[3], uint32_t index);

/* The neutral element. */
MUNACL_APART void munacl_ed_zero(munacl_fe *slots);
/* The scalar whose bits, as signs, are the digits of s: (s + 2^n - 1) / 2 modulo L, where n is
 * TEETH times SPACING; s < 2^255. */
MUNACL_APART void munacl_ed_signs(uint32_t out[8], const unsigned char *s);
/* The column's index into the table; its bit 31 if the point is to be negated. */
MUNACL_APART uint32_t munacl_ed_column(const uint32_t signs[8], unsigned column);
/* YPX, YMX and T2D for the negative where the mask is all ones. */
MUNACL_APART void munacl_ed_negate(munacl_fe *slots, uint32_t mask);
/* X, Y, Z = s times the base point. `s` is below 2^255 and may be secret. */
MUNACL_APART void munacl_ed_base(munacl_fe *slots, const unsigned char *s);
/* The 32 bytes of X, Y, Z. */
MUNACL_APART void munacl_ed_encode(unsigned char *out, munacl_fe *slots);

/* Scalars modulo L, as bytes; x has 64 digits to the base 256, each below 2^22, and together is
 * below 2^512. */
MUNACL_APART void munacl_sc_reduce(unsigned char *out, int32_t x[64]);
/* out = hash modulo L, of 64 bytes. */
MUNACL_APART void munacl_sc_from_hash(unsigned char *out, const unsigned char *hash);
/* out = a b + c modulo L. */
MUNACL_APART void munacl_sc_muladd(unsigned char *out, const unsigned char *a,
                                   const unsigned char *b, const unsigned char *c);
extern const unsigned char munacl_sc_order[32];

#endif
