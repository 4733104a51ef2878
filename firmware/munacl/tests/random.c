/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The random generator on images of memory after power-up. Ends with the code of the hook that
 * randombytes() calls without entropy. The generator's state is made known to this file, so that it
 * can be what it is after a reset. */
#include <string.h>

#include "munacl.h"
#include "munacl_random.h"
#include "start.h"

enum { BYTES = 1600, MOST_BYTES = 1 << 19, TOO_MANY = MOST_BYTES + 16384 };

extern struct {
    unsigned char key[32];
    int begun;
    enum munacl_random_error why;
} generator;

static unsigned char memory[TOO_MANY];
static struct munacl_random_record record, first_record;
static const unsigned char id[12] = {1, 2, 3};
static uint32_t x;
static int wrong;

static uint32_t next(void)
{
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x;
}

/* Cells that are 1 with a probability in 256ths. */
static void image(uint32_t seed, uint32_t probability)
{
    x = seed;
    for (int i = 0; i < BYTES; i++) {
        memory[i] = 0;
        for (int bit = 0; bit < 8; bit++)
            memory[i] |= (unsigned char)(((next() >> 12 & 255) < probability) << bit);
    }
}

static void expect(const char *what, int found, int expected)
{
    if (found != expected) {
        wrong = 1;
        munacl_print(what);
        munacl_print(": ");
        munacl_print_number((uint32_t)found);
        munacl_print(" instead of ");
        munacl_print_number((uint32_t)expected);
        munacl_print("\n");
    }
}

/* After a reset. */
static int boot_of(size_t bytes, unsigned millibits, int is_power_up)
{
    struct munacl_random_source source = {memory, bytes, millibits, is_power_up, id, sizeof id};
    memset(&generator, 0, sizeof generator);
    int result = munacl_random_begin(&source, &record);
    for (size_t i = 0; i < bytes; i++)
        if (memory[i])
            expect("memory is not wiped", 1, 0);
    return result;
}

static int boot(unsigned millibits, int is_power_up)
{
    return boot_of(BYTES, millibits, is_power_up);
}

/* A write of the second record over the first, or over erased flash, that ends after any number of
 * bytes: a warm reset takes neither, a power-up goes on, with numbers of its own. */
static void torn_records(void)
{
    struct munacl_random_record before, after, erased;
    unsigned char first[32], torn[32];
    memset(&record, 0, sizeof record);
    image(10, 128);
    expect("before a torn record", boot(30, 1), 0);
    before = record;
    image(11, 128);
    expect("the record that is torn", boot(30, 1), 0);
    randombytes(first, sizeof first);
    after = record;
    memset(&erased, 255, sizeof erased);
    for (size_t bytes = 0; bytes <= sizeof record; bytes++) {
        for (int over = 0; over < 2; over++) {
            int is_whole = bytes == sizeof record || (over == 0 && bytes == 0);
            for (int is_power_up = 0; is_power_up < 2; is_power_up++) {
                record = over ? erased : before;
                memcpy(&record, &after, bytes);
                image(12, 128);
                expect("torn record", boot(30, is_power_up),
                       is_whole || is_power_up ? 0 : MUNACL_RANDOM_NO_SEED);
                if (!is_power_up)
                    continue;
                randombytes(torn, sizeof torn);
                expect("bytes of another boot", memcmp(first, torn, sizeof first) == 0, 0);
            }
        }
    }
}

/* Makes a part of the memory repeat a pattern with as many ones as zeros. */
static void repeat(int from, int bytes, int period)
{
    for (int i = from + 1; i < from + period; i += 2)
        memory[i] = (unsigned char)~memory[i - 1];
    for (int i = from + period; i < from + bytes; i++)
        memory[i] = memory[i - period];
}

static void periods(void)
{
    memset(&record, 0, sizeof record);
    for (int period = 2; period <= 64; period++) {
        image(20, 128);
        repeat(0, BYTES, period);
        expect("pattern that repeats", boot(30, 1), MUNACL_RANDOM_PERIOD);
        /* 150 bytes that equal those before once in 2^36 times, with 0.24 bits a byte. */
        image(21, 128);
        repeat(700, 150 + 64, period);
        expect("pattern that repeats in a part", boot(30, 1), MUNACL_RANDOM_PERIOD);
        image(21, 128);
        repeat(700, 148, period);
        expect("pattern that may repeat", boot(30, 1), 0);
    }
    for (int period = 4; period <= 43; period++) {
        image(22, 128);
        repeat(0, 48, period);
        expect("short memory", boot_of(48, 1000, 1), MUNACL_RANDOM_PERIOD);
    }
    image(22, 128);
    expect("short memory of chance", boot_of(48, 1000, 1), 0);
}

/* Further calls without a reset. */
static void begin_again(void)
{
    unsigned char a[32], b[32];
    struct munacl_random_source source = {memory, BYTES, 30, 1, id, sizeof id};
    for (int adds = 0; adds < 2; adds++) {
        memset(&record, 0, sizeof record);
        image(30, 128);
        expect("the first of two calls", boot(30, 1), 0);
        struct munacl_random_record before = record;
        if (adds)
            image(31, 128);
        expect("the second call", munacl_random_begin(&source, &record),
               adds ? 0 : MUNACL_RANDOM_WEIGHT);
        expect("record of the second call", memcmp(&record, &before, sizeof record) != 0, adds);
        randombytes(adds ? b : a, 32);
    }
    expect("a second call adds nothing", memcmp(a, b, 32) == 0, 0);
    memset(&record, 0, sizeof record);
    image(30, 128);
    boot(30, 1);
    randombytes(b, 32);
    expect("a second call without entropy changes bytes", memcmp(a, b, 32) == 0, 1);
    /* After a failure another source may still give entropy. */
    expect("a call that fails first", boot(30, 1), MUNACL_RANDOM_WEIGHT);
    image(30, 128);
    memset(&record, 0, sizeof record);
    expect("a call after one that failed", munacl_random_begin(&source, &record), 0);
    randombytes(b, 32);
    expect("other bytes after a failure", memcmp(a, b, 32) == 0, 1);
}

