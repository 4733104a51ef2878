/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Scalars modulo L = 2^252 + 27742317777372353535851937790883648493, in constant time. */
#include "ed25519.h"

const unsigned char munacl_sc_order[32] = {
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10,
};

/* x[0 .. 31] -= factor * L, carried; the carry of the last digit is returned. */
static int32_t subtract(int32_t *x, int32_t factor)
{
    int32_t carry = 0;
    for (int i = 0; i < 32; i++) {
        carry += x[i] - factor * munacl_sc_order[i];
        x[i] = carry & 255;
        carry >>= 8;
    }
    return carry;
}

void munacl_sc_reduce(unsigned char *out, int32_t x[64])
{
    for (int i = 0; i < 63; i++) {
        x[i + 1] += x[i] >> 8;
        x[i] &= 255;
    }
    /* 2^256 = 16 (2^252 - L) = -16 * 277.. modulo L: the top digit moves 32 to 17 digits down. */
    for (int i = 63; i >= 32; i--) {
        int32_t top = 16 * x[i], carry = 0;
        int32_t *low = x + i - 32;
        for (int j = 0; j < 31; j++) {
            if (j < 16)
                carry -= top * munacl_sc_order[j];
            carry += low[j];
            low[j] = carry & 255;
            carry >>= 8;
        }
        low[31] += carry;
    }
    /* Now |x| < 2^257. Multiples of L until it is between 0 and L. */
    int32_t carry = subtract(x, x[31] >> 4);
    carry = subtract(x, carry);
    (void)carry;
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
