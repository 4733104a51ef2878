/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* More ways through two functions than a tree should have nodes, and with -DENDLESS more calls than frames. */
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

int main(void)
{
#ifdef ENDLESS
    endless();
#endif
    left(17);
    return 0;
}
