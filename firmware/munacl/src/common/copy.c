/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "internal.h"

void munacl_copy32(void *to, const void *from)
{
    unsigned char *out = to;
    const unsigned char *in = from;
    for (int i = 0; i < 32; i += 4) {
        uint32_t word = munacl_load32(in + i);
        memcpy(out + i, &word, 4);
    }
}

void munacl_wipe(void *at, size_t bytes)
{
    if (bytes) /* memset() takes no NULL */
        memset(at, 0, bytes);
    __asm__ volatile("" : : "r"(at) : "memory");
}
