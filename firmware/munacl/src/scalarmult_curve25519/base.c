/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* X25519 of the base point, by the map from Ed25519's curve (RFC 7748 section 4.1). */
#include "sign_ed25519/ed25519.h"

MUNACL_INNER void multiply(unsigned char *q, const unsigned char *n)
{
    static const munacl_fe_step map[] = {FE(ADD, H, Z, Y), FE(SUB, Z, Z, Y), FE(END, 0, 0, 0)};
    static const munacl_fe_step quotient[] = {FE(MUL, H, H, Z), FE(END, 0, 0, 0)};
    munacl_fe slots[MUNACL_ED_SLOTS];
    unsigned char s[32];
    munacl_copy32(s, n);
    s[0] &= 248;
    s[31] = (s[31] & 63) | 64;
    munacl_ed_base(slots, s);
    munacl_fe_run(slots, map, 0);
    munacl_fe_invert(slots[Z]);
    munacl_fe_run(slots, quotient, 0);
    munacl_fe_freeze(slots[H]);
    munacl_copy32(q, slots[H]);
}

int crypto_scalarmult_curve25519_base(unsigned char *q, const unsigned char *n)
{
    multiply(q, n);
    return MUNACL_FORGET(0, MUNACL_BASE);
}
