/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Scalars modulo L = 2^252 + 27742317777372353535851937790883648493, in constant time. */
#include "ed25519.h"

const unsigned char munacl_sc_order[32] = {
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10,
};

void munacl_sc_reduce(unsigned char *out, int32_t x[64])
{
    for (int i = 0; i < 63; i++) {
        x[i + 1] += x[i] >> 8;
        x[i] &= 255;
    }
    /* 2^256 = 16 (2^252 - L) = -16 * 277.. modulo L: the top digit moves 32 to 17 digits down. The
     * 16 digits there become 0 to 255 again, and what they carry stays in the next one, until its
     * turn: at most 333 of digits from 48 on, so that those below are from -333 to 255, and carry
     * -333 to 435. */
    for (int i = 63; i >= 32; i--) {
        int32_t top = 16 * x[i], carry = 0;
        int32_t *low = x + i - 32;
        for (int j = 0; j < 16; j++) {
            carry += low[j] - top * munacl_sc_order[j];
            low[j] = carry & 255;
            carry >>= 8;
        }
        low[16] += carry;
    }
    /* Less the multiple of L that digit 31 suggests: digits 16 to 30, from -333 to 690, change that
     * by one at most, and x is between -2^249 and 2^252 + 2^250. Its digits are 0 to 255 now but
     * for the last, which tells how often 2^252 is in it, -1 to 1: then x is from 2^252 - L to
     * L - 1. If it is negative, L is added. */
    for (int pass = 0; pass < 3; pass++) {
        int32_t factor = x[31] >> (pass < 2 ? 4 : 8), carry = 0;
        for (int i = 0; i < 32; i++) {
            carry += x[i] - factor * munacl_sc_order[i];
            x[i] = carry & 255;
            carry >>= 8;
        }
        x[31] += 256 * carry;
    }
    for (int i = 0; i < 32; i++)
        out[i] = (unsigned char)x[i];
}

void munacl_sc_from_hash(unsigned char *out, const unsigned char *hash)
{
    int32_t x[64];
    for (int i = 0; i < 64; i++)
        x[i] = hash[i];
    munacl_sc_reduce(out, x);
    munacl_wipe(x, sizeof x);
}

void munacl_sc_muladd(unsigned char *out, const unsigned char *a, const unsigned char *b,
                      const unsigned char *c)
{
    int32_t x[64];
    memset(x, 0, sizeof x);
    for (int i = 0; i < 32; i++) {
        x[i] += c[i];
        for (int j = 0; j < 32; j++)
            x[i + j] += a[i] * b[j];
    }
    munacl_sc_reduce(out, x);
    munacl_wipe(x, sizeof x);
}
