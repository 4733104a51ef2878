/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "internal.h"

static inline uint32_t rotate(uint32_t value, unsigned bits)
{
    return value << bits | value >> (32 - bits);
}

void MUNACL_TWIN(munacl_salsa20_blocks)(void *out, const void *m, size_t blocks, uint32_t in[16])
{
    unsigned char *to = out;
    const unsigned char *from = m;
    for (; blocks; blocks--) {
        uint32_t x[16];
        memcpy(x, in, 64);
        /* The words of a column round's four quarter-rounds, then of a row round's. */
        static const unsigned char words[8][4] = {
            {0, 4, 8, 12}, {5, 9, 13, 1}, {10, 14, 2, 6}, {15, 3, 7, 11},
            {0, 1, 2, 3},  {5, 6, 7, 4},  {10, 11, 8, 9}, {15, 12, 13, 14},
        };
        for (int quarter = 0; quarter < 80; quarter++) {
            const unsigned char *at = words[quarter & 7];
            uint32_t a = x[at[0]], b = x[at[1]], c = x[at[2]], d = x[at[3]];
            b ^= rotate(a + d, 7);
            c ^= rotate(b + a, 9);
            d ^= rotate(c + b, 13);
            a ^= rotate(d + c, 18);
            x[at[0]] = a;
            x[at[1]] = b;
            x[at[2]] = c;
            x[at[3]] = d;
        }
        for (int i = 0; i < 16; i++) {
            uint32_t word = x[i] + in[i];
            if (from)
                word ^= munacl_load32(from + 4 * i);
            memcpy(to + 4 * i, &word, 4);
        }
        in[8]++;
        in[9] += in[8] == 0;
        to += 64;
        if (from)
            from += 64;
    }
}

MUNACL_INNER void core(void *out, const unsigned char *in, const unsigned char *k,
                       const unsigned char *c)
{
    uint32_t x[16];
    munacl_salsa20_words(x, in, k, c);
    MUNACL_TWIN(munacl_salsa20_blocks)(out, NULL, 1, x);
}

int MUNACL_TWIN(munacl_salsa20_core)(void *out, const unsigned char *in, const unsigned char *k,
                                     const unsigned char *c)
{
    core(out, in, k, c);
    return MUNACL_FORGET(0, MUNACL_SALSA20);
}
