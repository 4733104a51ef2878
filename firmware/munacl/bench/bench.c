/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Times each function of the paper's Table 3 once (measure.h). The lines before and after the rows
 * are for `warifu calibrate board`, which reads them over a serial line: the last one has the
 * number of rows and their CRC-32. */
#include <string.h>

#include "munacl.h"
#include "measure.h"

#ifdef MUNACL_SMALL
#define PROFILE "small"
#else
#define PROFILE "fast"
#endif

static unsigned char m[1152], c[1152], out[1152], k[32], n[24], in[16], state[64];
static unsigned char pk[32], sk[64], other_pk[32], other_sk[32], tag[64];
static unsigned long long length;

/* Not secret: the benchmark's keys must be the same in every run. */
void randombytes(unsigned char *to, unsigned long long bytes)
{
    static uint32_t x = 1;
    for (; bytes; bytes--) {
        x = x * 1664525 + 1013904223;
        *to++ = (unsigned char)(x >> 24);
    }
}

#define ROWS(ROW)                                                                                  \
    ROW(crypto_auth_hmacsha512256, 1024, (tag, m, 1024, k))                                        \
    ROW(crypto_auth_hmacsha512256_verify, 1024, (tag, m, 1024, k))                                 \
    ROW(crypto_box_curve25519xsalsa20poly1305_keypair, 0, (pk, sk))                                \
    ROW(crypto_dh_curve25519_keypair, 0, (other_pk, other_sk))                                     \
    ROW(crypto_box_curve25519xsalsa20poly1305_beforenm, 0, (k, pk, other_sk))                      \
    ROW(crypto_box_curve25519xsalsa20poly1305, 1056, (c, m, 1056, n, pk, other_sk))                \
    ROW(crypto_box_curve25519xsalsa20poly1305_open, 1056, (out, c, 1056, n, other_pk, sk))         \
    ROW(crypto_box_curve25519xsalsa20poly1305_afternm, 1056, (c, m, 1056, n, k))                   \
    ROW(crypto_box_curve25519xsalsa20poly1305_open_afternm, 1056, (out, c, 1056, n, k))            \
    ROW(crypto_secretbox_xsalsa20poly1305, 1056, (c, m, 1056, n, k))                               \
    ROW(crypto_secretbox_xsalsa20poly1305_open, 1056, (out, c, 1056, n, k))                        \
    ROW(crypto_hash_sha512, 1024, (tag, m, 1024))                                                  \
    ROW(crypto_dh_curve25519, 0, (out, pk, other_sk))                                              \
    ROW(crypto_stream_salsa20, 1024, (c, 1024, n, k))                                              \
    ROW(crypto_stream_salsa20_xor, 1024, (c, m, 1024, n, k))                                       \
    ROW(crypto_stream_xsalsa20, 1024, (c, 1024, n, k))                                             \
    ROW(crypto_stream_xsalsa20_xor, 1024, (c, m, 1024, n, k))                                      \
    ROW(crypto_core_hsalsa20, 0, (out, in, k, in))                                                 \
    ROW(crypto_core_salsa20, 0, (out, in, k, in))                                                  \
    ROW(crypto_hashblocks_sha512, 1024, (state, m, 1024))                                          \
    ROW(crypto_onetimeauth_poly1305, 1024, (tag, m, 1024, k))                                      \
    ROW(crypto_onetimeauth_poly1305_verify, 1024, (tag, m, 1024, k))                               \
    ROW(crypto_scalarmult_curve25519_base, 0, (out, sk))                                           \
    ROW(crypto_scalarmult_curve25519, 0, (out, sk, other_pk))                                      \
    ROW(crypto_sign_ed25519_keypair, 0, (pk, sk))                                                  \
    ROW(crypto_sign_ed25519, 1024, (c, &length, m, 1024, sk))                                      \
    ROW(crypto_sign_ed25519_open, 1088, (out, &length, c, 1088, pk))                               \
    ROW(crypto_verify_16, 0, (out, out))                                                           \
    ROW(crypto_verify_32, 0, (out, out))

#define CALL(name, bytes, arguments) \
    static void call_##name(void) { expect(#name, (int)name arguments); }
ROWS(CALL)

int main(void)
{
    begin(PROFILE);
    for (unsigned i = 32; i < 1056; i++)
        m[i] = (unsigned char)(i * 7);
#define PRINT(name, bytes, arguments) row(#name, bytes, call_##name);
    ROWS(PRINT)
    end();
}
