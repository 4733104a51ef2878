/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Random numbers from what memory holds after power-up. Where a chip has a generator of its own,
 * define randombytes() with it, or mix its output in. */
#ifndef MUNACL_RANDOM_H
#define MUNACL_RANDOM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum munacl_random_error {
    MUNACL_RANDOM_NOT_BEGUN = 1, /* randombytes() before munacl_random_begin() succeeded */
    MUNACL_RANDOM_TOO_FEW_BITS,  /* cells times entropy a cell is less than 384 bits, or a cell
                                    has more than one, or the memory more than 512 KiB */
    MUNACL_RANDOM_WEIGHT,        /* fewer than a quarter of the cells are 0, or are 1 */
    MUNACL_RANDOM_REPETITION,    /* a byte repeats as it would not (SP 800-90B section 4.4.1) */
    MUNACL_RANDOM_PROPORTION,    /* a byte is too frequent (SP 800-90B section 4.4.2) */
    MUNACL_RANDOM_RETAINED,      /* the same content as at the previous boot */
    MUNACL_RANDOM_NO_SEED,       /* a warm reset, and no whole record of an earlier boot */
    MUNACL_RANDOM_PERIOD         /* a pattern of up to 64 bytes repeats as it would not */
};

/* What is kept in flash between boots, and never NULL; all zeros, or all ones as erased flash is,
 * before the first. munacl_random_begin() changes it: write it back before the first use of a
 * random number, or two boots may give the same ones. A record of which a power cut left a part is
 * none: a warm reset is refused then, and a power-up lives on its memory alone. */
struct munacl_random_record {
    unsigned char seed[32];
    unsigned char digest[32]; /* of the memory at the last power-up */
    unsigned char check[32];  /* of both, by SHA-512 */
};

struct munacl_random_source {
    /* Memory that nothing has written since power-up: a section that start-up leaves alone, past
     * what the boot ROM and the stack use. It is wiped. */
    unsigned char *memory;
    size_t bytes;
    /* Min-entropy of a cell in thousandths of a bit: of this chip, by your own captures at the
     * lowest and highest temperature (NIST SP 800-90B). There is no default: published chips
     * differ from 0 to 100 and more. */
    unsigned millibits_per_cell;
    /* Whether the chip's reset cause says power-up: a warm reset keeps memory. */
    int is_power_up;
    /* The chip's unique number, so that chips with the same content differ; may be empty. */
    const unsigned char *device_id;
    size_t device_id_bytes;
};

/* The generator has one state: none of these functions, nor randombytes() and what calls it (key
 * pairs), may be called while another one runs, from an interrupt or another thread. */

/* 0, or why there is no entropy: randombytes() will not return then. A call after one that gave 0
 * adds what it finds; where it finds nothing, as in memory that the first has wiped, it says why,
 * and randombytes() goes on with the entropy that there is. */
int munacl_random_begin(const struct munacl_random_source *source,
                        struct munacl_random_record *record);
/* Mixes in what another source gives, which may be of any quality, before or after
 * munacl_random_begin(). */
void munacl_random_mix(const unsigned char *data, size_t bytes);
/* What randombytes() calls: for a function of that name of your own. */
void munacl_random_bytes(unsigned char *out, unsigned long long bytes);
/* Called by munacl_random_bytes() without entropy, which never returns: define it to say why. */
void munacl_random_failed(enum munacl_random_error why);

#ifdef __cplusplus
}
#endif
#endif
