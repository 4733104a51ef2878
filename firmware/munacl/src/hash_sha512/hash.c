/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* SHA-512 (FIPS 180-4): padding, and the state as NaCl's bytes. */
#include "internal.h"

static void store(unsigned char *out, const uint64_t *words, size_t bytes)
{
    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t value = __builtin_bswap64(words[i]);
        memcpy(out + 8 * i, &value, 8);
    }
}

void munacl_sha512_finish(unsigned char *out, size_t out_bytes, uint64_t state[8],
                          const unsigned char *m, size_t mlen, size_t before)
{
    unsigned char last[128];
    munacl_sha512_blocks(state, m, mlen / 128);
    size_t rest = mlen % 128;
    memset(last, 0, sizeof last);
    if (rest) /* m may be NULL where there is nothing of it */
        memcpy(last, m + mlen - rest, rest);
    last[rest] = 0x80;
    if (rest >= 112) {
        munacl_sha512_blocks(state, last, 1);
        memset(last, 0, sizeof last);
    }
    /* No message is longer: 2^32 B are all that a Cortex-M3 addresses. */
    uint32_t bytes = (uint32_t)(before + mlen);
    uint32_t bits = __builtin_bswap32(bytes << 3), high = __builtin_bswap32(bytes >> 29);
    memcpy(last + 124, &bits, 4);
    memcpy(last + 120, &high, 4);
    munacl_sha512_blocks(state, last, 1);
    store(out, state, out_bytes);
}

MUNACL_INNER void hash(unsigned char *out, const unsigned char *m, size_t mlen)
{
    uint64_t state[8];
    memcpy(state, munacl_sha512_initial, sizeof state);
    munacl_sha512_finish(out, 64, state, m, mlen, 0);
}

int crypto_hash_sha512(unsigned char *out, const unsigned char *m, size_t mlen)
{
    hash(out, m, mlen);
    return MUNACL_FORGET(0, MUNACL_HASH);
}

MUNACL_INNER void hashblocks(unsigned char *statebytes, const unsigned char *m, size_t mlen)
{
    uint64_t state[8];
    for (int i = 0; i < 8; i++) {
        uint64_t value;
        memcpy(&value, statebytes + 8 * i, 8);
        state[i] = __builtin_bswap64(value);
    }
    munacl_sha512_blocks(state, m, mlen / 128);
    store(statebytes, state, 64);
}

size_t crypto_hashblocks_sha512(unsigned char *statebytes, const unsigned char *m, size_t mlen)
{
    hashblocks(statebytes, m, mlen);
    return (size_t)MUNACL_FORGET((int)(mlen % 128), MUNACL_HASH);
}
