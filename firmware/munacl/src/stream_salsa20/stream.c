/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Salsa20 and XSalsa20 as streams. */
#include "internal.h"

const unsigned char munacl_sigma[16] = "expand 32-byte k";

int crypto_stream_salsa20_xor(unsigned char *c, const unsigned char *m, size_t mlen,
                              const unsigned char *n, const unsigned char *k)
{
    uint32_t in[16], block[16];
    static const unsigned char zero[16];
    munacl_salsa20_words(in, zero, k, munacl_sigma);
    in[6] = munacl_load32(n);
    in[7] = munacl_load32(n + 4);
    while (mlen) {
        munacl_salsa20_block(block, in);
        size_t bytes = mlen < 64 ? mlen : 64;
        if (bytes == 64) {
            for (int i = 0; i < 16; i++) {
                uint32_t word = munacl_load32(m + 4 * i) ^ block[i];
                memcpy(c + 4 * i, &word, 4);
            }
        } else {
            for (size_t i = 0; i < bytes; i++)
                c[i] = m[i] ^ (unsigned char)(block[i >> 2] >> (8 * (i & 3)));
        }
        in[8]++;
        in[9] += in[8] == 0;
        m += bytes;
        c += bytes;
        mlen -= bytes;
    }
    munacl_wipe(in, sizeof in);
    munacl_wipe(block, sizeof block);
    return 0;
}

int crypto_stream_salsa20(unsigned char *c, size_t clen, const unsigned char *n,
                          const unsigned char *k)
{
    memset(c, 0, clen);
    return crypto_stream_salsa20_xor(c, c, clen, n, k);
}

int crypto_stream_xsalsa20_xor(unsigned char *c, const unsigned char *m, size_t mlen,
                               const unsigned char *n, const unsigned char *k)
{
    unsigned char subkey[32];
    crypto_core_hsalsa20(subkey, n, k, munacl_sigma);
    crypto_stream_salsa20_xor(c, m, mlen, n + 16, subkey);
    munacl_wipe(subkey, sizeof subkey);
    return 0;
}

int crypto_stream_xsalsa20(unsigned char *c, size_t clen, const unsigned char *n,
                           const unsigned char *k)
{
    memset(c, 0, clen);
    return crypto_stream_xsalsa20_xor(c, c, clen, n, k);
}
