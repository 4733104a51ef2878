/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Ed25519 keys and signatures (RFC 8032 sections 5.1.5 and 5.1.6). */
#include "ed25519.h"

/* The public key's or R's bytes: s times the base point. Its slots and what hashing needs take
 * turns on the stack. */
MUNACL_INNER void multiply(unsigned char *out, const unsigned char *s)
{
    munacl_fe slots[MUNACL_ED_SLOTS];
    munacl_ed_base(slots, s);
    munacl_ed_encode(out, slots);
}

/* The secret scalar, then the prefix. */
static void expand(unsigned char out[64], const unsigned char *seed)
{
    crypto_hash_sha512(out, seed, 32);
    out[0] &= 248;
    out[31] = (out[31] & 63) | 64;
}

MUNACL_INNER void keypair(unsigned char *pk, unsigned char *sk, const unsigned char *seed)
{
    unsigned char expanded[64];
    expand(expanded, seed);
    memmove(sk, seed, 32);
    multiply(pk, expanded);
    munacl_copy32(sk + 32, pk);
}

int crypto_sign_ed25519_seed_keypair(unsigned char *pk, unsigned char *sk,
                                     const unsigned char *seed)
{
    keypair(pk, sk, seed);
    return MUNACL_FORGET(0, MUNACL_KEYPAIR);
}

int crypto_sign_ed25519_keypair(unsigned char *pk, unsigned char *sk)
{
    randombytes(sk, 32);
    return crypto_sign_ed25519_seed_keypair(pk, sk, sk);
}

MUNACL_INNER void sign(unsigned char *sm, const unsigned char *m, size_t mlen,
                       const unsigned char *sk)
{
    unsigned char expanded[64], hash[64], nonce[32], challenge[32];
    expand(expanded, sk);
    /* The places of R and S hold what is hashed before the message. */
    if (mlen) /* m may be NULL then */
        memmove(sm + 64, m, mlen);
    munacl_copy32(sm + 32, expanded + 32);
    crypto_hash_sha512(hash, sm + 32, mlen + 32);
    munacl_sc_from_hash(nonce, hash);
    multiply(sm, nonce);
    munacl_copy32(sm + 32, sk + 32);
    crypto_hash_sha512(hash, sm, mlen + 64);
    munacl_sc_from_hash(challenge, hash);
    munacl_sc_muladd(sm + 32, challenge, expanded, nonce);
}

int crypto_sign_ed25519(unsigned char *sm, unsigned long long *smlen, const unsigned char *m,
                        size_t mlen, const unsigned char *sk)
{
    sign(sm, m, mlen, sk);
    *smlen = mlen + 64;
    return MUNACL_FORGET(0, MUNACL_SIGN);
}
