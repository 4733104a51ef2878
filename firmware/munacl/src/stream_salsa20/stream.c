/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Salsa20 and XSalsa20 as streams. */
#include "internal.h"

const unsigned char munacl_sigma[16] = "expand 32-byte k";

/* The stream, xored with m unless that is NULL. */
MUNACL_INNER void blocks(unsigned char *c, const unsigned char *m, size_t mlen,
                         const unsigned char *n, const unsigned char *k)
{
    uint32_t in[16];
    unsigned char block[64];
    memset(block, 0, 16);
    memcpy(block, n, 8);
    munacl_salsa20_words(in, block, k, munacl_sigma);
    size_t rest = mlen % 64;
    mlen -= rest;
    if (mlen)
        munacl_salsa20_blocks(c, m, mlen / 64, in);
    if (rest) {
        if (m)
            memcpy(block, m + mlen, rest);
        munacl_salsa20_blocks(block, m ? block : NULL, 1, in);
        memcpy(c + mlen, block, rest);
    }
}

static int stream(unsigned char *c, const unsigned char *m, size_t mlen, const unsigned char *n,
                  const unsigned char *k)
{
    blocks(c, m, mlen, n, k);
    return MUNACL_FORGET(0, MUNACL_STREAM);
}

__attribute__((noinline)) static int xsalsa20(unsigned char *c, const unsigned char *m, size_t mlen,
                                              const unsigned char *n, const unsigned char *k)
{
    unsigned char subkey[32];
    crypto_core_hsalsa20(subkey, n, k, munacl_sigma);
    int result = stream(c, m, mlen, n + 16, subkey);
    munacl_wipe(subkey, sizeof subkey);
    return result;
}

int crypto_stream_salsa20(unsigned char *c, size_t clen, const unsigned char *n,
                          const unsigned char *k)
{
    return stream(c, NULL, clen, n, k);
}

int crypto_stream_salsa20_xor(unsigned char *c, const unsigned char *m, size_t mlen,
                              const unsigned char *n, const unsigned char *k)
{
    return stream(c, m, mlen, n, k);
}

int crypto_stream_xsalsa20(unsigned char *c, size_t clen, const unsigned char *n,
                           const unsigned char *k)
{
    return xsalsa20(c, NULL, clen, n, k);
}

int crypto_stream_xsalsa20_xor(unsigned char *c, const unsigned char *m, size_t mlen,
                               const unsigned char *n, const unsigned char *k)
{
    return xsalsa20(c, m, mlen, n, k);
}
