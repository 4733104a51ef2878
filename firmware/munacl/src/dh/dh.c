/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "internal.h"

int crypto_dh_curve25519_keypair(unsigned char *pk, unsigned char *sk)
{
    randombytes(sk, 32);
    return crypto_scalarmult_curve25519_base(pk, sk);
}

int crypto_dh_curve25519(unsigned char *s, const unsigned char *pk, const unsigned char *sk)
{
    return crypto_scalarmult_curve25519(s, sk, pk);
}
