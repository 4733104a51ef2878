/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Outermost functions that assign the stack pointer, at reset and in a thread. */
#include <stdint.h>

#define NOINLINE __attribute__((noipa))

void leave(int code);
int main(void);

static volatile uint32_t sink, count = 40;

NOINLINE void deep(void)
{
    volatile uint8_t here[4000];
    here[0] = 1;
    sink += here[0];
}

/* Variable-length arrays: GCC releases one by MOV SP, Clang also allocates one so. */
#define FLAT()                                                                              \
    do {                                                                                    \
        for (int i = 0; i < 2; i++) {                                                       \
            volatile uint8_t some[count];                                                   \
            some[0] = 1;                                                                    \
            sink += some[0];                                                                \
        }                                                                                   \
        __asm__ volatile("mov r2, sp\n\tsub r3, r2, #64\n\tmov sp, r3\n\tmov sp, r2"        \
                         ::: "r2", "r3");                                                   \
    } while (0)

#ifdef THREAD
__attribute__((noreturn)) void thread(void)
{
    FLAT();
    deep();
    FLAT();
    leave(0);
    for (;;) {}
}

static uint32_t stack[2048] __attribute__((aligned(8)));
uint32_t *const thread_top = stack + 2048;

__attribute__((naked)) void sv_call(void)
{
    __asm__("msr psp, r0\n\tmvn lr, #2\n\tbx lr");
}

int main(void)
{
    uint32_t *frame = thread_top - 8;
    frame[6] = (uint32_t)thread & ~1u;
    frame[7] = 1 << 24;
    register uint32_t *r0 __asm__("r0") = frame;
    __asm__ volatile("svc 0" : : "r"(r0) : "memory");
    return 1;
}
#elif defined(TWICE)
/* Starts on one stack and continues on another. */
NOINLINE void early(void)
{
    volatile uint8_t here[100];
    here[0] = 1;
    (void)here[0];
}

#define TEXT(of) #of
#define PLACE(by, at) "ldr r0, =0x20000000 + " TEXT(at) "\n\t" by ", r0\n\t"

__attribute__((naked, noreturn)) void start_c(void)
{
    __asm__(PLACE(BY, 0x80000) "bl early\n\t"
            PLACE(BY, TWICE) "bl deep\n\tmovs r0, #0\n\tbl leave");
}

int main(void)
{
    return 1;
}
#else
__attribute__((noreturn)) void start_c(void)
{
    count = 40; /* .data is not copied */
    FLAT();
    deep();
    FLAT();
    leave(0);
    for (;;) {}
}

int main(void)
{
    return 1;
}
#endif
