/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runs an assembly program of this folder with a secret. */
#include "warifu_m3.h"

uint32_t secret[8] = {
    0x00000003, 0x89abcdef, 0x76543210, 0xfedcba98, 0x0f1e2d3c, 0x4b5a6978, 0x8796a5b4, 0xc3d2e1f0,
};
uint32_t public_data[64];
void program(uint32_t *from, uint32_t *data);

int main(void)
{
    WARIFU_POISON(secret, sizeof secret);
    program(secret, public_data);
    return 0;
}
