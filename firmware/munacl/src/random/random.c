/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory after power-up, checked (NIST SP 800-90B section 4.4), hashed by SHA-512 with a seed from
 * flash and the chip's number; then Salsa20, whose key each block replaces (D. J. Bernstein,
 * "Fast-key-erasure random-number generators"). */
#include "munacl_random.h"

#include "internal.h"

/* With MOST_BYTES no product below is beyond 32 bits. */
enum { NEEDED_MILLIBITS = 384000, WINDOW = 512, MOST_BYTES = 1 << 19, LONGEST_PERIOD = 64 };

static struct {
    unsigned char key[32];
    int begun;
    enum munacl_random_error why;
} generator;

__attribute__((weak)) void munacl_random_failed(enum munacl_random_error why)
{
    (void)why;
}

/* All ones where the bytes are equal. */
static uint32_t equal(uint32_t a, uint32_t b)
{
    return munacl_opaque((uint32_t)((int32_t)((a ^ b) - 1) >> 31));
}

/* The greater of two values below 2^31; compilers know a select when they see the mask. */
static uint32_t greater(uint32_t a, uint32_t b)
{
    return a ^ ((a ^ b) & munacl_opaque((uint32_t)((int32_t)(a - b) >> 31)));
}

/* The greatest count of a window's first byte that a source of this entropy exceeds once in 2^30
 * windows (SP 800-90B section 4.4.2), for steps of thousandths of a bit a cell. */
static uint32_t most_of_window(unsigned millibits)
{
    static const uint16_t cutoffs[][2] = {
        {10, 510}, {20, 496}, {30, 479},
        {50, 444}, {100, 361}, {200, 235}, {400, 103}, {1000, 16},
    };
    uint32_t most = WINDOW + 1;
    for (unsigned i = 0; i < sizeof cutoffs / sizeof *cutoffs; i++)
        if (millibits >= cutoffs[i][0])
            most = cutoffs[i][1];
    return most;
}

/* Whether a pattern of at most LONGEST_PERIOD bytes is repeated: bytes are compared with those a
 * period before as the repetition test compares neighbours. Every period has a multiple in the
 * upper half, which is enough where the memory is longer. With up to 63 comparisons a byte each may
 * be wrong once in 2^36, not 2^30. */
static int is_periodic(const struct munacl_random_source *source)
{
    const unsigned char *memory = source->memory;
    uint32_t longest = 0;
    size_t period = source->bytes < 2 * LONGEST_PERIOD ? 2 : LONGEST_PERIOD / 2 + 1;
    for (; period <= LONGEST_PERIOD; period++) {
        uint32_t run = 0;
        for (size_t i = period; i < source->bytes; i++) {
            run = (run + 1) & equal(memory[i], memory[i - period]);
            longest = greater(longest, run);
        }
    }
    MUNACL_DECLASSIFY(&longest, sizeof longest);
    return longest * 8 * source->millibits_per_cell >= 36000;
}

static int check(const struct munacl_random_source *source)
{
    const unsigned char *memory = source->memory;
    uint32_t ones = 0, run = 0, longest = 0, same = 0, most = 0;
    if (source->bytes > MOST_BYTES || source->millibits_per_cell > 1000)
        return MUNACL_RANDOM_TOO_FEW_BITS;
    uint64_t millibits = 0;
    for (unsigned bit = 0; bit < 10; bit++)
        if (source->millibits_per_cell >> bit & 1)
            millibits += (uint64_t)source->bytes * 8 << bit;
    if (millibits < NEEDED_MILLIBITS)
        return MUNACL_RANDOM_TOO_FEW_BITS;
    for (size_t i = 0; i < source->bytes; i++) {
        uint32_t byte = memory[i];
        for (unsigned bit = 0; bit < 8; bit++)
            ones += byte >> bit & 1;
        run = (i ? run & equal(byte, memory[i - 1]) : 0) + 1;
        longest = greater(longest, run);
        if (i % WINDOW == 0)
            same = 0;
        same += 1 & equal(byte, memory[i - i % WINDOW]);
        most = greater(most, same);
    }
    /* What the tests say of the memory, and no more than that, decides what happens. */
    MUNACL_DECLASSIFY(&ones, sizeof ones);
    MUNACL_DECLASSIFY(&longest, sizeof longest);
    MUNACL_DECLASSIFY(&most, sizeof most);
    if (ones < source->bytes * 2 || ones > source->bytes * 6)
        return MUNACL_RANDOM_WEIGHT;
    /* The cut-off is 1 + 30 / H for H bits a byte. */
    if ((longest - 1) * 8 * source->millibits_per_cell >= 30000)
        return MUNACL_RANDOM_REPETITION;
    if (most >= most_of_window(source->millibits_per_cell))
        return MUNACL_RANDOM_PROPORTION;
    return is_periodic(source) ? MUNACL_RANDOM_PERIOD : 0;
}

