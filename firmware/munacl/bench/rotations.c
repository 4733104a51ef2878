/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cycles of SHA-512 of 1024 bytes whose rotations and shifts go bit by bit, as on an AVR. */
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

#define MUNACL_ROTATE64 rotate_by_bits
#include "hash_sha512/blocks_portable.c"

void randombytes(unsigned char *out, unsigned long long bytes)
{
    memset(out, 0, bytes);
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
    munacl_print_number(CYCCNT - begin);
    munacl_print("\n");
    return 0;
}
