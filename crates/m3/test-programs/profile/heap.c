/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Allocations of known sizes from newlib's heap. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "warifu_m3.h"

/* Keeps the compiler from removing an allocation. */
static char *volatile a, *volatile b, *volatile c, *volatile none;

int main(void)
{
    WARIFU_MARK("grow");
    a = malloc(1000);
    b = calloc(10, 30);
    memset(a, 1, 1000);
    a = realloc(a, 3000);
    WARIFU_MARK("shrink");
    free(b);
    b = malloc(200);
    a = realloc(a, 100);
    c = memalign(64, 50);
    none = malloc(0x10000000);
    int code = a == NULL || b == NULL || c == NULL || none != NULL;
    free(a);
    free(c);
    return code;
}
