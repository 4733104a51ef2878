/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Sorting, recursion, function pointers, switches, strings, structures by value, variadic
 * functions, setjmp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

void print(const char *text);
void print_hex(uint32_t value);

struct point {
    int32_t x, y;
    char name[12];
    int64_t weight;
};

static jmp_buf back;

static struct point moved(struct point p, int32_t by)
{
    p.x += by, p.y -= by, p.weight *= 3, p.name[by & 7] = (char)('a' + (by & 15));
    return p;
}

static void quicksort(int32_t *a, int n)
{
    if (n < 2)
        return;
    int32_t pivot = a[n / 2];
    int i = 0, j = n - 1;
    while (i <= j) {
        while (a[i] < pivot)
            i++;
        while (a[j] > pivot)
            j--;
        if (i <= j) {
            int32_t t = a[i];
            a[i++] = a[j], a[j--] = t;
        }
    }
    quicksort(a, j + 1);
    quicksort(a + i, n - i);
}

static uint32_t ackermann(uint32_t m, uint32_t n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

static int total(int count, ...)
{
    va_list list;
    int sum = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++)
        sum = sum * 3 + va_arg(list, int);
    va_end(list);
    return sum;
}

static int decide(int kind, int value)
{
    switch (kind) {
    case 0: return value + 1;
    case 1: return value * 7;
    case 2: return -value;
    case 3: return value >> 2;
    case 4: return value ^ 0x55;
    case 5: return value & 0x3ff;
    case 6: return value | 0x100;
    case 200: return 0;
    default: return value - kind;
    }
}

static int twice(int v) { return v * 2; }
static int negated(int v) { return ~v; }
static int halved(int v) { return v / 2; }
static int (*const functions[])(int) = {twice, negated, halved};

static int deep(int depth)
{
    volatile uint8_t room[40];
    for (int i = 0; i < 40; i++)
        room[i] = (uint8_t)(i * depth);
    if (depth == 0)
        longjmp(back, 42 + room[7]);
    return depth < 0 ? room[3] : deep(depth - 1) + room[5];
}

int main(void)
{
    static int32_t numbers[150];
    uint32_t x = 99;
    for (int i = 0; i < 150; i++)
        numbers[i] = (int32_t)(x = x * 1664525 + 1013904223);
    quicksort(numbers, 150);
    uint32_t mixed = 0;
    for (int i = 0; i < 150; i++)
        mixed = mixed * 31 + (uint32_t)numbers[i];
    print_hex(mixed), print(" sorted\n");

    struct point p = {1, 2, "origin", -5};
    for (int i = 0; i < 20; i++)
        p = moved(p, i);
    print_hex((uint32_t)(p.x ^ p.y)), print_hex((uint32_t)p.weight), print(p.name), print("\n");

    print_hex(ackermann(2, 5)), print_hex((uint32_t)total(6, 5, -4, 3, 2, 100, -7)), print("\n");
    int value = 12345;
    for (int i = 0; i < 40; i++)
        value = functions[i % 3](decide(i % 9, value));
    print_hex((uint32_t)value), print_hex((uint32_t)decide(200, 3)), print("\n");

    volatile int came = setjmp(back);
    if (came == 0)
        came = deep(12);
    print_hex((uint32_t)came), print("\n");
    return 0;
}
