/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* More ways through two functions than a tree should have nodes; with -DENDLESS more calls than frames, and with
   -DDEEP=n a recursion so deep. */
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

/* It takes no stack, so that no stack overflow ends it. */
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