void munacl_random_failed(enum munacl_random_error why)
{
    if (!wrong)
        munacl_print("random: right\n");
    munacl_leave(wrong ? 1 : 40 + (int)why);
}

int main(void)
{
    unsigned char a[100], b[100];
    image(1, 128);
    expect("cells of 3 %", boot(30, 1), 0);
    first_record = record;
    randombytes(a, 100);
    randombytes(b, 100);
    expect("the same bytes twice", memcmp(a, b, 100) == 0, 0);
    /* The same memory and the record of that boot: the chip kept its memory. */
    image(1, 128);
    expect("retained", boot(30, 1), MUNACL_RANDOM_RETAINED);
    image(2, 128);
    expect("another power-up", boot(30, 1), 0);
    randombytes(b, 100);
    expect("the same bytes as before", memcmp(a, b, 100) == 0, 0);
    expect("a seed that stays", memcmp(&record, &first_record, sizeof record) == 0, 0);
    /* The same boot again gives the same bytes: nothing else goes in. */
    memset(&record, 0, sizeof record);
    image(1, 128);
    expect("the first boot again", boot(30, 1), 0);
    randombytes(b, 100);
    expect("other bytes", memcmp(a, b, 100) == 0, 1);
    munacl_random_mix(id, 3);
    randombytes(a, 100);
    image(1, 128);
    memset(&record, 0, sizeof record);
    boot(30, 1);
    randombytes(b, 100);
    randombytes(b, 100);
    expect("mixing changes nothing", memcmp(a, b, 100) == 0, 0);
    /* What another source gave before. */
    image(1, 128);
    memset(&record, 0, sizeof record);
    memset(&generator, 0, sizeof generator);
    munacl_random_mix(id, 3);
    struct munacl_random_source again = {memory, BYTES, 30, 1, id, sizeof id};
    expect("mixed before", munacl_random_begin(&again, &record), 0);
    randombytes(a, 100);
    image(1, 128);
    memset(&record, 0, sizeof record);
    boot(30, 1);
    randombytes(b, 100);
    expect("what is mixed in before is lost", memcmp(a, b, 100) == 0, 0);
    torn_records();
    periods();
    begin_again();
    /* No number, and nothing mixed in: lengths of 0. */
    struct munacl_random_source bare = {memory, BYTES, 30, 1, NULL, 0};
    image(13, 128);
    expect("without a number", munacl_random_begin(&bare, &record), 0);
    munacl_random_mix(NULL, 0);
    randombytes(NULL, 0);
    /* More bytes than 32 bits of thousandths of bits can count. */
    memset(memory, 0x55, TOO_MANY);
    expect("too much memory", boot_of(TOO_MANY, 1000, 1), MUNACL_RANDOM_TOO_FEW_BITS);
    memset(memory, 0x55, TOO_MANY);
    expect("the most memory", boot_of(MOST_BYTES, 1000, 1), MUNACL_RANDOM_REPETITION);
    memset(memory, 0, TOO_MANY);
    /* Warm resets live on the seed. */
    image(3, 128);
    expect("a warm reset with a seed", boot(30, 0), 0);
    memset(&record, 0, sizeof record);
    expect("a warm reset without one", boot(30, 0), MUNACL_RANDOM_NO_SEED);
    memset(&record, 255, sizeof record);
    expect("a warm reset with erased flash", boot(30, 0), MUNACL_RANDOM_NO_SEED);
    memset(&record, 0, sizeof record);
    image(4, 90);
    expect("cells of 35 % ones", boot(30, 1), 0);
    image(4, 30);
    expect("cells of 12 % ones", boot(30, 1), MUNACL_RANDOM_WEIGHT);
    image(5, 128);
    expect("no entropy given", boot(0, 1), MUNACL_RANDOM_TOO_FEW_BITS);
    image(5, 128);
    expect("entropy of 2.9 %", boot(29, 1), MUNACL_RANDOM_TOO_FEW_BITS);
    image(5, 128);
    expect("more than a bit a cell", boot(1001, 1), MUNACL_RANDOM_TOO_FEW_BITS);
    image(6, 128);
    memset(memory + 100, 0, 200);
    expect("partly overwritten", boot(30, 1), MUNACL_RANDOM_REPETITION);
    image(6, 128);
    for (int i = 0; i < BYTES; i += 2)
        memory[i] = 0x3c;
    expect("every other byte the same", boot(1000, 1), MUNACL_RANDOM_PROPORTION);
    memset(memory, 255, BYTES);
    expect("all ones", boot(30, 1), MUNACL_RANDOM_WEIGHT);
    memset(memory, 0, BYTES);
    expect("all zeros", boot(30, 1), MUNACL_RANDOM_WEIGHT);
    randombytes(a, 1);
    munacl_print("randombytes returned without entropy\n");
    return 2;
}
