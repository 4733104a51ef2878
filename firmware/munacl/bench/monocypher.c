/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Monocypher 4, in rows of the calls of munacl that do the same: EdDSA is with BLAKE2b, and the
 * secret box XChaCha20-Poly1305, which takes no zero bytes. Its sources are its user's
 * (MUNACL_PEERS). */
#include "measure.h"
#include "monocypher.h"

static uint8_t m[1024], c[1024], k[32], n[24], tag[64], pk[32], sk[64], seed[32], other[32];

static void shared(void) { crypto_x25519(other, k, pk); }
static void base(void) { crypto_x25519_public_key(other, k); }
static void keypair(void) { crypto_eddsa_key_pair(sk, pk, seed); }
static void sign(void) { crypto_eddsa_sign(tag, sk, m, sizeof m); }
static void check(void) { expect("check", crypto_eddsa_check(tag, pk, m, sizeof m)); }
static void authenticate(void) { crypto_poly1305(other, m, sizeof m, k); }
static void seal(void) { crypto_aead_lock(c, other, k, n, 0, 0, m, sizeof m); }
static void unseal(void)
{
    expect("unlock", crypto_aead_unlock(m, other, k, n, 0, 0, c, sizeof c));
}
static void verify_16(void) { expect("verify", crypto_verify16(k, k)); }
static void verify_32(void) { expect("verify", crypto_verify32(k, k)); }

int main(void)
{
    begin("monocypher");
    for (unsigned i = 0; i < sizeof m; i++)
        m[i] = (uint8_t)(i * 7);
    for (unsigned i = 0; i < 32; i++)
        k[i] = seed[i] = (uint8_t)(i * 5 + 1);
    pk[0] = 9;
    row("crypto_scalarmult_curve25519", 0, shared);
    row("crypto_scalarmult_curve25519_base", 0, base);
    row("crypto_onetimeauth_poly1305", 1024, authenticate);
    row("crypto_secretbox_xsalsa20poly1305", 1024, seal);
    row("crypto_secretbox_xsalsa20poly1305_open", 1024, unseal);
    for (unsigned i = 0; i < 32; i++)
        seed[i] = k[i];
    row("crypto_sign_ed25519_keypair", 0, keypair);
    row("crypto_sign_ed25519", 1024, sign);
    row("crypto_sign_ed25519_open", 1024, check);
    row("crypto_verify_16", 0, verify_16);
    row("crypto_verify_32", 0, verify_32);
    end();
}
