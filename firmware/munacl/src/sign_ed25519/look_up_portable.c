/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "ed25519.h"

void MUNACL_TWIN(munacl_ed_look_up)(munacl_fe out[3], uint32_t index)
{
    memset(out, 0, 96);
    for (uint32_t i = 0; i < MUNACL_ED_POINTS; i++) {
        /* All ones where i is the index: the difference is 0 then, and less 1 has its top bit. */
        uint32_t mask = munacl_opaque((uint32_t)((int32_t)((i ^ index) - 1) >> 31));
        for (int word = 0; word < 24; word++)
            out[word >> 3][word & 7] |= munacl_ed_table[i][word] & mask;
    }
}
