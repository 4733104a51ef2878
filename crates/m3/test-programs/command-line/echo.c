/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Prints its arguments and each line of its input; the exit code is the number of arguments. */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    char line[80];

    for (int i = 1; i < argc; i++)
        printf("%s|", argv[i]);
    printf("\n");
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = 0;
        printf("<%s>\n", line);
    }
    return argc;
}
