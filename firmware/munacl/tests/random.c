/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The random generator on images of memory after power-up. Ends with the code of the hook that
 * randombytes() calls without entropy. */
#include <string.h>

#include "munacl.h"
#include "munacl_random.h"
#include "start.h"

enum { BYTES = 1600 };

static unsigned char memory[BYTES];
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

static int begin(unsigned millibits, int is_power_up)
{
    struct munacl_random_source source = {memory, BYTES, millibits, is_power_up, id, sizeof id};
    int result = munacl_random_begin(&source, &record);
    for (int i = 0; i < BYTES; i++)
        if (memory[i])
            expect("memory is not wiped", 1, 0);
    return result;
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
    expect("cells of 3 %", begin(30, 1), 0);
    first_record = record;
    randombytes(a, 100);
    randombytes(b, 100);
    expect("the same bytes twice", memcmp(a, b, 100) == 0, 0);
    /* The same memory and the record of that boot: the chip kept its memory. */
    image(1, 128);
    expect("retained", begin(30, 1), MUNACL_RANDOM_RETAINED);
    image(2, 128);
    expect("another power-up", begin(30, 1), 0);
    randombytes(b, 100);
    expect("the same bytes as before", memcmp(a, b, 100) == 0, 0);
    expect("a seed that stays", memcmp(&record, &first_record, sizeof record) == 0, 0);
    /* The same boot again gives the same bytes: nothing else goes in. */
    memset(&record, 0, sizeof record);
    image(1, 128);
    expect("the first boot again", begin(30, 1), 0);
    randombytes(b, 100);
    expect("other bytes", memcmp(a, b, 100) == 0, 1);
    munacl_random_mix(id, 3);
    randombytes(a, 100);
    image(1, 128);
    memset(&record, 0, sizeof record);
    begin(30, 1);
    randombytes(b, 100);
    randombytes(b, 100);
    expect("mixing changes nothing", memcmp(a, b, 100) == 0, 0);
    /* Warm resets live on the seed. */
    image(3, 128);
    expect("a warm reset with a seed", begin(30, 0), 0);
    memset(&record, 0, sizeof record);
    expect("a warm reset without one", begin(30, 0), MUNACL_RANDOM_NO_SEED);
    memset(&record, 255, sizeof record);
    expect("a warm reset with erased flash", begin(30, 0), MUNACL_RANDOM_NO_SEED);
    memset(&record, 0, sizeof record);
    image(4, 90);
    expect("cells of 35 % ones", begin(30, 1), 0);
    image(4, 30);
    expect("cells of 12 % ones", begin(30, 1), MUNACL_RANDOM_WEIGHT);
    image(5, 128);
    expect("no entropy given", begin(0, 1), MUNACL_RANDOM_TOO_FEW_BITS);
    image(5, 128);
    expect("entropy of 2.9 %", begin(29, 1), MUNACL_RANDOM_TOO_FEW_BITS);
    image(5, 128);
    expect("more than a bit a cell", begin(1001, 1), MUNACL_RANDOM_TOO_FEW_BITS);
    image(6, 128);
    memset(memory + 100, 0, 200);
    expect("partly overwritten", begin(30, 1), MUNACL_RANDOM_REPETITION);
    image(6, 128);
    for (int i = 0; i < BYTES; i += 2)
        memory[i] = 0x3c;
    expect("every other byte the same", begin(1000, 1), MUNACL_RANDOM_PROPORTION);
    memset(memory, 255, BYTES);
    expect("all ones", begin(30, 1), MUNACL_RANDOM_WEIGHT);
    memset(memory, 0, BYTES);
    expect("all zeros", begin(30, 1), MUNACL_RANDOM_WEIGHT);
    randombytes(a, 1);
    munacl_print("randombytes returned without entropy\n");
    return 2;
}
