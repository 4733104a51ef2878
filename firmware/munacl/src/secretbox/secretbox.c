/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* XSalsa20-Poly1305 with NaCl's zero bytes: the first 32 bytes of the stream are Poly1305's key. */
#include "internal.h"

int crypto_secretbox_xsalsa20poly1305(unsigned char *c, const unsigned char *m, size_t mlen,
                                      const unsigned char *n, const unsigned char *k)
{
    if (mlen < 32)
        return -1;
    crypto_stream_xsalsa20_xor(c, m, mlen, n, k);
    crypto_onetimeauth_poly1305(c + 16, c + 32, mlen - 32, c);
    memset(c, 0, 16);
    return 0;
}

int crypto_secretbox_xsalsa20poly1305_open(unsigned char *m, const unsigned char *c, size_t clen,
                                           const unsigned char *n, const unsigned char *k)
{
    unsigned char subkey[32], key[32];
    if (clen >= 32) {
        crypto_core_hsalsa20(subkey, n, k, munacl_sigma);
        crypto_stream_salsa20(key, 32, n + 16, subkey);
        int forged = crypto_onetimeauth_poly1305_verify(c + 16, c + 32, clen - 32, key);
        munacl_wipe(key, sizeof key);
        MUNACL_DECLASSIFY(&forged, sizeof forged);
        if (!forged) {
            crypto_stream_salsa20_xor(m, c, clen, n + 16, subkey);
            munacl_wipe(subkey, sizeof subkey);
            memset(m, 0, 32);
            return 0;
        }
        munacl_wipe(subkey, sizeof subkey);
    }
    munacl_wipe(m, clen);
    return -1;
}
