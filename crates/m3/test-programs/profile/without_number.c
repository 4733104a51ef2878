/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* -DSTACKS: a process stack at another address each time. -DFUNCTIONS: the same below a thousand
 * calls. -DBLOCKS: an allocator whose blocks are never freed. */
#include <stdint.h>

/* Selects the process stack at `top`, uses a word of it, and goes back. */
static inline void use_stack(uint32_t top)
{
    __asm__ volatile("msr psp, %0\n\tmovs r0, #2\n\tmsr control, r0\n\tisb\n\t"
                     "push {r0}\n\tpop {r0}\n\t"
                     "movs r0, #0\n\tmsr control, r0\n\tisb"
                     :: "r"(top) : "r0", "memory");
}

/* As newlib's: the structure of the thread, then the bytes. */
__attribute__((noipa)) uint32_t _malloc_r(void *thread, uint32_t bytes)
{
    static uint32_t next;
    (void)thread;
    (void)bytes;
    return next += 8;
}

__attribute__((noipa)) void down(int depth)
{
    if (depth > 0) {
        down(depth - 1);
        __asm__ volatile("");
        return;
    }
    for (uint32_t top = 0x20010000; top < 0x20100000; top += 8)
        use_stack(top);
}

int main(void)
{
#if defined(STACKS)
    down(0);
#elif defined(FUNCTIONS)
    down(1000);
#elif defined(BLOCKS)
    for (;;)
        _malloc_r(0, 1);
#endif
    return 0;
}
