/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "internal.h"

int crypto_scalarmult_curve25519_base(unsigned char *q, const unsigned char *n)
{
    static const unsigned char nine[32] = {9};
    return crypto_scalarmult_curve25519(q, n, nine);
}
