/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* boards/start.h on a host, for the portable twins under its sanitizers. */
#include <stdio.h>
#include <stdlib.h>

#include "start.h"

void munacl_print(const char *text)
{
    fputs(text, stdout);
}

void munacl_print_number(uint32_t value)
{
    printf("%u", (unsigned)value);
}

int munacl_read(void)
{
    return getchar();
}

void munacl_leave(int code)
{
    exit(code);
}
