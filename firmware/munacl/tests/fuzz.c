/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* libFuzzer on what takes foreign input: open and verify, with keys from the input. */
#include <stdlib.h>
#include <string.h>

#include "munacl.h"

void randombytes(unsigned char *out, unsigned long long bytes)
{
    memset(out, 7, bytes);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    unsigned char key[64] = {0}, nonce[24] = {0};
    unsigned long long length;
    if (size < 1)
        return 0;
    size_t some = size < sizeof key ? size : sizeof key;
    memcpy(key, data, some);
    size_t rest = size > 64 ? size - 64 : 0;
    const unsigned char *message = data + (size - rest);
    /* Copies of exactly their size, so that the sanitizer sees what is read beyond. */
    unsigned char *in = malloc(rest + 1), *out = malloc(rest + 1);
    if (!in || !out)
        abort();
    memcpy(in, message, rest);
    crypto_sign_open(out, &length, in, rest, key);
    /* Seldom: it has an X25519, and beyond that the secret box. */
    if ((data[0] & 63) == 0 && crypto_box_open(out, in, rest, nonce, key, key + 32) != 0)
        for (size_t i = 0; i < rest; i++)
            if (out[i])
                abort();
    /* A tag of chance is refused, the right one is not. */
    unsigned char tag[32];
    crypto_auth(tag, in, rest, key);
    if (crypto_auth_verify(tag, in, rest, key) != 0)
        abort();
    tag[data[0] & 31] ^= 1;
    if (crypto_auth_verify(tag, in, rest, key) == 0)
        abort();
    crypto_onetimeauth(tag, in, rest, key);
    if (crypto_onetimeauth_verify(tag, in, rest, key) != 0)
        abort();
    tag[data[0] & 15] ^= 0x80;
    if (crypto_onetimeauth_verify(tag, in, rest, key) == 0)
        abort();
    if (crypto_secretbox_open(out, in, rest, nonce, key) != 0)
        for (size_t i = 0; i < rest; i++)
            if (out[i])
                abort();
    /* What is sealed opens; with a bit changed it does not. */
    if (rest >= 32) {
        memset(in, 0, 32);
        crypto_secretbox(out, in, rest, nonce, key);
        unsigned char *copy = malloc(rest);
        if (!copy || crypto_secretbox_open(copy, out, rest, nonce, key) != 0 ||
            memcmp(copy, in, rest) != 0)
            abort();
        out[16 + data[0] % (rest - 16)] ^= 1;
        if (crypto_secretbox_open(copy, out, rest, nonce, key) == 0)
            abort();
        free(copy);
    }
    free(in);
    free(out);
    return 0;
}
