// SPDX-License-Identifier: Apache-2.0 OR MIT
// Variables in .noinit stay over a second start-up and a heap that is written to; others do not.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 64, HEAP = 2048 };

static uint32_t kept[WORDS] __attribute__((section(".noinit.kept")));
static uint32_t starts __attribute__((section(".noinit")));
static volatile uint32_t cleared, set = 7;

void Reset_Handler(void);

int main(void)
{
    if (cleared != 0 || set != 7)
        return 1;
    char *heap = malloc(HEAP);
    if (!heap || heap < (char *)(kept + WORDS) || heap < (char *)(&starts + 1))
        return 2;
    memset(heap, 0xa5, HEAP);
    if (starts++ == 0) {
        for (uint32_t i = 0; i < WORDS; i++)
            kept[i] = i * 0x01010101;
        cleared = set = 1;
        Reset_Handler();
    }
    for (uint32_t i = 0; i < WORDS; i++)
        if (kept[i] != i * 0x01010101)
            return 3;
    return starts == 2 ? 0 : 4;
}
