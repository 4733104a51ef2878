/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The Salsa20 core and HSalsa20 (D. J. Bernstein, "Salsa20 specification", "Extending the Salsa20
 * nonce"). */
#include "internal.h"

void munacl_salsa20_words(uint32_t x[16], const unsigned char *in, const unsigned char *k,
                          const unsigned char *c)
{
    x[0] = munacl_load32(c);
    x[5] = munacl_load32(c + 4);
    x[10] = munacl_load32(c + 8);
    x[15] = munacl_load32(c + 12);
    x[1] = munacl_load32(k);
    x[2] = munacl_load32(k + 4);
    x[3] = munacl_load32(k + 8);
    x[4] = munacl_load32(k + 12);
    x[11] = munacl_load32(k + 16);
    x[12] = munacl_load32(k + 20);
    x[13] = munacl_load32(k + 24);
    x[14] = munacl_load32(k + 28);
    x[6] = munacl_load32(in);
    x[7] = munacl_load32(in + 4);
    x[8] = munacl_load32(in + 8);
    x[9] = munacl_load32(in + 12);
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
