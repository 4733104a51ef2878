/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* libFuzzer on what takes foreign input, and on what must hold for every key and message. An input
 * is what is done, where and how something is altered, and what that takes: keys, then the message.
 * tests/support/munacl_seeds.py makes the first inputs, of published signatures and boxes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "munacl.h"

enum {
    OPEN_SIGNED,    /* public key, signed message: whatever it is */
    OPEN_SECRETBOX, /* key, nonce, box */
    OPEN_BOX,       /* public key, secret key, nonce, box */
    SIGN,           /* seed, message: what is signed verifies, altered it does not */
    SEAL,           /* key, nonce, message */
    BOX,            /* two secret keys, nonce, message: both ends have the same box */
    AUTHENTICATE,   /* key, message: both kinds of tags */
    AGREE,          /* secret key, the other's key: what is refused, and that both ends agree */
    KINDS,
};

/* The bytes of L, the order of the base point. */
static const unsigned char order[32] = {
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    [31] = 0x10,
};

void randombytes(unsigned char *out, unsigned long long bytes)
{
    memset(out, 7, bytes);
}

/* Foreign inputs, and those of them that were signed or sealed by their key: said at the end. */
static unsigned long foreign, valid;
__attribute__((destructor)) static void say(void)
{
    fprintf(stderr, "fuzz: %lu of %lu foreign inputs opened\n", valid, foreign);
}

/* Copies of exactly their size, so that the sanitizer sees what is read beyond. */
static unsigned char *room(size_t bytes)
{
    unsigned char *at = malloc(bytes ? bytes : 1);
    if (!at)
        abort();
    return at;
}

static const unsigned char *input;
static size_t left;

/* The next bytes of the input, zeros behind its end. */
static void take(unsigned char *to, size_t bytes)
{
    size_t some = left < bytes ? left : bytes;
    memset(to, 0, bytes);
    if (some)
        memcpy(to, input, some);
    input += some;
    left -= some;
}

static void must(int holds)
{
    if (!holds)
        abort();
}

static void must_be_zero(const unsigned char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        must(at[i] == 0);
}

/* `from` with one of its bits the other way. */
static unsigned char *altered(const unsigned char *from, size_t bytes, size_t first, unsigned where)
{
    unsigned char *to = room(bytes);
    memcpy(to, from, bytes);
    to[first + where / 8 % (bytes - first)] ^= (unsigned char)(1 << where % 8);
    return to;
}

/* Whether it opens; refused, there is nothing left of it. */
static int opens(const unsigned char *sm, size_t bytes, const unsigned char *pk)
{
    unsigned char *m = room(bytes);
    unsigned long long length = 0;
    memset(m, 0x55, bytes);
    int code = crypto_sign_open(m, &length, sm, bytes, pk);
    if (code == 0) {
        must(length == bytes - 64 && memcmp(m, sm + 64, bytes - 64) == 0);
    } else {
        must(code == -1 && length == (unsigned long long)-1);
        must_be_zero(m, bytes);
    }
    free(m);
    return code == 0;
}

static void open_signed(void)
{
    unsigned char pk[32], *sm = room(left > 32 ? left - 32 : 0);
    take(pk, 32);
    size_t bytes = left;
    take(sm, bytes);
    foreign++;
    if (opens(sm, bytes, pk)) {
        valid++;
        /* The same signature by a scalar beyond L. */
        unsigned carry = 0;
        for (int i = 0; i < 32; i++) {
            carry += sm[32 + i] + order[i];
            sm[32 + i] = (unsigned char)carry;
            carry >>= 8;
        }
        must(!opens(sm, bytes, pk));
    }
    free(sm);
}

static void sign(unsigned where)
{
    unsigned char seed[32], pk[32], sk[64];
    take(seed, 32);
    size_t bytes = left;
    unsigned char *m = room(bytes), *sm = room(bytes + 64);
    unsigned long long length;
    take(m, bytes);
    must(crypto_sign_ed25519_seed_keypair(pk, sk, seed) == 0);
    must(memcmp(sk, seed, 32) == 0 && memcmp(sk + 32, pk, 32) == 0);
    must(crypto_sign(sm, &length, m, bytes, sk) == 0 && length == bytes + 64);
    must(memcmp(sm + 64, m, bytes) == 0);
    must(opens(sm, bytes + 64, pk));
    unsigned char *other = altered(sm, bytes + 64, 0, where), *key = altered(pk, 32, 0, where);
    must(!opens(other, bytes + 64, pk));
    /* One of these by the input's length: each takes milliseconds. */
    if (bytes % 3 == 0)
        must(!opens(sm, bytes + 64, key));
    else if (bytes % 3 == 1)
        must(!opens(sm, where % (bytes + 64), pk));
    else
        must(crypto_sign_open(sm, &length, sm, bytes + 64, pk) == 0 && memcmp(sm, m, bytes) == 0);
    free(other);
    free(key);
    free(m);
    free(sm);
}

/* NaCl's boxes begin with 16 zero bytes, their messages with 32. */
typedef int function(unsigned char *, const unsigned char *, size_t, const unsigned char *,
                     const unsigned char *, const unsigned char *);
static int seal_secretbox(unsigned char *c, const unsigned char *m, size_t bytes,
                          const unsigned char *n, const unsigned char *k, const unsigned char *sk)
{
    (void)sk;
    return crypto_secretbox(c, m, bytes, n, k);
}
static int open_secretbox(unsigned char *m, const unsigned char *c, size_t bytes,
                          const unsigned char *n, const unsigned char *k, const unsigned char *sk)
{
    (void)sk;
    return crypto_secretbox_open(m, c, bytes, n, k);
}

