/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Arithmetic modulo p = 2^255 - 19. An element is eight words and any value below 2^256; only
 * munacl_fe_freeze makes it unique. Formulas are programs of field operations on an array of
 * elements, the slots: a call from C costs more bytes and cycles than a step of a program. */
#ifndef MUNACL_FE25519_H
#define MUNACL_FE25519_H

#include "internal.h"

typedef uint32_t munacl_fe[8];

enum munacl_fe_operation {
    MUNACL_FE_END,
    MUNACL_FE_MUL,     /* d = a * b */
    MUNACL_FE_SQR,     /* d = a, squared b times (at least once) */
    MUNACL_FE_SQR10,   /* d = a, squared 10 b times */
    MUNACL_FE_ADD,     /* d = a + b */
    MUNACL_FE_SUB,     /* d = a - b */
    MUNACL_FE_A24,     /* d = a * 121666 + b (RFC 7748 section 5: (486662 + 2) / 4) */
    MUNACL_FE_SELECT   /* d = a where the mask given to munacl_fe_run is all ones */
};
/* Slots, and how often SQR squares, are below 16. */
typedef uint16_t munacl_fe_step;
#define FE(operation, d, a, b) \
    (munacl_fe_step)(MUNACL_FE_##operation << 12 | (d) << 8 | (a) << 4 | (b))

/* Runs a program to its END. `mask` is 0 or all ones and may be secret; the program is public. */
MUNACL_APART void munacl_fe_run(munacl_fe *slots, const munacl_fe_step *program, uint32_t mask);
/* out[0 .. 15] = a b as integers; out[16] is overwritten. */
MUNACL_APART void munacl_product(uint32_t out[17], const munacl_fe a, const munacl_fe b);
MUNACL_APART void munacl_product_portable(uint32_t out[17], const munacl_fe a, const munacl_fe b);
/* Slot 2 to the power 2^250 - 1 in slot 4, to the 11th in slot 3; slots 5 and 6 are used. */
extern const munacl_fe_step munacl_fe_power_250[];
/* The least representative. */
MUNACL_APART void munacl_fe_freeze(munacl_fe a);

/* The inverse; 0 for 0. Time fixed. */
MUNACL_APART void munacl_fe_invert(munacl_fe a);

#endif
