/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A large amount of library code: newlib's printing, conversion, sorting, strings and mathematics.
 * Not meant to be run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int order(const void *a, const void *b)
{
    return strcmp(a, b);
}

int main(void)
{
    char text[64];
    time_t now = time(0);
    strftime(text, sizeof text, "%c", localtime(&now));
    snprintf(text, sizeof text, "%.3e %lld", strtod(text, 0) + sin(1.0) * pow(2.0, 0.5),
             strtoll(text, 0, 7));
    qsort(text, 8, 8, order);
    char *copy = malloc(strlen(text) + 1);
    int count = copy ? sscanf(text, "%d", (int *)copy) : 0;
    free(copy);
    return count + (int)lgamma(count) + printf("%s", text);
}
