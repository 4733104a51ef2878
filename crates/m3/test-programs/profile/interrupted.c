/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Known numbers of calls, returns and allocations, with interrupts between any two instructions. */
#include <stdint.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noipa))
#define CALLS 3000
#define BLOCKS 500
#ifdef QUIET
#define TICKS 4
#else
#define TICKS 7
#endif

volatile uint32_t ticks, pended;
static volatile uint32_t sink;
static void *volatile block;
static char heap[65536];

/* For newlib's allocator. */
void *_sbrk(int bytes)
{
    static char *end = heap;
    char *before = end;
    if (bytes > heap + sizeof heap - end)
        return (void *)-1;
    end += bytes;
    return before;
}

NOINLINE static void leaf(void)
{
    sink += 1;
}

NOINLINE static void calls_leaf(void)
{
    leaf();
    sink += 1;
}

/* Ends, and may begin, with a jump to another function. */
NOINLINE static void tail(void)
{
    sink += 1;
    leaf();
}

void sys_tick(void)
{
    ticks++;
    *(volatile uint32_t *)0xe000ed04 = 1 << 28; /* PendSV, by tail-chaining */
}

void pend_sv(void)
{
    pended++;
#ifdef HANDLER_FREES
    free(block); /* with -O2 a tail call: the handler returns from the allocator */
#endif
}

#ifdef HANDLER_FREES
int main(void)
{
    for (int i = 0; i < 3; i++) {
        block = malloc(100);
        *(volatile uint32_t *)0xe000ed04 = 1 << 28;
        __asm__ volatile("dsb\n\tisb" ::: "memory");
    }
    return 0;
}
#else
int main(void)
{
    *(volatile uint32_t *)0xe000e014 = 96; /* 97 cycles: prime, so no loop stays in step with it */
    *(volatile uint32_t *)0xe000e018 = 0;
    *(volatile uint32_t *)0xe000e010 = TICKS;
    for (int i = 0; i < CALLS; i++) {
        leaf();
        calls_leaf();
        tail();
    }
    for (int i = 0; i < BLOCKS; i++) {
        block = malloc(100 + i);
        free(block);
    }
    block = malloc(40);
    *(volatile uint32_t *)0xe000e010 = 0;
    return block == NULL;
}
#endif
