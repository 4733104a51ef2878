/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "internal.h"

/* h = (h + block) * r mod 2^130 - 5, by products of 16 by 16 bits. h stays below 2^130 + 2^129. */
void MUNACL_TWIN(munacl_poly1305_blocks)(struct munacl_poly1305 *state, const unsigned char *m,
                                         size_t blocks, uint32_t top)
{
    uint16_t r[8];
    memcpy(r, state->r, sizeof r);
    for (; blocks; blocks--, m += 16) {
        /* Nine digits of 16 bits; the ninth has at most four. */
        uint16_t h[9];
        uint64_t sum = 0;
        for (int i = 0; i < 4; i++) {
            sum += (uint64_t)state->h[i] + munacl_load32(m + 4 * i);
            h[2 * i] = (uint16_t)sum;
            h[2 * i + 1] = (uint16_t)(sum >> 16);
            sum >>= 32;
        }
        h[8] = (uint16_t)(state->h[4] + top + (uint32_t)sum);
        uint32_t product[9];
        uint16_t digits[18];
        sum = 0;
        for (int k = 0; k < 17; k++) {
            for (int i = k < 8 ? 0 : k - 7; i <= k && i < 9; i++)
                sum += munacl_mul16(h[i], r[k - i]);
            digits[k] = (uint16_t)sum;
            sum >>= 16;
        }
        digits[17] = (uint16_t)sum;
        memcpy(product, digits, 36);
        /* 2^130 = 5: what is above bit 130, times 5, as 4 times and once. */
        uint32_t low = product[4] & 3;
        product[4] &= ~3u;
        uint64_t carry = 0;
        for (int i = 0; i < 4; i++) {
            uint32_t above = product[4 + i], next = product[5 + i];
            carry += (uint64_t)product[i] + above + (above >> 2 | next << 30);
            state->h[i] = (uint32_t)carry;
            carry >>= 32;
        }
        /* Above the four words: product[8] holds the last bits of the product. */
        state->h[4] = low + (uint32_t)carry + product[8] + (product[8] >> 2);
    }
}
