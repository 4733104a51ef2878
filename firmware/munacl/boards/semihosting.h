/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Semihosting (Arm, "Semihosting for AArch32 and AArch64"), which a debugger or the simulator
 * answers. */
#ifndef MUNACL_SEMIHOSTING_H
#define MUNACL_SEMIHOSTING_H

enum { SYS_WRITE0 = 0x04, SYS_READC = 0x07, SYS_EXIT_EXTENDED = 0x20 };

static inline int semihosting(int number, const void *parameter)
{
    register int r0 __asm__("r0") = number;
    register const void *r1 __asm__("r1") = parameter;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

/* Ends the program, where somebody answers. */
static inline void semihosting_exit(int code)
{
    enum { ADP_STOPPED_APPLICATION_EXIT = 0x20026 };
    const unsigned block[2] = {ADP_STOPPED_APPLICATION_EXIT, (unsigned)code};
    semihosting(SYS_EXIT_EXTENDED, block);
}

#endif
