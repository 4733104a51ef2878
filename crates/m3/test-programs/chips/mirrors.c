// SPDX-License-Identifier: Apache-2.0 OR MIT
// The memories of an MPS2 with the image AN385 are at more than one address.
#include <stdint.h>

#define WORD(address) (*(volatile uint32_t *)(address))

static int same(uint32_t memory, uint32_t mirror)
{
    WORD(memory) = 0x600d600d;
    if (WORD(mirror) != 0x600d600d)
        return 0;
    WORD(mirror) = 0x0ff0ff0f;
    return WORD(memory) == 0x0ff0ff0f;
}

int main(void)
{
    if (!same(0x003ffff0, 0x007ffff0))
        return 1;
    if (!same(0x20200000, 0x20600000))
        return 2;
    for (uint32_t mirror = 0x01004000; mirror < 0x01010000; mirror += 0x4000)
        if (!same(0x01003ffc, mirror + 0x3ffc))
            return 3;
    return 0;
}
