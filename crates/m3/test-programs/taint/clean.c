/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Constant-time code: nothing is to be reported at any optimisation level. */
#include "warifu_m3.h"

#define OWN __attribute__((noinline, noclone))

uint32_t key[8] = {
    0x11223344, 0x55667788, 0x99aabbcc, 0xddeeff00, 0x0f1e2d3c, 0x4b5a6978, 0x8796a5b4, 0xc3d2e1f0,
};
uint32_t result[16];
void *memcpy(void *to, const void *from, size_t bytes);

static uint32_t hidden(uint32_t value)
{
    /* The compiler must not see that a mask has two values. */
    __asm__("" : "+r"(value));
    return value;
}

OWN static uint32_t choose(uint32_t bit, uint32_t one, uint32_t other)
{
    const uint32_t mask = hidden(-(bit & 1));
    return (one & mask) | (other & ~mask);
}

OWN static uint32_t differs(const uint8_t *a, const uint8_t *b, size_t bytes)
{
    uint32_t all = 0;
    for (size_t i = 0; i < bytes; i++)
        all |= a[i] ^ b[i];
    return (hidden(all) + 0xff) >> 8 & 1;
}

OWN static void swap_if(uint32_t bit, uint32_t *a, uint32_t *b, size_t words)
{
    const uint32_t mask = hidden(-(bit & 1));
    for (size_t i = 0; i < words; i++) {
        const uint32_t change = mask & (a[i] ^ b[i]);
        a[i] ^= change;
        b[i] ^= change;
    }
}

/* As a Montgomery ladder: a public number of steps, each with a conditional swap by a secret bit
 * and arithmetic. */
OWN static void ladder(uint32_t *out, const uint32_t *scalar)
{
    uint32_t a[4] = {1, 0, 0, 0}, b[4] = {9, 2, 3, 4}, swapped = 0;
    for (int i = 127; i >= 0; i--) {
        const uint32_t bit = scalar[i >> 5] >> (i & 31) & 1;
        swap_if(swapped ^ bit, a, b, 4);
        swapped = bit;
        uint32_t carry = 0;
        for (int k = 0; k < 4; k++) {
            const uint32_t low = a[k] * (b[k] & 0xffff), sum = low + carry;
            carry = (low >> 16) + (sum >> 31);
            b[k] += sum ^ a[k];
            a[k] = sum;
        }
    }
    swap_if(swapped, a, b, 4);
    memcpy(out, a, sizeof a);
}

#define QUARTER(a, b, c, d)                                            \
    a += b, d = (d ^ a) << 16 | (d ^ a) >> 16,                         \
    c += d, b = (b ^ c) << 12 | (b ^ c) >> 20,                         \
    a += b, d = (d ^ a) << 8 | (d ^ a) >> 24,                          \
    c += d, b = (b ^ c) << 7 | (b ^ c) >> 25

/* As ChaCha: additions, rotations and exclusive or, with a state that the compiler spills. */
OWN static void permute(uint32_t x[16], int rounds)
{
    for (int i = 0; i < rounds; i += 2) {
        for (int k = 0; k < 4; k++)
            QUARTER(x[k], x[k + 4], x[k + 8], x[k + 12]);
        for (int k = 0; k < 4; k++)
            QUARTER(x[k], x[4 + (k + 1) % 4], x[8 + (k + 2) % 4], x[12 + (k + 3) % 4]);
    }
}

/* A 64-bit sum by halves, and a comparison of it, without a branch. */
OWN static uint32_t below(const uint32_t a[2], const uint32_t b[2])
{
    const uint64_t x = (uint64_t)a[1] << 32 | a[0], y = (uint64_t)b[1] << 32 | b[0];
    return (uint32_t)((x ^ ((x ^ y) | ((x - y) ^ y))) >> 63);
}

#ifndef REPEAT
#define REPEAT 1
#endif

int main(void)
{
    WARIFU_POISON(key, sizeof key);
    for (int i = 0; i < REPEAT; i++) {
        uint32_t state[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
        memcpy(state + 4, key, sizeof key);
        state[12] = i;
        permute(state, 20);
        memcpy(result, state, sizeof result);
    }
    result[0] ^= choose(key[0], key[1], key[2]);
    result[1] ^= differs((const uint8_t *)key, (const uint8_t *)result, sizeof key);
    result[3] ^= below(key, key + 2);
    ladder(result + 4, key);
    /* The ciphertext is declassified before it decides a branch. */
    WARIFU_UNPOISON(result, sizeof result);
    uint32_t verdict = result[1] & 1;
    return verdict == 2 || (result[4] == 1 && result[5] == 2 && result[6] % result[7] == 3);
}
