/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "internal.h"

static inline uint32_t rotate(uint32_t value, unsigned bits)
{
    return value << bits | value >> (32 - bits);
}

void MUNACL_TWIN(munacl_salsa20_block)(void *out, const uint32_t in[16])
{
    uint32_t x[16];
    memcpy(x, in, 64);
    for (int round = 0; round < 20; round++) {
        /* A column round, then the transposition that makes the next one a row round. */
        uint32_t y[16];
        for (int i = 0; i < 4; i++) {
            uint32_t a = x[5 * i], b = x[(5 * i + 4) & 15];
            uint32_t c = x[(5 * i + 8) & 15], d = x[(5 * i + 12) & 15];
            b ^= rotate(a + d, 7);
            c ^= rotate(b + a, 9);
            d ^= rotate(c + b, 13);
            a ^= rotate(d + c, 18);
            y[5 * i] = a;
            y[4 * i + ((i + 1) & 3)] = b;
            y[4 * i + ((i + 2) & 3)] = c;
            y[4 * i + ((i + 3) & 3)] = d;
        }
        memcpy(x, y, 64);
    }
    for (int i = 0; i < 16; i++)
        x[i] += in[i];
    memcpy(out, x, 64);
}
