/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* FIPS 180-4 section 6.4. */
#include "internal.h"

extern const uint64_t munacl_sha512_k[80];

#ifdef MUNACL_ROTATE64
#define rotate MUNACL_ROTATE64
#define shift MUNACL_SHIFT64
#else
static inline uint64_t rotate(uint64_t value, unsigned bits)
{
    return value >> bits | value << (64 - bits);
}

static inline uint64_t shift(uint64_t value, unsigned bits)
{
    return value >> bits;
}
#endif

void MUNACL_TWIN(munacl_sha512_blocks)(uint64_t state[8], const unsigned char *m, size_t blocks)
{
    for (; blocks; blocks--, m += 128) {
        uint64_t w[16], s[8];
        for (int i = 0; i < 16; i++) {
            uint64_t value;
            memcpy(&value, m + 8 * i, 8);
            w[i] = __builtin_bswap64(value);
        }
        memcpy(s, state, sizeof s);
        for (int i = 0; i < 80; i++) {
            uint64_t e = s[4], a = s[0];
            uint64_t t = s[7] + munacl_sha512_k[i] + w[i & 15];
            t += rotate(e, 14) ^ rotate(e, 18) ^ rotate(e, 41);
            t += (e & (s[5] ^ s[6])) ^ s[6];
            uint64_t sum = rotate(a, 28) ^ rotate(a, 34) ^ rotate(a, 39);
            sum += (a & s[1]) | (s[2] & (a | s[1]));
            for (int j = 7; j > 0; j--)
                s[j] = s[j - 1];
            s[4] += t;
            s[0] = t + sum;
            uint64_t next = w[(i + 1) & 15], late = w[(i + 14) & 15];
            w[i & 15] += w[(i + 9) & 15];
            w[i & 15] += rotate(next, 1) ^ rotate(next, 8) ^ shift(next, 7);
            w[i & 15] += rotate(late, 19) ^ rotate(late, 61) ^ shift(late, 6);
        }
        for (int i = 0; i < 8; i++)
            state[i] += s[i];
    }
}
