/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the primitives share. Everything here is little-endian, as the Cortex-M3 and the hosts of
 * the tests are. */
#ifndef MUNACL_INTERNAL_H
#define MUNACL_INTERNAL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "munacl.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "munacl needs a little-endian processor"
#endif

/* Called from another file. Link-time optimisation would put such functions into their callers,
 * whose frames would reach further down than MUNACL_FORGET() clears. */
#define MUNACL_APART __attribute__((noinline))
#define MUNACL_PUBLIC(name) MUNACL_APART extern __typeof__(name) name
MUNACL_PUBLIC(crypto_verify_16);
MUNACL_PUBLIC(crypto_verify_32);
MUNACL_PUBLIC(crypto_core_salsa20);
MUNACL_PUBLIC(crypto_core_hsalsa20);
MUNACL_PUBLIC(crypto_stream_salsa20);
MUNACL_PUBLIC(crypto_stream_salsa20_xor);
MUNACL_PUBLIC(crypto_stream_xsalsa20);
MUNACL_PUBLIC(crypto_stream_xsalsa20_xor);
MUNACL_PUBLIC(crypto_onetimeauth_poly1305);
MUNACL_PUBLIC(crypto_onetimeauth_poly1305_verify);
MUNACL_PUBLIC(crypto_hash_sha512);
MUNACL_PUBLIC(crypto_hashblocks_sha512);
MUNACL_PUBLIC(crypto_auth_hmacsha512256);
MUNACL_PUBLIC(crypto_auth_hmacsha512256_verify);
MUNACL_PUBLIC(crypto_scalarmult_curve25519);
MUNACL_PUBLIC(crypto_scalarmult_curve25519_base);
MUNACL_PUBLIC(crypto_scalarmult_curve25519_checked);
MUNACL_PUBLIC(crypto_secretbox_xsalsa20poly1305);
MUNACL_PUBLIC(crypto_secretbox_xsalsa20poly1305_open);
MUNACL_PUBLIC(crypto_sign_ed25519_keypair);
MUNACL_PUBLIC(crypto_sign_ed25519_seed_keypair);
MUNACL_PUBLIC(crypto_sign_ed25519);

/* The portable twin of an assembly routine: the routine itself where there is no assembly, and
 * NAME_portable in the test that holds the two against each other. */
#ifdef MUNACL_TWINS
#define MUNACL_TWIN(name) name##_portable
#else
#define MUNACL_TWIN(name) name
#endif

/* A value that the compiler must not reason about, so that it makes no branch of it. */
static inline uint32_t munacl_opaque(uint32_t value)
{
    __asm__("" : "+r"(value));
    return value;
}

/* The product of two 16-bit values. Without the barrier compilers see that it is widened, and take
 * UMULL, whose time on the Cortex-M3 depends on its operands. */
static inline uint32_t munacl_mul16(uint32_t a, uint32_t b)
{
    return munacl_opaque(a * b);
}

/* What a comparison of secrets gives away on purpose. Tests of constant time define it. */
#ifndef MUNACL_DECLASSIFY
#define MUNACL_DECLASSIFY(at, bytes) ((void)0)
#endif

static inline uint32_t munacl_load32(const unsigned char *from)
{
    uint32_t value;
    memcpy(&value, from, 4);
    return value;
}

/* Overwrites secrets; the compiler may not leave it out. */
MUNACL_APART void munacl_wipe(void *at, size_t bytes);
/* Overwrites the stack below, 64 bytes a piece, and the registers that a call may change; returns
 * `result`. The end of each call that handles secrets, of which compilers and assembly spill some:
 * the work is in a function of its own, MUNACL_INNER, whose frame is below by then. tests/secrets.c
 * shows that nothing stays. */
MUNACL_APART int munacl_forget(int result, unsigned pieces);
#define MUNACL_INNER __attribute__((noinline)) static
#define MUNACL_FORGET(result, bytes) munacl_forget(result, ((bytes) + MUNACL_MORE + 63) / 64)
/* How far down each kind of call reaches with GCC's -Os; and how much further with clang and with
 * the levels for speed, up to -O3, or with -Os and options that make frames larger: frame pointers,
 * stack canaries, no unaligned access. Without optimisation every value passes through frames that
 * none of this bounds. */
