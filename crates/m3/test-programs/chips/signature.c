// SPDX-License-Identifier: Apache-2.0 OR MIT
// What a program reads of the chip it runs on: the size of its flash in KiB, its unique identifier.
#include <stdint.h>

int main(void)
{
    const volatile uint8_t *identifier = (const volatile uint8_t *)IDENTIFIER;
    uint8_t any = 0;

    for (int i = 0; i < 12; i++)
        any |= identifier[i];
    if (any != 0)
        return 1;
    return *(const volatile uint16_t *)SIZE == KIB ? 0 : 2;
}
