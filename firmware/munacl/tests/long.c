/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reads `CALL NONCE KEY` from the console and prints 4,194,304 bytes of it in hexadecimal, as
 * NaCl's tests core3 (the core for each 64 of them), stream and stream2 make them. */
#include <string.h>

#include "munacl.h"
#include "start.h"

enum { BYTES = 4194304 };
#ifdef __arm__
/* The PSRAM of Arm's mps2-an385: its other memories are too small. */
static unsigned char *const all = (unsigned char *)0x21000000;
#else
static unsigned char all[BYTES];
#endif

void randombytes(unsigned char *to, unsigned long long bytes)
{
    memset(to, 0, (size_t)bytes);
}

/* A word of the line. */
static void word(char *text, int most)
{
    int length = 0, c;
    while ((c = munacl_read()) > ' ')
        if (length < most)
            text[length++] = (char)c;
    text[length] = 0;
}

static void bytes(unsigned char *to, int most)
{
    char text[65];
    word(text, 64);
    for (int i = 0; i < 2 * most; i++) {
        int digit = text[i] >= 'a' ? text[i] - 'a' + 10 : text[i] - '0';
        to[i / 2] = (unsigned char)(i & 1 ? to[i / 2] << 4 | digit : digit);
    }
}

int main(void)
{
    static const unsigned char sigma[] = "expand 32-byte k";
    unsigned char n[24] = {0}, k[32];
    char name[20];
    word(name, sizeof name - 1);
    bytes(n, strcmp(name, "stream") == 0 ? 24 : 8);
    bytes(k, 32);
    if (strcmp(name, "stream") == 0) {
        crypto_stream(all, BYTES, n, k);
    } else if (strcmp(name, "stream_salsa20") == 0) {
        crypto_stream_salsa20(all, BYTES, n, k);
    } else {
        for (unsigned i = 0; i < BYTES / 64; i++) {
            n[8] = (unsigned char)i;
            n[9] = (unsigned char)(i >> 8);
            crypto_core_salsa20(all + 64 * i, n, k, sigma);
        }
    }
    for (unsigned char *at = all; at < all + BYTES; at += 1024) {
        char text[2049];
        for (int i = 0; i < 2048; i++)
            text[i] = "0123456789abcdef"[at[i / 2] >> (i & 1 ? 0 : 4) & 15];
        text[2048] = 0;
        munacl_print(text);
    }
    return 0;
}
