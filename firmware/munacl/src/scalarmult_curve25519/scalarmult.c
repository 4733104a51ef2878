/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* X25519 (RFC 7748 section 5). */
#include "ladder.h"

MUNACL_INNER void multiply(unsigned char *q, const unsigned char *n, const unsigned char *p)
{
    static const munacl_fe_step quotient[] = {FE(MUL, 0, 0, 1), FE(END, 0, 0, 0)};
    munacl_fe slots[2];
    uint32_t scalar[8];
    munacl_copy32(slots[0], p);
    munacl_copy32(scalar, n);
    slots[0][7] &= 0x7fffffff;
    munacl_x25519_ladder(slots, scalar);
    munacl_fe_invert(slots[1]);
    munacl_fe_run(slots, quotient, 0);
    munacl_fe_freeze(slots[0]);
    munacl_copy32(q, slots[0]);
}

int crypto_scalarmult_curve25519(unsigned char *q, const unsigned char *n, const unsigned char *p)
{
    multiply(q, n, p);
    return MUNACL_FORGET(0, MUNACL_X25519);
}
