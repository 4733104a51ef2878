/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Benchmark of a simulator's speed: rotations and additions as in ciphers, copies, a sort with
 * unpredictable branches, 32- and 64-bit multiplications, calls. About 350 million instructions. */
#include <stdint.h>
#include <string.h>

void print(const char *text);
void print_hex(uint32_t value);

static uint32_t state[16], numbers[512];
static uint8_t buffers[2][1024];

static uint32_t rotated(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static void quarter(uint32_t *s, int a, int b, int c, int d)
{
    s[b] ^= rotated(s[a] + s[d], 7);
    s[c] ^= rotated(s[b] + s[a], 9);
    s[d] ^= rotated(s[c] + s[b], 13);
    s[a] ^= rotated(s[d] + s[c], 18);
}

__attribute__((noinline)) static void cipher(uint32_t *s)
{
    for (int round = 0; round < 10; round++) {
        quarter(s, 0, 4, 8, 12), quarter(s, 5, 9, 13, 1);
        quarter(s, 10, 14, 2, 6), quarter(s, 15, 3, 7, 11);
        quarter(s, 0, 1, 2, 3), quarter(s, 5, 6, 7, 4);
        quarter(s, 10, 11, 8, 9), quarter(s, 15, 12, 13, 14);
    }
}

__attribute__((noinline)) static void sort(uint32_t *a, int n)
{
    for (int gap = n / 2; gap > 0; gap /= 2)
        for (int i = gap; i < n; i++) {
            uint32_t value = a[i];
            int j = i;
            for (; j >= gap && a[j - gap] > value; j -= gap)
                a[j] = a[j - gap];
            a[j] = value;
        }
}

__attribute__((noinline)) static uint64_t products(const uint32_t *a, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += (uint64_t)a[i] * a[n - 1 - i] + a[i] * 7u;
    return sum;
}

__attribute__((noinline)) static void mix(uint8_t *to, const uint8_t *from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (uint8_t)(to[i] + (from[i] ^ (i >> 2)));
}

int main(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < 16; i++)
        state[i] = 0x9e3779b9u * (uint32_t)(i + 1);
    for (int turn = 0; turn < 1500; turn++) {
        for (int i = 0; i < 512; i += 16) {
            cipher(state);
            memcpy(numbers + i, state, sizeof state);
        }
        sort(numbers, 512);
        sum += products(numbers, 512);
        mix(buffers[turn & 1], (const uint8_t *)numbers, 1024);
    }
    print_hex((uint32_t)(sum >> 32)), print_hex((uint32_t)sum);
    print_hex(buffers[0][77]), print("\n");
    return 0;
}
