/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See probe.h. The table of wrapped functions is FUNCTIONS, one line each:
 * F(function, primitive, calls, bytes), the latter two of the arguments a0 .. a11. A function that
 * only prepares or ends a primitive counts as no call. */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>

enum primitive {
    ECDH_KEYGEN, ECDH_DERIVE, SIGN, VERIFY, HASH, HMAC, HKDF, PRF, AEAD_SEAL, AEAD_OPEN, X509_PARSE,
    RANDOM, PRIMITIVES
};
static const char *const names[PRIMITIVES] = {
    "ecdh.keygen", "ecdh.derive", "sign", "verify", "hash", "hmac", "hkdf", "prf", "aead.seal",
    "aead.open", "x509.parse", "random"
};
static unsigned long calls[PRIMITIVES], bytes[PRIMITIVES];
static int depth, begun, whole;
static unsigned long digest_bytes = 32;
int recipes_tls12;

static void enter(enum primitive which, unsigned long count, unsigned long length)
{
    if (depth++ != 0)
        return;
    if (begun) {
        if (!whole)
            CALLGRIND_TOGGLE_COLLECT;
        calls[which] += count;
        bytes[which] += length;
    }
}

static void leave(void)
{
    if (--depth == 0 && begun && !whole)
        CALLGRIND_TOGGLE_COLLECT;
}

void recipes_begin(void)
{
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    begun = 1;
    whole = getenv("RECIPES_WHOLE") != NULL;
    if (getenv("RECIPES_DIGEST_BYTES") != NULL)
        digest_bytes = strtoul(getenv("RECIPES_DIGEST_BYTES"), NULL, 10);
}

void recipes_border(const char *end, const char *message, size_t length)
{
    if (!begun)
        return;
    if (depth == 0 || whole)
        CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS_AT(end);
    printf("%s\t%s\t%zu", end, message, length);
    for (int which = 0; which < PRIMITIVES; which++)
        if (calls[which] != 0 || bytes[which] != 0)
            printf("\t%s\t%lu\t%lu", names[which], calls[which], bytes[which]);
    printf("\n");
    fflush(stdout);
    memset(calls, 0, sizeof calls);
    memset(bytes, 0, sizeof bytes);
    if (depth == 0 || whole)
        CALLGRIND_TOGGLE_COLLECT;
}

/* TLS 1.2's PRF computes whole digests (RFC 5246 section 5). */
#define DIGESTS(length) (((length) + digest_bytes - 1) / digest_bytes * digest_bytes)
#define PARAMETERS \
    unsigned long a0, unsigned long a1, unsigned long a2, unsigned long a3, unsigned long a4, \
    unsigned long a5, unsigned long a6, unsigned long a7, unsigned long a8, unsigned long a9, \
    unsigned long a10, unsigned long a11
#define ARGUMENTS a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11
/* The System V ABI passes six arguments in registers and the rest on the stack, whose owner is the
 * caller: reading more of them than there are is harmless. */
#define F(function, primitive, count, length) \
    unsigned long __real_##function(PARAMETERS); \
    unsigned long __wrap_##function(PARAMETERS); \
    unsigned long __wrap_##function(PARAMETERS) \
    { \
        enter(primitive, count, length); \
        unsigned long result = __real_##function(ARGUMENTS); \
        leave(); \
        return result; \
    }
/* The same where the result tells how many calls it was. */
#define R(function, primitive, count, length) \
    unsigned long __real_##function(PARAMETERS); \
    unsigned long __wrap_##function(PARAMETERS); \
    unsigned long __wrap_##function(PARAMETERS) \
    { \
        enter(primitive, 0, length); \
        unsigned long result = __real_##function(ARGUMENTS); \
        if (begun && depth == 1) \
            calls[primitive] += count; \
        leave(); \
        return result; \
    }

#include FUNCTIONS
