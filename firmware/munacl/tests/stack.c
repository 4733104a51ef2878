/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rows `NAME BYTES CYCLES STACK` of every public function, with the library's own random numbers:
 * what docs/reference/munacl.md says of stack. Lengths have whole blocks and a rest, so that both
 * paths run. */
#include <string.h>

#include "../bench/measure.h"
#include "munacl.h"
#include "munacl_random.h"

enum { MESSAGE = 1000, CELLS = 1600 };

static unsigned char m[MESSAGE + 64], c[MESSAGE + 64], out[MESSAGE + 64], k[32], n[24], in[16];
static unsigned char pk[32], sk[32], other_pk[32], other_sk[32], sign_pk[32], sign_sk[64], tag[64];
static unsigned char state[64], cells[CELLS];
static unsigned long long length;
static struct munacl_random_record record;
static struct munacl_random_source power_up = {cells, CELLS, 1000, 1, in, sizeof in};

void munacl_random_failed(enum munacl_random_error why)
{
    munacl_leave(50 + (int)why);
}

#define ROWS(ROW)                                                                                  \
    ROW(munacl_random_begin, (&power_up, &record))                                                 \
    ROW(munacl_random_mix, (m, MESSAGE))                                                           \
    ROW(munacl_random_bytes, (out, MESSAGE))                                                       \
    ROW(randombytes, (out, MESSAGE))                                                               \
    ROW(crypto_verify_16, (k, k))                                                                  \
    ROW(crypto_verify_32, (k, k))                                                                  \
    ROW(crypto_core_salsa20, (out, in, k, in))                                                     \
    ROW(crypto_core_hsalsa20, (out, in, k, in))                                                    \
    ROW(crypto_stream_salsa20, (out, MESSAGE, n, k))                                               \
    ROW(crypto_stream_salsa20_xor, (out, m, MESSAGE, n, k))                                        \
    ROW(crypto_stream_xsalsa20, (out, MESSAGE, n, k))                                              \
    ROW(crypto_stream_xsalsa20_xor, (out, m, MESSAGE, n, k))                                       \
    ROW(crypto_onetimeauth_poly1305, (tag, m, MESSAGE, k))                                         \
    ROW(crypto_onetimeauth_poly1305_verify, (tag, m, MESSAGE, k))                                  \
    ROW(crypto_hash_sha512, (out, m, MESSAGE))                                                     \
    ROW(crypto_hashblocks_sha512, (state, m, MESSAGE))                                             \
    ROW(crypto_auth_hmacsha512256, (tag, m, MESSAGE, k))                                           \
    ROW(crypto_auth_hmacsha512256_verify, (tag, m, MESSAGE, k))                                    \
    ROW(crypto_secretbox_xsalsa20poly1305, (c, m, MESSAGE, n, k))                                  \
    ROW(crypto_secretbox_xsalsa20poly1305_open, (out, c, MESSAGE, n, k))                           \
    ROW(crypto_dh_curve25519_keypair, (pk, sk))                                                    \
    ROW(crypto_box_curve25519xsalsa20poly1305_keypair, (other_pk, other_sk))                       \
    ROW(crypto_dh_curve25519, (out, pk, other_sk))                                                 \
    ROW(crypto_scalarmult_curve25519_base, (out, sk))                                              \
    ROW(crypto_scalarmult_curve25519, (out, sk, other_pk))                                         \
    ROW(crypto_scalarmult_curve25519_checked, (out, sk, other_pk))                                 \
    ROW(crypto_box_curve25519xsalsa20poly1305_beforenm, (k, pk, other_sk))                         \
    ROW(crypto_box_curve25519xsalsa20poly1305_afternm, (c, m, MESSAGE, n, k))                      \
    ROW(crypto_box_curve25519xsalsa20poly1305_open_afternm, (out, c, MESSAGE, n, k))               \
    ROW(crypto_box_curve25519xsalsa20poly1305, (c, m, MESSAGE, n, pk, other_sk))                   \
    ROW(crypto_box_curve25519xsalsa20poly1305_open, (out, c, MESSAGE, n, other_pk, sk))            \
    ROW(crypto_sign_ed25519_seed_keypair, (sign_pk, sign_sk, k))                                   \
    ROW(crypto_sign_ed25519_keypair, (sign_pk, sign_sk))                                           \
    ROW(crypto_sign_ed25519, (c, &length, m, MESSAGE, sign_sk))                                    \
    ROW(crypto_sign_ed25519_open, (out, &length, c, MESSAGE + 64, sign_pk))

/* Results are seen by what they make: a box that does not open, a signature that does not
 * verify. */
#define CALL(name, arguments) \
    static void call_##name(void) { (void)name arguments; }
ROWS(CALL)

int main(void)
{
    begin("stack");
    uint32_t x = 1;
    for (int i = 0; i < CELLS; i++) {
        x = x * 1664525 + 1013904223;
        cells[i] = (unsigned char)(x >> 24);
    }
    for (int i = 32; i < MESSAGE; i++)
        m[i] = (unsigned char)(7 * i);
#define PRINT(name, arguments) row(#name, 0, call_##name);
    ROWS(PRINT)
    /* The last call opened what was signed. */
    expect("crypto_sign_open", memcmp(out, m, MESSAGE) | (length != MESSAGE));
    end();
}
