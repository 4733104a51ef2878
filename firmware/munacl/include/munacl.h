/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* munacl: NaCl's functions for a Cortex-M3, constant time on that core.
 *
 * Names, arguments and results are NaCl's. Lengths are size_t, and those that crypto_sign and its
 * open write are NaCl's unsigned long long. Functions return 0, or -1 where they say so; the caller
 * owns all memory, and inputs may equal outputs where the comment says so. Arrays need no
 * alignment, but CCR.UNALIGN_TRP has to be 0, as it is after reset.
 * Nothing here allocates, and only the random generator has state: all functions but randombytes()
 * and crypto_*_keypair() are reentrant. Where a length is 0 its pointer may be NULL. */
#ifndef MUNACL_H
#define MUNACL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Compare in constant time: 0 if equal, -1 if not. */
int crypto_verify_16(const unsigned char *x, const unsigned char *y);
int crypto_verify_32(const unsigned char *x, const unsigned char *y);
#define crypto_verify_16_BYTES 16
#define crypto_verify_32_BYTES 32

/* Salsa20's core functions: `in` 16 bytes, `k` 32 bytes, `c` 16 bytes of constants. `out` may equal
 * any of them. Otherwise that of crypto_core_salsa20 may overlap them in any way, and that of
 * crypto_core_hsalsa20 `k` in any way, but not `in` and `c`. */
int crypto_core_salsa20(unsigned char *out, const unsigned char *in, const unsigned char *k,
                        const unsigned char *c);
int crypto_core_hsalsa20(unsigned char *out, const unsigned char *in, const unsigned char *k,
                         const unsigned char *c);
#define crypto_core_salsa20_OUTPUTBYTES 64
#define crypto_core_salsa20_INPUTBYTES 16
#define crypto_core_salsa20_KEYBYTES 32
#define crypto_core_salsa20_CONSTBYTES 16
#define crypto_core_hsalsa20_OUTPUTBYTES 32
#define crypto_core_hsalsa20_INPUTBYTES 16
#define crypto_core_hsalsa20_KEYBYTES 32
#define crypto_core_hsalsa20_CONSTBYTES 16

/* Key streams. `c` may equal `m`. */
int crypto_stream_salsa20(unsigned char *c, size_t clen, const unsigned char *n,
                          const unsigned char *k);
int crypto_stream_salsa20_xor(unsigned char *c, const unsigned char *m, size_t mlen,
                              const unsigned char *n, const unsigned char *k);
int crypto_stream_xsalsa20(unsigned char *c, size_t clen, const unsigned char *n,
                           const unsigned char *k);
int crypto_stream_xsalsa20_xor(unsigned char *c, const unsigned char *m, size_t mlen,
                               const unsigned char *n, const unsigned char *k);
#define crypto_stream_salsa20_KEYBYTES 32
#define crypto_stream_salsa20_NONCEBYTES 8
#define crypto_stream_xsalsa20_KEYBYTES 32
#define crypto_stream_xsalsa20_NONCEBYTES 24

/* Poly1305: `a` 16 bytes, `k` 32 bytes, which must never authenticate two messages. */
int crypto_onetimeauth_poly1305(unsigned char *a, const unsigned char *m, size_t mlen,
                                const unsigned char *k);
int crypto_onetimeauth_poly1305_verify(const unsigned char *a, const unsigned char *m, size_t mlen,
                                       const unsigned char *k);
#define crypto_onetimeauth_poly1305_BYTES 16
#define crypto_onetimeauth_poly1305_KEYBYTES 32

/* SHA-512. crypto_hashblocks_sha512 processes whole blocks of 128 bytes and returns how many bytes
 * are left. */
int crypto_hash_sha512(unsigned char *out, const unsigned char *m, size_t mlen);
size_t crypto_hashblocks_sha512(unsigned char *state, const unsigned char *m, size_t mlen);
#define crypto_hash_sha512_BYTES 64
#define crypto_hashblocks_sha512_STATEBYTES 64
#define crypto_hashblocks_sha512_BLOCKBYTES 128

/* HMAC-SHA-512, the first 32 bytes. */
int crypto_auth_hmacsha512256(unsigned char *a, const unsigned char *m, size_t mlen,
                              const unsigned char *k);
int crypto_auth_hmacsha512256_verify(const unsigned char *a, const unsigned char *m, size_t mlen,
                                     const unsigned char *k);
#define crypto_auth_hmacsha512256_BYTES 32
#define crypto_auth_hmacsha512256_KEYBYTES 32

/* X25519 (RFC 7748): a non-canonical u-coordinate is reduced, a point of low order gives zero.
 * The _checked variant refuses both with -1, `q` zero then. */
int crypto_scalarmult_curve25519(unsigned char *q, const unsigned char *n, const unsigned char *p);
int crypto_scalarmult_curve25519_base(unsigned char *q, const unsigned char *n);
int crypto_scalarmult_curve25519_checked(unsigned char *q, const unsigned char *n,
                                         const unsigned char *p);
