/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* _sbrk for newlib's allocator: memory from the end of static data up to the space for the stack.
 * */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

extern char end[], __stack_top[];
#define STACK_BYTES (64 * 1024)

void *_sbrk(ptrdiff_t by)
{
    static char *top = end;
    char *before = top;
    if ((uintptr_t)top + by > (uintptr_t)__stack_top - STACK_BYTES) {
        errno = ENOMEM;
        return (void *)-1;
    }
    top += by;
    return before;
}