#if defined(__arm__) && !defined(__OPTIMIZE__) && !defined(MUNACL_UNOPTIMISED)
#error "munacl: -O0 leaves secrets in memory: build with -Os, -Og, -O1, -O2 or -O3; to debug \
munacl itself, with -DMUNACL_UNOPTIMISED"
#endif
#if defined(__OPTIMIZE_SIZE__) && !defined(__clang__)
enum { MUNACL_MORE = 64 };
#else
enum { MUNACL_MORE = 320 };
#endif
#ifdef MUNACL_SMALL
enum { MUNACL_HASH = 576, MUNACL_AUTH = 640, MUNACL_X25519 = 896 };
enum { MUNACL_KEYPAIR = 1344, MUNACL_SIGN = 1472 };
#else
enum { MUNACL_HASH = 1472, MUNACL_AUTH = 1472, MUNACL_X25519 = 640, MUNACL_BASE = 896 };
enum { MUNACL_KEYPAIR = 1664, MUNACL_SIGN = 1792 };
#endif
enum { MUNACL_SALSA20 = 192, MUNACL_HSALSA20 = 128, MUNACL_STREAM = 320, MUNACL_POLY1305 = 384 };
enum { MUNACL_VERIFY = 64, MUNACL_RANDOM = 1024, MUNACL_RANDOM_BYTES = 256 };

/* The same for a function that leaves secrets in registers alone. */
static inline int munacl_forget_registers(int result)
{
#ifdef __arm__
    __asm__ volatile("movs r1, #0\n movs r2, #0\n movs r3, #0\n mov r12, r1"
                     : "+r"(result) : : "r1", "r2", "r3", "r12", "cc");
#endif
    return result;
}
/* Copies 32 bytes, of any alignment: a call is a tenth of what compilers make of memcpy. */
MUNACL_APART void munacl_copy32(void *to, const void *from);

/* Salsa20's function, 64 bytes a block: out = in after twenty rounds, plus in, xored with m unless
 * that is NULL. in[8] and in[9] count the blocks, of which there is one at least. `out` may equal
 * m. */
MUNACL_APART void munacl_salsa20_blocks(void *out, const void *m, size_t blocks, uint32_t in[16]);
/* One block of the words that constants, key and input make; 0. Leaves nothing of them behind. */
MUNACL_APART int munacl_salsa20_core(void *out, const unsigned char *in, const unsigned char *k,
                                     const unsigned char *c);
/* The words of constants, key and input. */
MUNACL_APART void munacl_salsa20_words(uint32_t x[16], const unsigned char *in,
                                       const unsigned char *k, const unsigned char *c);
extern const unsigned char munacl_sigma[16];

/* Poly1305's state: h < 2^130 + 2^129 in five words, so that h[4] is 5 at most; the clamped r, then
 * s. */
struct munacl_poly1305 {
    uint32_t h[5];
    uint32_t r[8];
};
/* Takes `blocks` blocks of 16 bytes, each with `top` (1 for whole blocks, or 0) behind it. Where
 * h[4] is above 5 before, or r not clamped, words of the sums overflow: the result is undefined. */
MUNACL_APART void munacl_poly1305_blocks(struct munacl_poly1305 *state, const unsigned char *m,
                                         size_t blocks, uint32_t top);

/* SHA-512: `state` in words, most significant half of each second. */
MUNACL_APART void munacl_sha512_blocks(uint64_t state[8], const unsigned char *m, size_t blocks);
/* The hash from a state after `before` bytes (a multiple of 128) and the rest of the message. */
MUNACL_APART void munacl_sha512_finish(unsigned char *out, size_t out_bytes, uint64_t state[8],
                                       const unsigned char *m, size_t mlen, size_t before);
extern const uint64_t munacl_sha512_initial[8];

#endif
