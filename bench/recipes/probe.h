/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Counts the calls of cryptography that a library makes for each message, and has callgrind leave
 * them out, so that what it counts is the rest. The functions are wrapped by the linker (--wrap):
 * a library's calls across its object files come here first. A call inside of another is the
 * outer one's. */
#ifndef WARIFU_RECIPES_PROBE_H
#define WARIFU_RECIPES_PROBE_H
#include <stddef.h>

/* The work since the last border belongs to a message of an end: recipes_border("client",
 * "send ClientHello", length), with 0 for a length that is not known here; "+" is part of this end's
 * last message. The end "-" is nobody, and "=" begins a connection. */
void recipes_border(const char *end, const char *message, size_t length);
/* From here on callgrind counts; all instructions, if RECIPES_WHOLE is set. RECIPES_DIGEST_BYTES are
 * those of the suite's hash. */
void recipes_begin(void);

/* Whether keys are derived by TLS 1.2's PRF (RFC 5246 section 5), where TLS 1.3 has HKDF-Expand. */
extern int recipes_tls12;

#endif
