/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rows `NAME BYTES CYCLES STACK`: cycles by the core's counter less those of an empty measurement,
 * stack as the bytes that the call wrote below the caller's. */
#ifndef MUNACL_MEASURE_H
#define MUNACL_MEASURE_H

#include "report.h"

#define DEMCR (*(volatile uint32_t *)0xe000edfc)
#define DWT_CTRL (*(volatile uint32_t *)0xe0001000)
#define CYCCNT (*(volatile uint32_t *)0xe0001004)

enum { PAINTED = 3072, PAINT = 0x5a5aa5a5 };

static uint32_t empty;

static inline uint32_t *stack_pointer(void)
{
    uint32_t *at;
    __asm__ volatile("mov %0, sp" : "=r"(at));
    return at;
}

__attribute__((noinline)) static uint32_t measure(void (*call)(void), uint32_t *stack)
{
    uint32_t *top = stack_pointer();
    for (int i = 1; i <= PAINTED / 4; i++)
        ((volatile uint32_t *)top)[-i] = PAINT;
    uint32_t begin = CYCCNT;
    call();
    uint32_t cycles = CYCCNT - begin;
    int depth = PAINTED / 4;
    while (depth && ((volatile uint32_t *)top)[-depth] == PAINT)
        depth--;
    *stack = (uint32_t)depth * 4;
    return cycles;
}

static void report_number(uint32_t value)
{
    char text[11];
    munacl_number(text, value);
    report(text);
}

static inline void row(const char *name, uint32_t bytes, void (*call)(void))
{
    uint32_t stack, cycles = measure(call, &stack) - empty;
    report(name);
    report(" ");
    report_number(bytes);
    report(" ");
    report_number(cycles);
    report(" ");
    report_number(stack);
    report("\n");
}

static int failed;
static void expect(const char *what, int result)
{
    if (result) {
        munacl_print("# failed: ");
        munacl_print(what);
        munacl_print("\n");
        failed = 1;
    }
}

static void nothing(void) { expect("", 0); }

/* The line of the board, the counter, and what an empty measurement takes. `profile` is printed. */
static void begin(const char *profile)
{
    munacl_console_begin();
    DEMCR |= 1 << 24; /* TRCENA */
    DWT_CTRL |= 1;    /* CYCCNTENA */
    report_head("# munacl bench board=");
    report_head(munacl_console_board());
    report_head(" hz=");
    report_head_number(munacl_console_hz());
    report_head(" profile=");
    report_head(profile);
    report_head("\n");
    uint32_t stack;
    empty = measure(nothing, &stack);
}

__attribute__((noreturn)) static void end(void)
{
    report_end();
    munacl_leave(failed);
}

#endif
