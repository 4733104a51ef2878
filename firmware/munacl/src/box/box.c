/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* NaCl's crypto_box: X25519, HSalsa20, then the secret box. */
#include "internal.h"

int crypto_box_curve25519xsalsa20poly1305_keypair(unsigned char *pk, unsigned char *sk)
{
    return crypto_dh_curve25519_keypair(pk, sk);
}

int crypto_box_curve25519xsalsa20poly1305_beforenm(unsigned char *k, const unsigned char *pk,
                                                   const unsigned char *sk)
{
    static const unsigned char zero[16];
    unsigned char shared[32];
    crypto_scalarmult_curve25519(shared, sk, pk);
    crypto_core_hsalsa20(k, zero, shared, munacl_sigma);
    munacl_wipe(shared, sizeof shared);
    return 0;
}

int crypto_box_curve25519xsalsa20poly1305_afternm(unsigned char *c, const unsigned char *m,
                                                  size_t mlen, const unsigned char *n,
                                                  const unsigned char *k)
{
    return crypto_secretbox_xsalsa20poly1305(c, m, mlen, n, k);
}

int crypto_box_curve25519xsalsa20poly1305_open_afternm(unsigned char *m, const unsigned char *c,
                                                       size_t clen, const unsigned char *n,
                                                       const unsigned char *k)
{
    return crypto_secretbox_xsalsa20poly1305_open(m, c, clen, n, k);
}

int crypto_box_curve25519xsalsa20poly1305(unsigned char *c, const unsigned char *m, size_t mlen,
                                          const unsigned char *n, const unsigned char *pk,
                                          const unsigned char *sk)
{
    unsigned char k[32];
    crypto_box_curve25519xsalsa20poly1305_beforenm(k, pk, sk);
    int result = crypto_secretbox_xsalsa20poly1305(c, m, mlen, n, k);
    munacl_wipe(k, sizeof k);
    return result;
}

int crypto_box_curve25519xsalsa20poly1305_open(unsigned char *m, const unsigned char *c,
                                               size_t clen, const unsigned char *n,
                                               const unsigned char *pk, const unsigned char *sk)
{
    unsigned char k[32];
    crypto_box_curve25519xsalsa20poly1305_beforenm(k, pk, sk);
    int result = crypto_secretbox_xsalsa20poly1305_open(m, c, clen, n, k);
    munacl_wipe(k, sizeof k);
    return result;
}
