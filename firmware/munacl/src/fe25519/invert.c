/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Inversion by division steps (D. J. Bernstein and B.-Y. Yang, "Fast constant-time gcd computation
 * and modular inversion"), with delta beginning at 1/2: 590 steps suffice for 256 bits (P. Wuille,
 * "Bounds on divsteps iterations in safegcd"). Fifteen steps at a time give a matrix of 16-bit
 * entries, which is applied to digits of 15 bits: no product needs more than 32 bits, and the
 * division by 2^15 drops a digit. */
#include "fe25519.h"

enum { BITS = 15, DIGITS = 18, BATCHES = 40, MASK = (1 << BITS) - 1, INVERSE_OF_19 = 18971 };

/* a = (u a + v b) / 2^15, b = (q a + r b) / 2^15, for m = {u, v, q, r}. If modular is all ones,
 * multiples of p = 2^255 - 19 make the division exact, otherwise it is. */
static void apply(int32_t *restrict a, int32_t *restrict b, const int32_t m[4], int32_t modular)
{
    const int32_t u = m[0], v = m[1], q = m[2], r = m[3];
    int32_t first = u * a[0] + v * b[0], second = q * a[0] + r * b[0];
    int32_t first_p = ((first & MASK) * INVERSE_OF_19) & MASK & modular;
    int32_t second_p = ((second & MASK) * INVERSE_OF_19) & MASK & modular;
    first = (first - 19 * first_p) >> BITS;
    second = (second - 19 * second_p) >> BITS;
    for (int i = 1; i < DIGITS; i++) {
        int32_t x = a[i], y = b[i];
        first += u * x + v * y;
        second += q * x + r * y;
        a[i - 1] = first & MASK;
        b[i - 1] = second & MASK;
        first >>= BITS;
        second >>= BITS;
    }
    /* The upper digit of p's multiples, 2^255. */
    first_p += a[DIGITS - 2];
    second_p += b[DIGITS - 2];
    a[DIGITS - 2] = first_p & MASK;
    b[DIGITS - 2] = second_p & MASK;
    a[DIGITS - 1] = first + (first_p >> BITS);
    b[DIGITS - 1] = second + (second_p >> BITS);
}

/* a and b of a word a + 2^16 b. Both are from 1 - 2^15 to 2^15: after i steps an entry of the
 * matrix is at most 2^i in magnitude, and it is not -2^i, since no entry begins as -1 and a step,
 * which halves a sum of two, makes -1 of two of them only. */
static void unpack(int32_t out[2], uint32_t word)
{
    int32_t low = (int32_t)((word + 0x7fff) & 0xffff) - 0x7fff;
    int32_t high = (int32_t)(((word - (uint32_t)low) >> 16) + 0x7fff) & 0xffff;
    out[0] = low;
    out[1] = high - 0x7fff;
}

void munacl_fe_invert(munacl_fe a)
{
    int32_t f[DIGITS], g[DIGITS], d[DIGITS], e[DIGITS];
    munacl_fe_freeze(a);
    uint64_t bits = 0;
    for (int i = 0, word = 0, held = 0; i < DIGITS; i++) {
        if (held < BITS && word < 8) {
            bits |= (uint64_t)a[word++] << held;
            held += 32;
        }
        g[i] = (int32_t)(bits & MASK);
        bits >>= BITS;
        held -= BITS;
        f[i] = i == 0 ? MASK + 1 - 19 : MASK;
        d[i] = e[i] = 0;
    }
    f[DIGITS - 1] = 0;
    e[0] = 1;
    int32_t zeta = -1; /* -(delta + 1/2) */
    for (int batch = 0; batch < BATCHES; batch++) {
        /* f = (u f + v g) / 2^15, g = (q f + r g) / 2^15, u and v in one word, q and r in another:
         * u + 2^16 v modulo 2^32. */
        uint32_t uv = 1, qr = 0x10000;
        int32_t low_f = f[0], low_g = g[0];
        for (int step = 0; step < BITS; step++) {
            /* g += f times 1, -1 or, where g is even, 0. */
            int32_t negative = zeta >> 31, odd = -(low_g & 1), factor = (negative | 1) & odd;
            low_g += low_f * factor;
            qr += uv * (uint32_t)factor;
            int32_t swap = negative & odd;
            zeta = (zeta ^ swap) - 1;
            low_f += low_g & swap;
            uv += qr & (uint32_t)swap;
            low_g >>= 1;
            uv *= 2;
        }
        int32_t matrix[4];
        unpack(matrix, uv);
        unpack(matrix + 2, qr);
        apply(f, g, matrix, 0);
        apply(d, e, matrix, -1);
    }
    /* f is 1 or -1 (p for 0, whose d is 0), and d f the inverse, below 41 p in magnitude. */
    int32_t sign = f[DIGITS - 1] >> 31, carry = -19 * 64;
    bits = 0;
    for (int i = 0, word = 0, held = 0; i < DIGITS; i++) {
        carry += (d[i] ^ sign) - sign;
        if (i == DIGITS - 1) {
            /* Bits from 2^255 on, which count 19 times. */
            uint32_t above = (uint32_t)(carry + 64);
            a[7] = (uint32_t)bits;
            bits = 0;
            uint32_t fold = above * 19;
            for (int j = 0; j < 8; j++) {
                bits += (uint64_t)a[j] + fold;
                a[j] = (uint32_t)bits;
                bits >>= 32;
                fold = 0;
            }
            break;
        }
        bits |= (uint64_t)(carry & MASK) << held;
        carry >>= BITS;
        held += BITS;
        if (held >= 32) {
            a[word++] = (uint32_t)bits;
            bits >>= 32;
            held -= 32;
        }
    }
    munacl_wipe(f, sizeof f);
    munacl_wipe(g, sizeof g);
    munacl_wipe(d, sizeof d);
    munacl_wipe(e, sizeof e);
}
