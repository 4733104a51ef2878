/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "fe25519.h"

void MUNACL_TWIN(munacl_product)(uint32_t out[17], const munacl_fe a, const munacl_fe b)
{
    uint16_t x[16], y[16], product[32];
    memcpy(x, a, 32);
    memcpy(y, b, 32);
    uint64_t sum = 0;
    for (int k = 0; k < 31; k++) {
        for (int i = k < 16 ? 0 : k - 15; i <= k && i < 16; i++)
            sum += munacl_mul16(x[i], y[k - i]);
        product[k] = (uint16_t)sum;
        sum >>= 16;
    }
    product[31] = (uint16_t)sum;
    memcpy(out, product, 64);
    out[16] = 0;
}
