/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Random numbers from what memory holds after power-up: from reset to the first bytes, which are
 * printed. Take it as a pattern: MILLIBITS is your captures' figure (docs/reference/munacl.md), the
 * record belongs in flash, and random bytes belong to nobody's console. */
#include "board.h"
#include "munacl.h"
#include "munacl_random.h"
#include "start.h"

enum { CELLS = 1600, MILLIBITS = 30, BYTES = 32 };

/* Start-up code leaves this section alone, and boot ROMs do: boards/sections.ld. */
static unsigned char cells[CELLS] __attribute__((section(".noinit.cells")));

/* Stands for a page of flash, which each chip erases and writes in its own way. RAM keeps it over
 * warm resets; after a power-up its check says that it is none. */
static struct munacl_random_record kept __attribute__((section(".noinit.kept")));

__attribute__((weak)) void example_load(struct munacl_random_record *record)
{
    *record = kept;
}

__attribute__((weak, noinline)) void example_store(const struct munacl_random_record *record)
{
    kept = *record;
}

/* What randombytes() calls in place of returning. */
void munacl_random_failed(enum munacl_random_error why)
{
    munacl_print("no random numbers, reason ");
    munacl_print_number(why);
    munacl_print("\n");
    munacl_leave(40 + (int)why);
}

int main(void)
{
    struct munacl_random_record record;
    unsigned char id[MUNACL_BOARD_ID], bytes[BYTES];
    munacl_console_begin();
    example_load(&record);
    struct munacl_random_source source = {
        .memory = cells,
        .bytes = sizeof cells,
        .millibits_per_cell = MILLIBITS,
        .is_power_up = munacl_board_is_power_up(),
        .device_id = id,
        .device_id_bytes = munacl_board_id(id),
    };
    if (munacl_random_begin(&source, &record) == 0)
        example_store(&record); /* before the first random number is used */
    randombytes(bytes, sizeof bytes);
    for (int i = 0; i < BYTES; i++) {
        char text[] = {"0123456789abcdef"[bytes[i] >> 4], "0123456789abcdef"[bytes[i] & 15], 0};
        munacl_print(text);
    }
    munacl_print("\n");
    munacl_leave(0);
}
