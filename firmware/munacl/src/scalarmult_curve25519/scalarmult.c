/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* X25519 (RFC 7748 section 5). */
#include "ladder.h"

int crypto_scalarmult_curve25519(unsigned char *q, const unsigned char *n, const unsigned char *p)
{
    static const uint32_t quotient[] = {FE(MUL, 3, 3, 1), FE(END, 0, 0, 0)};
    munacl_fe slots[7];
    uint32_t scalar[8];
    memcpy(slots[1], p, 32);
    memcpy(scalar, n, 32);
    slots[1][7] &= 0x7fffffff;
    munacl_x25519_ladder(slots + 1, scalar);
    munacl_wipe(scalar, sizeof scalar);
    munacl_fe_run(slots, munacl_fe_power_250, 0);
    munacl_fe_run(slots, munacl_fe_inverse, 0);
    munacl_fe_run(slots, quotient, 0);
    munacl_fe_freeze(slots[3]);
    memcpy(q, slots[3], 32);
    munacl_wipe(slots, sizeof slots);
    return 0;
}
