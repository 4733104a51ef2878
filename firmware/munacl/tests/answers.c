/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reads `CALL HEX HEX ..` from the console and prints the results in hex, a line a call, until the
 * end of input. `-` is an empty argument. What is random comes from the line. */
#include <string.h>

#include "munacl.h"
#include "start.h"

enum { ARGUMENTS = 6, ROOM = 13312 };

static unsigned char room[ARGUMENTS][ROOM], out[2 * ROOM];
static size_t length[ARGUMENTS];
static const unsigned char *seed;

void randombytes(unsigned char *to, unsigned long long bytes)
{
    memcpy(to, seed, (size_t)bytes);
}

static int digit(int c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A word of the line into text; the character behind it. */
static int word(char *text, int most)
{
    int c = munacl_read(), length_of = 0;
    while (c > ' ') {
        if (length_of < most)
            text[length_of++] = (char)c;
        c = munacl_read();
    }
    text[length_of] = 0;
    return c;
}

static void hex(const unsigned char *from, size_t bytes)
{
    char text[3] = {0};
    for (size_t i = 0; i < bytes; i++) {
        text[0] = "0123456789abcdef"[from[i] >> 4];
        text[1] = "0123456789abcdef"[from[i] & 15];
        munacl_print(text);
    }
}

static void result(int code, size_t bytes)
{
    munacl_print(code == 0 ? "0" : "-1");
    if (bytes) {
        munacl_print(" ");
        hex(out, bytes);
    }
    munacl_print("\n");
}

static int is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static void call(const char *name)
{
    /* An empty argument is NULL, as callers may have it. */
    unsigned char *arguments[4];
    for (int i = 0; i < 4; i++)
        arguments[i] = length[i] ? room[i] : NULL;
    unsigned char *a = arguments[0], *b = arguments[1], *c = arguments[2], *d = arguments[3];
    unsigned long long bytes = 0;
    memset(out, 0xa5, sizeof out);
    seed = a;
    if (is(name, "scalarmult")) {
        result(crypto_scalarmult(out, a, b), 32);
    } else if (is(name, "scalarmult_checked")) {
        result(crypto_scalarmult_curve25519_checked(out, a, b), 32);
    } else if (is(name, "scalarmult_base")) {
        result(crypto_scalarmult_base(out, a), 32);
    } else if (is(name, "iterate")) {
        /* RFC 7748 section 5.2: the number of iterations in two bytes, low first. */
        c = room[2];
        memcpy(out, b, 32);
        memcpy(c, b, 32);
        for (unsigned i = a[0] | (unsigned)a[1] << 8; i; i--) {
            unsigned char next[32];
            crypto_scalarmult(next, out, c);
            memcpy(c, out, 32);
            memcpy(out, next, 32);
        }
        result(0, 32);
    } else if (is(name, "dh_keypair")) {
        int code = crypto_dh_keypair(out, out + 32);
        result(code, 64);
    } else if (is(name, "dh")) {
        result(crypto_dh(out, a, b), 32);
    } else if (is(name, "sign_keypair")) {
        result(crypto_sign_keypair(out, out + 32), 96);
    } else if (is(name, "sign")) {
        int code = crypto_sign(out, &bytes, b, length[1], a);
        result(code, (size_t)bytes);
    } else if (is(name, "sign_open")) {
        int code = crypto_sign_open(out, &bytes, b, length[1], a);
        result(code, code ? length[1] : (size_t)bytes);
    } else if (is(name, "hash")) {
        result(crypto_hash(out, a, length[0]), 64);
    } else if (is(name, "hash_monte")) {
        /* NIST's Monte Carlo test: each hash is of the three before it. */
        memcpy(out, a, 64);
        memcpy(out + 64, a, 64);
        memcpy(out + 128, a, 64);
        for (int i = 0; i < 1000; i++) {
            unsigned char next[64];
            crypto_hash(next, out, 192);
            memmove(out, out + 64, 128);
            memcpy(out + 128, next, 64);
        }
        memmove(out, out + 128, 64);
        result(0, 64);
    } else if (is(name, "auth")) {
        result(crypto_auth(out, b, length[1], a), 32);
    } else if (is(name, "auth_verify")) {
        result(crypto_auth_verify(c, b, length[1], a), 0);
    } else if (is(name, "onetimeauth")) {
        result(crypto_onetimeauth(out, b, length[1], a), 16);
    } else if (is(name, "onetimeauth_verify")) {
        result(crypto_onetimeauth_verify(c, b, length[1], a), 0);
    } else if (is(name, "core_salsa20")) {
        result(crypto_core_salsa20(out, a, b, c), 64);
    } else if (is(name, "core_hsalsa20")) {
        result(crypto_core_hsalsa20(out, a, b, c), 32);
    } else if (is(name, "stream_salsa20")) {
        size_t n = a[0] | (size_t)a[1] << 8;
        result(crypto_stream_salsa20(out, n, b, c), n);
    } else if (is(name, "stream_salsa20_xor")) {
        result(crypto_stream_salsa20_xor(out, a, length[0], b, c), length[0]);
    } else if (is(name, "stream")) {
        size_t n = a[0] | (size_t)a[1] << 8;
        result(crypto_stream(out, n, b, c), n);
    } else if (is(name, "stream_xor")) {
        result(crypto_stream_xor(out, a, length[0], b, c), length[0]);
    } else if (is(name, "secretbox")) {
        int code = crypto_secretbox(out, a, length[0], b, c);
        result(code, code ? 0 : length[0]);
    } else if (is(name, "secretbox_open")) {
        result(crypto_secretbox_open(out, a, length[0], b, c), length[0]);
    } else if (is(name, "box_keypair")) {
        result(crypto_box_keypair(out, out + 32), 64);
    } else if (is(name, "box_beforenm")) {
        result(crypto_box_beforenm(out, a, b), 32);
    } else if (is(name, "box")) {
        int code = crypto_box(out, a, length[0], b, c, d);
        result(code, code ? 0 : length[0]);
    } else if (is(name, "box_open")) {
        result(crypto_box_open(out, a, length[0], b, c, d), length[0]);
    } else if (is(name, "verify_16")) {
        result(crypto_verify_16(a, b), 0);
    } else if (is(name, "verify_32")) {
        result(crypto_verify_32(a, b), 0);
    } else {
        munacl_print("unknown call\n");
    }
}

int main(void)
{
    char name[40];
    for (;;) {
        int after = word(name, sizeof name - 1);
        for (int i = 0; i < ARGUMENTS; i++)
            length[i] = 0;
        for (int i = 0; after == ' ' && i < ARGUMENTS; i++) {
            int c = munacl_read(), high = -1;
            for (; c > ' '; c = munacl_read()) {
                int value = digit(c);
                if (value < 0)
                    continue;
                if (high < 0) {
                    high = value;
                } else if (length[i] < ROOM) {
                    room[i][length[i]++] = (unsigned char)(high << 4 | value);
                    high = -1;
                }
            }
            after = c;
        }
        if (name[0])
            call(name);
        if (after < 0)
            return 0;
    }
}