#define crypto_scalarmult_curve25519_BYTES 32
#define crypto_scalarmult_curve25519_SCALARBYTES 32

int crypto_dh_curve25519_keypair(unsigned char *pk, unsigned char *sk);
int crypto_dh_curve25519(unsigned char *s, const unsigned char *pk, const unsigned char *sk);
#define crypto_dh_curve25519_BYTES 32
#define crypto_dh_curve25519_PUBLICKEYBYTES 32
#define crypto_dh_curve25519_SECRETKEYBYTES 32

/* Ed25519 (RFC 8032). A secret key is the seed, then the public key. `sm` and `m` may overlap; `m`
 * of open has room for smlen bytes. Open refuses S >= L, non-canonical encodings of points, and
 * what the cofactorless equation does not hold for; `m` is zero then, and *mlen all ones. Its time
 * depends on the signature, the message's length and the public key. */
int crypto_sign_ed25519_keypair(unsigned char *pk, unsigned char *sk);
int crypto_sign_ed25519_seed_keypair(unsigned char *pk, unsigned char *sk,
                                     const unsigned char *seed);
int crypto_sign_ed25519(unsigned char *sm, unsigned long long *smlen, const unsigned char *m,
                        size_t mlen, const unsigned char *sk);
int crypto_sign_ed25519_open(unsigned char *m, unsigned long long *mlen, const unsigned char *sm,
                             size_t smlen, const unsigned char *pk);
#define crypto_sign_ed25519_BYTES 64
#define crypto_sign_ed25519_PUBLICKEYBYTES 32
#define crypto_sign_ed25519_SECRETKEYBYTES 64
#define crypto_sign_ed25519_SEEDBYTES 32

/* XSalsa20-Poly1305. Messages begin with 32 zero bytes, boxes with 16; both count in the length,
 * which is at least 32. `c` may equal `m`. Open returns -1 for a box that is short or forged, and
 * `m` is zero then. */
int crypto_secretbox_xsalsa20poly1305(unsigned char *c, const unsigned char *m, size_t mlen,
                                      const unsigned char *n, const unsigned char *k);
int crypto_secretbox_xsalsa20poly1305_open(unsigned char *m, const unsigned char *c, size_t clen,
                                           const unsigned char *n, const unsigned char *k);
#define crypto_secretbox_xsalsa20poly1305_KEYBYTES 32
#define crypto_secretbox_xsalsa20poly1305_NONCEBYTES 24
#define crypto_secretbox_xsalsa20poly1305_ZEROBYTES 32
#define crypto_secretbox_xsalsa20poly1305_BOXZEROBYTES 16

int crypto_box_curve25519xsalsa20poly1305_keypair(unsigned char *pk, unsigned char *sk);
int crypto_box_curve25519xsalsa20poly1305_beforenm(unsigned char *k, const unsigned char *pk,
                                                   const unsigned char *sk);
int crypto_box_curve25519xsalsa20poly1305_afternm(unsigned char *c, const unsigned char *m,
                                                  size_t mlen, const unsigned char *n,
                                                  const unsigned char *k);
int crypto_box_curve25519xsalsa20poly1305_open_afternm(unsigned char *m, const unsigned char *c,
                                                       size_t clen, const unsigned char *n,
                                                       const unsigned char *k);
int crypto_box_curve25519xsalsa20poly1305(unsigned char *c, const unsigned char *m, size_t mlen,
                                          const unsigned char *n, const unsigned char *pk,
                                          const unsigned char *sk);
int crypto_box_curve25519xsalsa20poly1305_open(unsigned char *m, const unsigned char *c,
                                               size_t clen, const unsigned char *n,
                                               const unsigned char *pk, const unsigned char *sk);
#define crypto_box_curve25519xsalsa20poly1305_PUBLICKEYBYTES 32
#define crypto_box_curve25519xsalsa20poly1305_SECRETKEYBYTES 32
#define crypto_box_curve25519xsalsa20poly1305_BEFORENMBYTES 32
#define crypto_box_curve25519xsalsa20poly1305_NONCEBYTES 24
#define crypto_box_curve25519xsalsa20poly1305_ZEROBYTES 32
#define crypto_box_curve25519xsalsa20poly1305_BOXZEROBYTES 16

/* Random bytes; never returns without entropy. A chip with a generator of its own may define it.
 * Not reentrant, as are the functions that make key pairs of it; see munacl_random.h. */
void randombytes(unsigned char *out, unsigned long long bytes);

