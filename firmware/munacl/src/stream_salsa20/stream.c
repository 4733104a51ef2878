/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Salsa20 and XSalsa20 as streams. */
#include "internal.h"

const unsigned char munacl_sigma[16] = "expand 32-byte k";

/* The stream, xored with m unless that is NULL. */
MUNACL_INNER void blocks(unsigned char *c, const unsigned char *m, size_t mlen,
                         const unsigned char *n, const unsigned char *k)
{
    uint32_t in[16];
    unsigned char block[64], input[16];
    memset(input, 0, sizeof input);
    memcpy(input, n, 8);
    munacl_salsa20_words(in, input, k, munacl_sigma);
    while (mlen) {
        size_t bytes = mlen < 64 ? mlen : 64;
        unsigned char *to = m || bytes < 64 ? block : c;
        munacl_salsa20_block(to, in);
        if (m) {
            size_t i = 0;
            for (; i + 4 <= bytes; i += 4) {
                uint32_t word = munacl_load32(m + i) ^ munacl_load32(block + i);
                memcpy(c + i, &word, 4);
            }
            for (; i < bytes; i++)
                c[i] = m[i] ^ block[i];
            m += bytes;
        } else if (to != c) {
            memcpy(c, block, bytes);
        }
        in[8]++;
        in[9] += in[8] == 0;
        c += bytes;
        mlen -= bytes;
    }
}

static int stream(unsigned char *c, const unsigned char *m, size_t mlen, const unsigned char *n,
                  const unsigned char *k)
{
    blocks(c, m, mlen, n, k);
    return MUNACL_FORGET(0, MUNACL_STREAM);
}

static int xsalsa20(unsigned char *c, const unsigned char *m, size_t mlen, const unsigned char *n,
                    const unsigned char *k)
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