static void box_refused(function *open, const unsigned char *c, size_t bytes,
                        const unsigned char *n, const unsigned char *pk, const unsigned char *sk)
{
    unsigned char *m = room(bytes);
    memset(m, 0x55, bytes);
    must(open(m, c, bytes, n, pk, sk) == -1);
    must_be_zero(m, bytes);
    free(m);
}

/* Whatever it is; what opens must seal to the same box. */
static void open_any(function *open, function *seal, const unsigned char *n,
                     const unsigned char *pk, const unsigned char *sk, unsigned where)
{
    size_t bytes = left;
    unsigned char *c = room(bytes), *m = room(bytes), *again = room(bytes);
    take(c, bytes);
    foreign++;
    if (open(m, c, bytes, n, pk, sk) == 0) {
        valid++;
        must_be_zero(m, 32);
        must(seal(again, m, bytes, n, pk, sk) == 0);
        must(memcmp(again + 16, c + 16, bytes - 16) == 0);
        unsigned char *other = altered(c, bytes, 16, where);
        box_refused(open, other, bytes, n, pk, sk);
        free(other);
    } else {
        box_refused(open, c, bytes, n, pk, sk);
    }
    free(c);
    free(m);
    free(again);
}

static void seal_and_open(function *seal, function *open, const unsigned char *n,
                          const unsigned char *to, const unsigned char *from,
                          const unsigned char *pk, const unsigned char *sk, unsigned where)
{
    size_t bytes = 32 + left;
    unsigned char *m = room(bytes), *c = room(bytes), *same = room(bytes);
    memset(m, 0, 32);
    take(m + 32, left);
    must(seal(c, m, bytes, n, to, from) == 0);
    must_be_zero(c, 16);
    must(open(same, c, bytes, n, pk, sk) == 0 && memcmp(same, m, bytes) == 0);
    memcpy(same, m, bytes);
    must(seal(same, same, bytes, n, to, from) == 0 && memcmp(same, c, bytes) == 0);
    must(open(same, same, bytes, n, pk, sk) == 0 && memcmp(same, m, bytes) == 0);
    unsigned char *other = altered(c, bytes, 16, where);
    box_refused(open, other, bytes, n, pk, sk);
    box_refused(open, c, where % bytes, n, pk, sk);
    free(other);
    free(m);
    free(c);
    free(same);
}

static void authenticate(unsigned where)
{
    unsigned char key[32], tag[32];
    take(key, 32);
    size_t bytes = left;
    unsigned char *m = room(bytes);
    take(m, bytes);
    crypto_auth(tag, m, bytes, key);
    must(crypto_auth_verify(tag, m, bytes, key) == 0);
    tag[where / 8 % 32] ^= (unsigned char)(1 << where % 8);
    must(crypto_auth_verify(tag, m, bytes, key) == -1);
    crypto_onetimeauth(tag, m, bytes, key);
    must(crypto_onetimeauth_verify(tag, m, bytes, key) == 0);
    tag[where / 8 % 16] ^= (unsigned char)(1 << where % 8);
    must(crypto_onetimeauth_verify(tag, m, bytes, key) == -1);
    free(m);
}

static void agree(void)
{
    unsigned char sk[32], pk[32], mine[32], q[32], checked[32], zero[32] = {0}, nine[32] = {9};
    unsigned char theirs[32], there[32];
    take(sk, 32);
    take(pk, 32);
    crypto_scalarmult(q, sk, pk);
    int code = crypto_scalarmult_curve25519_checked(checked, sk, pk);
    must(memcmp(checked, code == 0 ? q : zero, 32) == 0);
    must(code == 0 || code == -1);
    if (memcmp(q, zero, 32) == 0)
        must(code == -1);
    crypto_scalarmult_base(mine, sk);
    crypto_scalarmult(q, sk, nine);
    must(memcmp(mine, q, 32) == 0);
    /* Both ends, the other's secret key being what was the public one before. */
    crypto_scalarmult_base(theirs, pk);
    crypto_scalarmult(q, sk, theirs);
    crypto_scalarmult(there, pk, mine);
    must(memcmp(q, there, 32) == 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    unsigned char what[3], k[32], sk[32], n[24], pk[32], other_pk[32];
    input = data;
    left = size;
    take(what, sizeof what);
    unsigned where = what[1] | (unsigned)what[2] << 8;
    switch (what[0] % KINDS) {
    case OPEN_SIGNED:
        open_signed();
        break;
    case OPEN_SECRETBOX:
        take(k, 32);
        take(n, 24);
        open_any(open_secretbox, seal_secretbox, n, k, k, where);
        break;
    case OPEN_BOX:
        take(pk, 32);
        take(sk, 32);
        take(n, 24);
        open_any(crypto_box_open, crypto_box, n, pk, sk, where);
        break;
    case SIGN:
        sign(where);
        break;
    case SEAL:
        take(k, 32);
        take(n, 24);
        seal_and_open(seal_secretbox, open_secretbox, n, k, k, k, k, where);
        break;
    case BOX:
        take(k, 32);
        take(sk, 32);
        take(n, 24);
        crypto_scalarmult_base(pk, k);
        crypto_scalarmult_base(other_pk, sk);
        seal_and_open(crypto_box, crypto_box_open, n, other_pk, k, pk, sk, where);
        break;
    case AUTHENTICATE:
        authenticate(where);
        break;
    case AGREE:
        agree();
        break;
    }
    return 0;
}
