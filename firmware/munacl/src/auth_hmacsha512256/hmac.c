/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* HMAC-SHA-512 (RFC 2104, RFC 4231), the first 32 bytes of it. */
#include "internal.h"

/* `state` is that after the block of the key xored with `pad`. */
static void begin(uint64_t state[8], const unsigned char *k, int pad)
{
    unsigned char block[128];
    memset(block, pad, sizeof block);
    for (int i = 0; i < 32; i++)
        block[i] ^= k[i];
    memcpy(state, munacl_sha512_initial, 64);
    munacl_sha512_blocks(state, block, 1);
}

MUNACL_INNER void authenticate(unsigned char *a, const unsigned char *m, size_t mlen,
                               const unsigned char *k)
{
    uint64_t state[8];
    unsigned char inner[64];
    begin(state, k, 0x36);
    munacl_sha512_finish(inner, 64, state, m, mlen, 128);
    begin(state, k, 0x5c);
    munacl_sha512_finish(a, 32, state, inner, 64, 128);
}

int crypto_auth_hmacsha512256(unsigned char *a, const unsigned char *m, size_t mlen,
                              const unsigned char *k)
{
    authenticate(a, m, mlen, k);
    return MUNACL_FORGET(0, MUNACL_AUTH);
}

MUNACL_INNER int compare(const unsigned char *a, const unsigned char *m, size_t mlen,
                         const unsigned char *k)
{
    unsigned char expected[32];
    crypto_auth_hmacsha512256(expected, m, mlen, k);
    return crypto_verify_32(a, expected);
}

int crypto_auth_hmacsha512256_verify(const unsigned char *a, const unsigned char *m, size_t mlen,
                                     const unsigned char *k)
{
    return MUNACL_FORGET(compare(a, m, mlen, k), MUNACL_VERIFY);
}