/* out = the first half of SHA-512 of a byte, two hashes of 64 bytes and a seed. */
static void derive(unsigned char out[32], unsigned char which, const unsigned char *hashes,
                   const unsigned char *seed)
{
    unsigned char input[161], hash[64];
    input[0] = which;
    memcpy(input + 1, hashes, 128);
    munacl_copy32(input + 129, seed);
    crypto_hash_sha512(hash, input, sizeof input);
    munacl_copy32(out, hash);
    munacl_wipe(input, sizeof input);
    munacl_wipe(hash, sizeof hash);
}

/* What the record's check has to be. */
static void sum(unsigned char out[32], const struct munacl_random_record *record)
{
    unsigned char both[128];
    memset(both, 0, sizeof both);
    munacl_copy32(both, record->digest);
    derive(out, 4, both, record->seed);
}

/* Whether the record was written, to its end: flash is all zeros or all ones before, and a power
 * cut leaves a part of it. */
static int is_whole(const struct munacl_random_record *record)
{
    unsigned char expected[32];
    sum(expected, record);
    int different = crypto_verify_32(record->check, expected);
    MUNACL_DECLASSIFY(&different, sizeof different);
    return !different;
}

/* The generator's key of itself and what is new. */
static void mix(const unsigned char *data, size_t bytes)
{
    unsigned char hashes[128];
    memset(hashes, 0, sizeof hashes);
    crypto_hash_sha512(hashes, data, bytes);
    derive(generator.key, 3, hashes, generator.key);
    munacl_wipe(hashes, sizeof hashes);
}

MUNACL_INNER int begin(const struct munacl_random_source *source,
                       struct munacl_random_record *record)
{
    unsigned char hashes[128], digest[32], key[32];
    int failed = 0;
    memset(hashes, 0, sizeof hashes);
    munacl_copy32(digest, record->digest);
    if (source->is_power_up) {
        failed = check(source);
        if (!failed) {
            crypto_hash_sha512(hashes, source->memory, source->bytes);
            /* The digest goes to flash: another hash of it, which does not give it away. */
            memset(digest, 0, sizeof digest);
            derive(digest, 0, hashes, digest);
            int different = crypto_verify_32(digest, record->digest);
            MUNACL_DECLASSIFY(&different, sizeof different);
            if (!different)
                failed = MUNACL_RANDOM_RETAINED;
        }
    } else if (!is_whole(record)) {
        failed = MUNACL_RANDOM_NO_SEED;
    }
    munacl_wipe(source->memory, source->bytes);
    if (!failed) {
        crypto_hash_sha512(hashes + 64, source->device_id, source->device_id_bytes);
        derive(key, 1, hashes, record->seed);
        mix(key, sizeof key);
        derive(record->seed, 2, hashes, record->seed);
        munacl_copy32(record->digest, digest);
        sum(record->check, record);
        generator.begun = 1;
    } else if (!generator.begun) {
        generator.why = (enum munacl_random_error)failed;
    }
    munacl_wipe(hashes, sizeof hashes);
    munacl_wipe(digest, sizeof digest);
    munacl_wipe(key, sizeof key);
    return failed;
}

int munacl_random_begin(const struct munacl_random_source *source,
                        struct munacl_random_record *record)
{
    return MUNACL_FORGET(begin(source, record), MUNACL_RANDOM);
}

MUNACL_INNER void mix_in(const unsigned char *data, size_t bytes)
{
    mix(data, bytes);
}

void munacl_random_mix(const unsigned char *data, size_t bytes)
{
    mix_in(data, bytes);
    MUNACL_FORGET(0, MUNACL_RANDOM);
}

MUNACL_INNER void generate(unsigned char *out, unsigned long long bytes)
{
    static const unsigned char nonce[8];
    unsigned char block[64];
    while (bytes) {
        size_t some = bytes < 32 ? (size_t)bytes : 32;
        crypto_stream_salsa20(block, sizeof block, nonce, generator.key);
        munacl_copy32(generator.key, block);
        memcpy(out, block + 32, some);
        out += some;
        bytes -= some;
    }
    munacl_wipe(block, sizeof block);
}

void munacl_random_bytes(unsigned char *out, unsigned long long bytes)
{
    if (!generator.begun) {
        munacl_random_failed(generator.why ? generator.why : MUNACL_RANDOM_NOT_BEGUN);
        for (;;) {}
    }
    generate(out, bytes);
    MUNACL_FORGET(0, MUNACL_RANDOM_BYTES);
}

__attribute__((weak)) void randombytes(unsigned char *out, unsigned long long bytes)
{
    munacl_random_bytes(out, bytes);
}
