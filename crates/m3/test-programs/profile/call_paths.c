/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* More call paths through two functions than the profiler has nodes; with -DENDLESS more nested
 * calls than it has frames; with -DDEEP=n a recursion of that depth. */
#define NOINLINE __attribute__((noipa))

volatile unsigned count;

NOINLINE static void left(int depth);

NOINLINE static void right(int depth)
{
    count++;
    if (depth == 0)
        return;
    left(depth - 1);
    right(depth - 1);
    count--;
    count++;
}

NOINLINE static void left(int depth)
{
    count++;
    if (depth == 0)
        return;
    left(depth - 1);
    right(depth - 1);
    count--;
    count++;
}

/* Uses no stack, so that it never overflows. */
__attribute__((naked)) void endless(void)
{
    __asm__("bl endless");
}

NOINLINE void down(int depth)
{
    volatile int here = depth;
    if (depth == 0)
        return;
    down(depth - 1);
    count += here;
}

int main(void)
{
#ifdef ENDLESS
    endless();
#elif defined(DEEP)
    down(DEEP);
    return 0;
#endif
    left(17);
    return 0;
}
