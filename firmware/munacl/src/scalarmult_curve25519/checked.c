/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "fe25519/fe25519.h"

int crypto_scalarmult_curve25519_checked(unsigned char *q, const unsigned char *n,
                                         const unsigned char *p)
{
    /* p is public: whether its u-coordinate is below 2^255 - 19, the unused bit being zero. */
    munacl_fe u;
    munacl_copy32(u, p);
    munacl_fe_freeze(u);
    int refused = crypto_verify_32((const unsigned char *)u, p);
    crypto_scalarmult_curve25519(q, n, p);
    static const unsigned char zero[32];
    refused |= -1 - crypto_verify_32(q, zero);
    for (int i = 0; i < 32; i++)
        q[i] &= (unsigned char)~refused;
    return munacl_forget_registers(refused);
}
