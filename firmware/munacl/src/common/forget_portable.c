/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "internal.h"

/* Portable C has no say in where frames lie: this one covers them where compilers lay them out as
 * usual. */
__attribute__((noinline)) int MUNACL_TWIN(munacl_forget)(int result, unsigned pieces)
{
    unsigned char frame[40 * 64];
    munacl_wipe(frame, pieces < 40 ? pieces * 64 : sizeof frame);
    return result;
}
