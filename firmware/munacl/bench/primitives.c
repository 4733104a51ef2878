/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lines `NAME BYTES CYCLES` for `warifu calibrate m3`: the primitives of a device profile, at sizes
 * between the ends of a block, so that a straight line meets what all lengths take on average. */
#include "munacl.h"
#include "munacl_random.h"
#include "measure.h"

enum { MOST = 1984, CELLS = 1600 };

static unsigned char m[32 + MOST], c[64 + MOST], out[64 + MOST], k[32], n[24], tag[64];
static unsigned char pk[32], sk[32], other_pk[32], other_sk[32], sign_pk[32], sign_sk[64];
static unsigned long long length, bytes;

/* Not what a chip's memory holds: a board's keys would be the same in every run. */
static unsigned char cells[CELLS];
void munacl_random_failed(enum munacl_random_error why)
{
    munacl_print("# no random numbers\n");
    munacl_leave((int)why);
}
static void begin_random(void)
{
    static struct munacl_random_record record;
    uint32_t x = 1;
    for (int i = 0; i < CELLS; i++) {
        x = x * 1664525 + 1013904223;
        cells[i] = (unsigned char)(x >> 24);
    }
    struct munacl_random_source source = {cells, CELLS, 1000, 1, k, 0};
    expect("munacl_random_begin", munacl_random_begin(&source, &record));
}

static void keygen(void)
{
    expect("keygen", crypto_box_curve25519xsalsa20poly1305_keypair(pk, sk));
}
static void derive(void) { expect("derive", crypto_scalarmult_curve25519(tag, sk, other_pk)); }
static void sign(void) { expect("sign", crypto_sign_ed25519(c, &length, m, bytes, sign_sk)); }
static void verify(void)
{
    expect("verify", crypto_sign_ed25519_open(out, &length, c, bytes + 64, sign_pk));
}
static void hash(void) { expect("hash", crypto_hash_sha512(tag, m, bytes)); }
static void hmac(void) { expect("hmac", crypto_auth_hmacsha512256(tag, m, bytes, k)); }
/* NaCl has 32 zero bytes before a message. */
static void seal(void)
{
    expect("seal", crypto_secretbox_xsalsa20poly1305(c, m, 32 + bytes, n, k));
}
static void open(void)
{
    expect("open", crypto_secretbox_xsalsa20poly1305_open(out, c, 32 + bytes, n, k));
}
static void draw(void) { randombytes(out, bytes); }

static void time_call(const char *name, void (*call)(void))
{
    uint32_t stack, cycles = measure(call, &stack) - empty;
    report(name);
    report(" ");
    report_number((uint32_t)bytes);
    report(" ");
    report_number(cycles);
    report("\n");
}

int main(void)
{
    begin("primitives");
    begin_random();
    expect("other keys", crypto_box_curve25519xsalsa20poly1305_keypair(other_pk, other_sk));
    expect("keys to sign", crypto_sign_ed25519_keypair(sign_pk, sign_sk));
    time_call("ecdh.keygen.x25519", keygen);
    time_call("ecdh.derive.x25519", derive);
    /* SHA-512 has blocks of 128 bytes. */
    for (bytes = 64; bytes <= MOST; bytes = bytes * 2 + 64) {
        time_call("hash.sha-512", hash);
        time_call("hmac.sha-512", hmac);
        time_call("sign.ed25519", sign);
        time_call("verify.ed25519", verify);
    }
    /* Salsa20 has blocks of 64 bytes, of which Poly1305's key takes 32. */
    for (bytes = 64; bytes <= MOST; bytes = bytes * 2 + 64) {
        time_call("aead.seal.XSALSA20_POLY1305", seal);
        time_call("aead.open.XSALSA20_POLY1305", open);
    }
    for (bytes = 32; bytes <= 512; bytes *= 4)
        time_call("random", draw);
    end();
}
