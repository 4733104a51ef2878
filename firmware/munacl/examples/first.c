/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Alice seals a message for Bob, who opens it; a forged one is refused:
 * docs/reference/munacl.md. */
#include <stdio.h>
#include <string.h>

#include "munacl.h"

/* NaCl's zero bytes stand before message and box. */
enum { ZEROS = crypto_box_ZEROBYTES, BYTES = ZEROS + 5 };

int main(void)
{
    /* Fixed here; a device has keys of its own, and a new nonce for each message. */
    static const unsigned char alice[crypto_box_SECRETKEYBYTES] = {1}, bob[sizeof alice] = {2};
    static const unsigned char nonce[crypto_box_NONCEBYTES] = {3};
    unsigned char alices[crypto_box_PUBLICKEYBYTES], bobs[sizeof alices];
    unsigned char message[BYTES] = {0}, box[BYTES], opened[BYTES];

    crypto_scalarmult_base(alices, alice);
    crypto_scalarmult_base(bobs, bob);
    memcpy(message + ZEROS, "hello", 5);
    crypto_box(box, message, sizeof message, nonce, bobs, alice);
    if (crypto_box_open(opened, box, sizeof box, nonce, alices, bob) != 0)
        return 1;
    printf("opened: %.5s\n", (const char *)opened + ZEROS);
    box[BYTES - 1] ^= 1;
    if (crypto_box_open(opened, box, sizeof box, nonce, alices, bob) == 0)
        return 2;
    printf("forged: refused\n");
    return 0;
}
