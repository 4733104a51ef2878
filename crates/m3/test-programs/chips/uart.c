// SPDX-License-Identifier: Apache-2.0 OR MIT
// Zephyr's and CMSIS's console on mps2-an385: the CMSDK APB UART (Arm DDI 0479D section 4.3).
#include <stdint.h>

#define UART ((volatile uint32_t *)0x40004000)

static void put(const char *text)
{
    for (; *text; text++) {
        while (UART[1] & 1)
            ;
        UART[0] = (uint32_t)*text;
    }
}

int main(void)
{
    put("lost before the transmitter is enabled\n");
    UART[4] = 16;
    UART[2] = 1;
    put("from the UART\n");
    return 0;
}
