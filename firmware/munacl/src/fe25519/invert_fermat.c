/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Inversion as a power: p - 2 = 2^255 - 21 = (2^250 - 1) * 2^5 + 11. */
#include "fe25519.h"

void munacl_fe_invert(munacl_fe a)
{
    static const munacl_fe_step rest[] = {FE(SQR, 4, 4, 5), FE(MUL, 2, 4, 3), FE(END, 0, 0, 0)};
    munacl_fe slots[7];
    munacl_copy32(slots[2], a);
    munacl_fe_run(slots, munacl_fe_power_250, 0);
    munacl_fe_run(slots, rest, 0);
    munacl_copy32(a, slots[2]);
    munacl_wipe(slots, sizeof slots);
}
