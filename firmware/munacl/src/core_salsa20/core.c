/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The Salsa20 core and HSalsa20 (D. J. Bernstein, "Salsa20 specification", "Extending the Salsa20
 * nonce"). */
#include "internal.h"

void munacl_salsa20_words(uint32_t x[16], const unsigned char *in, const unsigned char *k,
                          const unsigned char *c)
{
    for (int i = 0; i < 4; i++) {
        x[5 * i] = munacl_load32(c + 4 * i);
        x[1 + i] = munacl_load32(k + 4 * i);
        x[6 + i] = munacl_load32(in + 4 * i);
        x[11 + i] = munacl_load32(k + 16 + 4 * i);
    }
}

int crypto_core_salsa20(unsigned char *out, const unsigned char *in, const unsigned char *k,
                        const unsigned char *c)
{
    return munacl_salsa20_core(out, in, k, c);
}

MUNACL_INNER void hsalsa20(unsigned char *out, const unsigned char *in, const unsigned char *k,
                           const unsigned char *c)
{
    uint32_t x[16];
    munacl_salsa20_core(x, in, k, c);
    /* Without the sum at the end, of which these words of the input are public or constant. */
    for (int i = 0; i < 4; i++) {
        uint32_t diagonal = x[5 * i] - munacl_load32(c + 4 * i);
        uint32_t middle = x[6 + i] - munacl_load32(in + 4 * i);
        memcpy(out + 4 * i, &diagonal, 4);
        memcpy(out + 16 + 4 * i, &middle, 4);
    }
}

int crypto_core_hsalsa20(unsigned char *out, const unsigned char *in, const unsigned char *k,
                         const unsigned char *c)
{
    hsalsa20(out, in, k, c);
    return MUNACL_FORGET(0, MUNACL_HSALSA20);
}