/* NaCl's short names. */
#define crypto_box crypto_box_curve25519xsalsa20poly1305
#define crypto_box_open crypto_box_curve25519xsalsa20poly1305_open
#define crypto_box_keypair crypto_box_curve25519xsalsa20poly1305_keypair
#define crypto_box_beforenm crypto_box_curve25519xsalsa20poly1305_beforenm
#define crypto_box_afternm crypto_box_curve25519xsalsa20poly1305_afternm
#define crypto_box_open_afternm crypto_box_curve25519xsalsa20poly1305_open_afternm
#define crypto_box_PUBLICKEYBYTES crypto_box_curve25519xsalsa20poly1305_PUBLICKEYBYTES
#define crypto_box_SECRETKEYBYTES crypto_box_curve25519xsalsa20poly1305_SECRETKEYBYTES
#define crypto_box_BEFORENMBYTES crypto_box_curve25519xsalsa20poly1305_BEFORENMBYTES
#define crypto_box_NONCEBYTES crypto_box_curve25519xsalsa20poly1305_NONCEBYTES
#define crypto_box_ZEROBYTES crypto_box_curve25519xsalsa20poly1305_ZEROBYTES
#define crypto_box_BOXZEROBYTES crypto_box_curve25519xsalsa20poly1305_BOXZEROBYTES
#define crypto_box_PRIMITIVE "curve25519xsalsa20poly1305"
#define crypto_secretbox crypto_secretbox_xsalsa20poly1305
#define crypto_secretbox_open crypto_secretbox_xsalsa20poly1305_open
#define crypto_secretbox_KEYBYTES crypto_secretbox_xsalsa20poly1305_KEYBYTES
#define crypto_secretbox_NONCEBYTES crypto_secretbox_xsalsa20poly1305_NONCEBYTES
#define crypto_secretbox_ZEROBYTES crypto_secretbox_xsalsa20poly1305_ZEROBYTES
#define crypto_secretbox_BOXZEROBYTES crypto_secretbox_xsalsa20poly1305_BOXZEROBYTES
#define crypto_secretbox_PRIMITIVE "xsalsa20poly1305"
#define crypto_sign crypto_sign_ed25519
#define crypto_sign_open crypto_sign_ed25519_open
#define crypto_sign_keypair crypto_sign_ed25519_keypair
#define crypto_sign_BYTES crypto_sign_ed25519_BYTES
#define crypto_sign_PUBLICKEYBYTES crypto_sign_ed25519_PUBLICKEYBYTES
#define crypto_sign_SECRETKEYBYTES crypto_sign_ed25519_SECRETKEYBYTES
#define crypto_sign_PRIMITIVE "ed25519"
#define crypto_scalarmult crypto_scalarmult_curve25519
#define crypto_scalarmult_base crypto_scalarmult_curve25519_base
#define crypto_scalarmult_BYTES crypto_scalarmult_curve25519_BYTES
#define crypto_scalarmult_SCALARBYTES crypto_scalarmult_curve25519_SCALARBYTES
#define crypto_scalarmult_PRIMITIVE "curve25519"
#define crypto_dh crypto_dh_curve25519
#define crypto_dh_keypair crypto_dh_curve25519_keypair
#define crypto_dh_BYTES crypto_dh_curve25519_BYTES
#define crypto_dh_PUBLICKEYBYTES crypto_dh_curve25519_PUBLICKEYBYTES
#define crypto_dh_SECRETKEYBYTES crypto_dh_curve25519_SECRETKEYBYTES
#define crypto_dh_PRIMITIVE "curve25519"
#define crypto_hash crypto_hash_sha512
#define crypto_hash_BYTES crypto_hash_sha512_BYTES
#define crypto_hash_PRIMITIVE "sha512"
#define crypto_hashblocks crypto_hashblocks_sha512
#define crypto_hashblocks_STATEBYTES crypto_hashblocks_sha512_STATEBYTES
#define crypto_hashblocks_BLOCKBYTES crypto_hashblocks_sha512_BLOCKBYTES
#define crypto_hashblocks_PRIMITIVE "sha512"
#define crypto_auth crypto_auth_hmacsha512256
#define crypto_auth_verify crypto_auth_hmacsha512256_verify
#define crypto_auth_BYTES crypto_auth_hmacsha512256_BYTES
#define crypto_auth_KEYBYTES crypto_auth_hmacsha512256_KEYBYTES
#define crypto_auth_PRIMITIVE "hmacsha512256"
#define crypto_onetimeauth crypto_onetimeauth_poly1305
#define crypto_onetimeauth_verify crypto_onetimeauth_poly1305_verify
#define crypto_onetimeauth_BYTES crypto_onetimeauth_poly1305_BYTES
#define crypto_onetimeauth_KEYBYTES crypto_onetimeauth_poly1305_KEYBYTES
#define crypto_onetimeauth_PRIMITIVE "poly1305"
#define crypto_stream crypto_stream_xsalsa20
#define crypto_stream_xor crypto_stream_xsalsa20_xor
#define crypto_stream_KEYBYTES crypto_stream_xsalsa20_KEYBYTES
#define crypto_stream_NONCEBYTES crypto_stream_xsalsa20_NONCEBYTES
#define crypto_stream_PRIMITIVE "xsalsa20"

#ifdef __cplusplus
}
#endif
#endif
