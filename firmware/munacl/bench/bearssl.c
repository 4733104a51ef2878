/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* BearSSL without long multiplications (m15, ctmul32), in rows of the calls of munacl that do the
 * same; the secret box is ChaCha20-Poly1305. Its sources are its user's (MUNACL_PEERS). */
#include "bearssl.h"
#include "measure.h"

static unsigned char m[1024], k[32], tag[64], point[32], iv[12];

static void shared(void)
{
    expect("mul", br_ec_c25519_m15.mul(point, 32, k, 32, BR_EC_curve25519) != 1);
}
static void base(void)
{
    expect("mulgen", br_ec_c25519_m15.mulgen(point, k, 32, BR_EC_curve25519) != 32);
}
static void hash(void)
{
    br_sha512_context context;
    br_sha512_init(&context);
    br_sha512_update(&context, m, sizeof m);
    br_sha512_out(&context, tag);
}
static void authenticate(void)
{
    br_hmac_key_context key;
    br_hmac_context context;
    br_hmac_key_init(&key, &br_sha512_vtable, k, sizeof k);
    br_hmac_init(&context, &key, 32);
    br_hmac_update(&context, m, sizeof m);
    br_hmac_out(&context, tag);
}
static void seal(void)
{
    br_poly1305_ctmul32_run(k, iv, m, sizeof m, 0, 0, tag, br_chacha20_ct_run, 1);
}
static uint32_t no_cipher(const void *key, const void *nonce, uint32_t count, void *data,
                          size_t len)
{
    (void)key, (void)nonce, (void)data, (void)len;
    return count + 1;
}
static void poly1305(void)
{
    br_poly1305_ctmul32_run(k, iv, m, sizeof m, 0, 0, tag, no_cipher, 1);
}

int main(void)
{
    begin("bearssl");
    for (unsigned i = 0; i < sizeof m; i++)
        m[i] = (unsigned char)(i * 7);
    for (unsigned i = 0; i < 32; i++)
        k[i] = (unsigned char)(i * 5 + 1);
    point[0] = 9;
    row("crypto_scalarmult_curve25519", 0, shared);
    row("crypto_scalarmult_curve25519_base", 0, base);
    row("crypto_hash_sha512", 1024, hash);
    row("crypto_auth_hmacsha512256", 1024, authenticate);
    row("crypto_onetimeauth_poly1305", 1024, poly1305);
    row("crypto_secretbox_xsalsa20poly1305", 1024, seal);
    end();
}
