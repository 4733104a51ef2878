/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Requests of a program to the simulator (crates/m3/src/ports.rs). On a real chip these stores are
 * bus faults: compile with -DWARIFU_M3=0 for hardware, which makes the macros do nothing. */
#ifndef WARIFU_M3_H
#define WARIFU_M3_H

#include <stddef.h>
#include <stdint.h>

#ifndef WARIFU_M3
#define WARIFU_M3 1
#endif

#if WARIFU_M3
#define WARIFU_PORT(offset) (*(volatile uint32_t *)(0xf0000000u + (offset)))
/* The barriers make the compiler write values back to memory before, and read them again after. */
#define WARIFU_TAINT(at, bytes, command)              \
    do {                                              \
        __asm__ volatile("" ::: "memory");            \
        WARIFU_PORT(0x0) = (uint32_t)(uintptr_t)(at); \
        WARIFU_PORT(0x4) = (uint32_t)(bytes);         \
        WARIFU_PORT(0x8) = (command);                 \
        __asm__ volatile("" ::: "memory");            \
    } while (0)
/* Make bytes secret from now on; make them public again. */
#define WARIFU_POISON(at, bytes) WARIFU_TAINT(at, bytes, 1)
#define WARIFU_UNPOISON(at, bytes) WARIFU_TAINT(at, bytes, 0)
/* Mark this point of the run by a name, a string that must remain valid and unchanged. */
#define WARIFU_MARK(text) (WARIFU_PORT(0x200) = (uint32_t)(uintptr_t)(text))
#else
#define WARIFU_POISON(at, bytes) ((void)(at), (void)(bytes))
#define WARIFU_UNPOISON(at, bytes) ((void)(at), (void)(bytes))
#define WARIFU_MARK(text) ((void)(text))
#endif

#endif
