/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Integers of all widths, division, shifts, bit fields, and doubles by the compiler's library. */
#include <stdint.h>

void print(const char *text);
void print_hex(uint32_t value);

struct packed {
    unsigned first : 3, second : 11, third : 18;
    signed fourth : 7;
};

static volatile uint32_t seed = 12345;

static uint32_t next(void)
{
    uint32_t x = seed;
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    return seed = x;
}

static void show(const char *name, uint64_t value)
{
    print(name);
    print_hex((uint32_t)(value >> 32));
    print_hex((uint32_t)value);
    print("\n");
}

int main(void)
{
    uint64_t sum = 0;
    int64_t signed_sum = 0;
    for (int i = 0; i < 200; i++) {
        uint32_t a = next(), b = next() | 1;
        int32_t c = (int32_t)next(), d = (int32_t)(next() >> (i & 31)) | 1;
        uint64_t wide = (uint64_t)a << 32 | b;
        sum += a / b + a % b + wide / (b >> (i & 15) | 1) + wide % (a | 1);
        sum += (wide >> (i & 63)) + (wide << (i & 31));
        signed_sum += c / d + c % d + (int64_t)c * d;
        signed_sum += ((int64_t)wide >> (i & 63)) + (int16_t)a * (int8_t)b;
        sum ^= (uint64_t)a * b + __builtin_clz(a | 1) + __builtin_bswap32(b) + (uint8_t)(a >> 3);
    }
    show("sum    ", sum);
    show("signed ", (uint64_t)signed_sum);

    struct packed fields = {5, 1000, 0x2abcd, -33};
    for (int i = 0; i < 50; i++) {
        fields.first += 3, fields.second ^= fields.third;
        fields.third = fields.third * 5 + fields.second;
        fields.fourth -= fields.first;
    }
    show("fields ", (uint64_t)fields.first << 60 | (uint64_t)fields.second << 40 |
                        (uint64_t)fields.third << 12 | (uint8_t)fields.fourth);

    double x = 1.0, root = 2.0;
    for (int i = 1; i < 30; i++) {
        x += 1.0 / (i * x);
        root = (root + 2.0 / root) / 2;
    }
    union {
        double value;
        uint64_t bits;
    } real = {x}, square = {root};
    show("double ", real.bits);
    show("root   ", square.bits);
    float f = 0.1f;
    for (int i = 0; i < 20; i++)
        f = f * 1.5f - (float)i / 3;
    show("float  ", (uint64_t)(int64_t)(f * 1000));
    return 0;
}
