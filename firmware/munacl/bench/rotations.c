/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rotations as the paper on a NaCl for the Cortex-M3 has them (section 3.2): cycles of SHA-512 of
 * 1024 bytes whose rotations and shifts go bit by bit, as on an AVR (`bitwise CYCLES`), and its
 * Algorithms 1 to 3 (`algorithm1 WRONG LEAST MOST`: of rotations by 0 to 63 bits, how many are
 * wrong, and cycles). The paper does not say where the value lies. Registers have no index, so that
 * Algorithm 3 has to put it into memory; each algorithm also has a form that finds it there and
 * leaves it there. */
#define MUNACL_TWINS
#include "internal.h"
#include "start.h"

#define CYCCNT (*(volatile uint32_t *)0xe0001004)

__attribute__((noinline)) static uint64_t rotate_by_bits(uint64_t value, unsigned bits)
{
    for (; bits; bits--) {
        uint64_t lowest = value << 63;
        __asm__("" : "+r"(lowest));
        value = value >> 1 | lowest;
    }
    return value;
}

__attribute__((noinline)) static uint64_t shift_by_bits(uint64_t value, unsigned bits)
{
    for (; bits; bits--) {
        __asm__("" : "+r"(value));
        value >>= 1;
    }
    return value;
}

#define MUNACL_ROTATE64 rotate_by_bits
#define MUNACL_SHIFT64 shift_by_bits
#include "hash_sha512/blocks_portable.c"

void randombytes(unsigned char *out, unsigned long long bytes)
{
    memset(out, 0, bytes);
}

/* Algorithm 1: 64-bit shifts. Those by 64 bits, which C does not define, are two. */
__attribute__((noinline)) static uint64_t algorithm1(uint64_t a, unsigned n)
{
    return a << 1 << (63 - n) | a >> n;
}

__attribute__((noinline)) static void algorithm1_memory(uint32_t a[2], unsigned n)
{
    uint64_t value = (uint64_t)a[1] << 32 | a[0];
    value = value << 1 << (63 - n) | value >> n;
    a[0] = (uint32_t)value;
    a[1] = (uint32_t)(value >> 32);
}

static uint64_t join(uint32_t a0, uint32_t a1, unsigned n)
{
    uint32_t low = a1 << 1 << (31 - n) | a0 >> n;
    uint32_t high = a0 << 1 << (31 - n) | a1 >> n;
    return (uint64_t)high << 32 | low;
}

static void join_memory(uint32_t a[2], uint32_t a0, uint32_t a1, unsigned n)
{
    a[0] = a1 << 1 << (31 - n) | a0 >> n;
    a[1] = a0 << 1 << (31 - n) | a1 >> n;
}

/* Algorithm 2: the halves are exchanged by a branch. */
__attribute__((noinline)) static uint64_t algorithm2(uint64_t a, unsigned n)
{
    uint32_t a0 = (uint32_t)a, a1 = (uint32_t)(a >> 32);
    if (n >= 32) {
        /* Keeps compilers from a conditional instruction. */
        __asm__ volatile("nop");
        uint32_t other = a0;
        a0 = a1;
        a1 = other;
        n -= 32;
    }
    return join(a0, a1, n);
}

__attribute__((noinline)) static void algorithm2_memory(uint32_t a[2], unsigned n)
{
    uint32_t a0 = a[0], a1 = a[1];
    if (n >= 32) {
        __asm__ volatile("nop");
        a0 = a[1];
        a1 = a[0];
        n -= 32;
    }
    join_memory(a, a0, a1, n);
}

/* Algorithm 3: the halves are taken by an index. */
__attribute__((noinline)) static uint64_t algorithm3(uint64_t a, unsigned n)
{
    volatile uint32_t half[2] = {(uint32_t)a, (uint32_t)(a >> 32)};
    unsigned index = n >> 5 & 1;
    uint32_t a0 = half[index], a1 = half[index ^ 1];
    return join(a0, a1, n & 31);
}

__attribute__((noinline)) static void algorithm3_memory(uint32_t a[2], unsigned n)
{
    unsigned index = n >> 5 & 1;
    uint32_t a0 = a[index], a1 = a[index ^ 1];
    join_memory(a, a0, a1, n & 31);
}

static void row(const char *name, uint64_t (*in_registers)(uint64_t, unsigned),
                void (*in_memory)(uint32_t[2], unsigned))
{
    const uint64_t value = 0x0123456789abcdefull;
    uint32_t wrong = 0, least = UINT32_MAX, most = 0;
    for (unsigned n = 0; n < 64; n++) {
        uint32_t half[2] = {(uint32_t)value, (uint32_t)(value >> 32)}, begin, cycles;
        uint64_t got;
        if (in_registers) {
            begin = CYCCNT;
            got = in_registers(value, n);
            cycles = CYCCNT - begin;
        } else {
            begin = CYCCNT;
            in_memory(half, n);
            cycles = CYCCNT - begin;
            got = (uint64_t)half[1] << 32 | half[0];
        }
        wrong += got != rotate_by_bits(value, n);
        least = cycles < least ? cycles : least;
        most = cycles > most ? cycles : most;
    }
    munacl_print(name);
    munacl_print(" ");
    munacl_print_number(wrong);
    munacl_print(" ");
    munacl_print_number(least);
    munacl_print(" ");
    munacl_print_number(most);
    munacl_print("\n");
}

int main(void)
{
    static unsigned char m[1152];
    uint64_t state[8];
    *(volatile uint32_t *)0xe000edfc |= 1 << 24;
    *(volatile uint32_t *)0xe0001000 |= 1;
    memcpy(state, munacl_sha512_initial, 64);
    uint32_t begin = CYCCNT;
    munacl_sha512_blocks_portable(state, m, 9);
    uint32_t cycles = CYCCNT - begin;
    munacl_print("bitwise ");
    munacl_print_number(cycles);
    munacl_print("\n");
    row("algorithm1", algorithm1, 0);
    row("algorithm2", algorithm2, 0);
    row("algorithm3", algorithm3, 0);
    row("algorithm1_memory", 0, algorithm1_memory);
    row("algorithm2_memory", 0, algorithm2_memory);
    row("algorithm3_memory", 0, algorithm3_memory);
    return 0;
}
