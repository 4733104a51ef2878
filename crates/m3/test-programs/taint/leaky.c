/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Common leaks in C. The compiler may turn a condition into a branch or an IT block. */
#include "warifu_m3.h"

#define OWN __attribute__((noinline, noclone))

uint8_t key[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
static uint8_t box[256];
static uint32_t sink;
int modulus = 97;

static void touch(uint32_t value)
{
    *(volatile uint32_t *)&sink = value;
}

OWN static int early_exit(const uint8_t *a, const uint8_t *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (a[i] != b[i])
            return 1;
    }
    return 0;
}

OWN static uint32_t table(const uint8_t *from)
{
    return box[from[0]];
}

OWN static void histogram(const uint8_t *from)
{
    box[from[1]] = 1;
}

OWN static uint32_t wide_product(uint32_t a, uint32_t b)
{
    return (uint32_t)(((uint64_t)a * b) >> 32);
}

OWN static int remainder_of(int a)
{
    return a / modulus;
}

OWN static uint32_t square_and_multiply(uint32_t exponent)
{
    uint32_t value = 1;
    for (int i = 0; i < 8; i++) {
        value *= value;
        if (exponent >> i & 1) {
            value *= 3;
            touch(value);
        }
    }
    return value;
}

static void one(void)
{
    touch(1);
}

static void other(void)
{
    touch(2);
}

static void (*const jumps[2])(void) = {one, other};

OWN static void call_by(uint32_t bit)
{
    jumps[bit & 1]();
}

int main(void)
{
    uint32_t word;
    WARIFU_POISON(key, sizeof key);
    word = key[0] | (uint32_t)key[1] << 8 | (uint32_t)key[2] << 16 | (uint32_t)key[3] << 24;
    touch(early_exit(key, box, sizeof key));
    touch(table(key));
    histogram(key);
    touch(wide_product(word, 12345));
    touch(remainder_of((int)word));
    touch(square_and_multiply(word));
    call_by(word);
    return 0;
}
