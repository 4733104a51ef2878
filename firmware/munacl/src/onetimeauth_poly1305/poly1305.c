/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Poly1305 (D. J. Bernstein, "The Poly1305-AES message-authentication code"; RFC 8439 2.5). */
#include "internal.h"

MUNACL_INNER void authenticate(unsigned char *a, const unsigned char *m, size_t mlen,
                               const unsigned char *k)
{
    struct munacl_poly1305 state;
    memset(state.h, 0, sizeof state.h);
    munacl_copy32(state.r, k);
    state.r[0] &= 0x0fffffff;
    for (int i = 1; i < 4; i++)
        state.r[i] &= 0x0ffffffc;
    munacl_poly1305_blocks(&state, m, mlen / 16, 1);
    if (mlen & 15) {
        unsigned char last[16] = {0};
        memcpy(last, m + (mlen & ~(size_t)15), mlen & 15);
        last[mlen & 15] = 1;
        munacl_poly1305_blocks(&state, last, 1, 0);
    }
    /* h < 2p: it is p or more where h + 5 reaches 2^130, and then h - p is h + 5 without that bit,
     * which is beyond the 128 bits of the sum with s. */
    uint64_t sum = 5;
    for (int i = 0; i < 4; i++)
        sum = (sum + state.h[i]) >> 32;
    sum = munacl_mul16(((uint32_t)sum + state.h[4]) >> 2, 5);
    for (int i = 0; i < 4; i++) {
        sum += (uint64_t)state.h[i] + state.r[4 + i];
        state.h[i] = (uint32_t)sum;
        sum >>= 32;
    }
    memcpy(a, state.h, 16);
}

int crypto_onetimeauth_poly1305(unsigned char *a, const unsigned char *m, size_t mlen,
                                const unsigned char *k)
{
    authenticate(a, m, mlen, k);
    return MUNACL_FORGET(0, MUNACL_POLY1305);
}

MUNACL_INNER int compare(const unsigned char *a, const unsigned char *m, size_t mlen,
                         const unsigned char *k)
{
    unsigned char expected[16];
    crypto_onetimeauth_poly1305(expected, m, mlen, k);
    return crypto_verify_16(a, expected);
}

int crypto_onetimeauth_poly1305_verify(const unsigned char *a, const unsigned char *m, size_t mlen,
                                       const unsigned char *k)
{
    return MUNACL_FORGET(compare(a, m, mlen, k), MUNACL_VERIFY);
}
