/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Exceptions that the program causes: SVC, PendSV, an interrupt, priorities, both stacks,
 * unprivileged code, bit-banding, exclusives, an unaligned access, faults that a handler skips. */
#include <stdint.h>

void print(const char *text);
void print_hex(uint32_t value);

#define REGISTER(at) (*(volatile uint32_t *)(at))
#define ICSR REGISTER(0xe000ed04)
#define CCR REGISTER(0xe000ed14)
#define SHCSR REGISTER(0xe000ed24)
#define CFSR REGISTER(0xe000ed28)
#define SHPR(n) REGISTER(0xe000ed18 + 4 * (n))
#define ISER REGISTER(0xe000e100)
#define ISPR REGISTER(0xe000e200)
#define IPR REGISTER(0xe000e400)

static volatile uint32_t order, faults;
static volatile uint32_t bits[4];
static uint64_t process_stack[64];

static void note(uint32_t what)
{
    order = order * 16 + what;
}

void sv_call(void)
{
    note(1);
    ICSR = 1u << 28; /* PendSV, lower priority: after this handler */
    ISPR = 1;        /* interrupt 0, higher priority: preempts it */
    __asm__ volatile("dsb\nisb");
    note(2);
    /* The caller becomes privileged again and keeps its stack. */
    __asm__ volatile("msr control, %0" : : "r"(0));
}

void pend_sv(void) { note(3); }
void interrupt0(void) { note(4); }

/* Records the cause of the fault and skips the instruction. */
__attribute__((naked)) void usage_fault(void)
{
    __asm__ volatile("tst lr, #4\nite eq\nmrseq r0, msp\nmrsne r0, psp\nb skip");
}

__attribute__((used)) void skip(uint32_t *frame)
{
    faults = faults * 2 + CFSR;
    CFSR = 0xffffffff;
    frame[6] += 4; /* every faulting instruction here has 32 bits */
    frame[7] &= ~0x0600fc00u;
}

static uint32_t exclusive_add(volatile uint32_t *at, uint32_t by)
{
    uint32_t old, failed;
    do {
        __asm__ volatile("ldrex %0, [%2]\nadd %0, %0, %3\nstrex %1, %0, [%2]"
                         : "=&r"(old), "=&r"(failed) : "r"(at), "r"(by) : "memory");
    } while (failed);
    return old;
}

int main(void)
{
    SHPR(1) = 0x80u << 24;               /* SVCall */
    SHPR(2) = 0xe0u << 16;               /* PendSV */
    IPR = 0x40;                          /* interrupt 0 */
    ISER = 1;
    __asm__ volatile("svc 7\ndsb\nisb");
    print_hex(order), print(" order\n");

    __asm__ volatile("cpsid i");
    ISPR = 1;
    ICSR = 1u << 28;
    __asm__ volatile("dsb\nisb");
    note(5);
    __asm__ volatile("cpsie i\nisb");
    note(6);
    __asm__ volatile("msr basepri, %0\nisb" : : "r"(0xc0));
    ICSR = 1u << 28;
    __asm__ volatile("dsb\nisb");
    note(7);
    __asm__ volatile("msr basepri, %0\nisb" : : "r"(0));
    print_hex(order), print(" masked\n");

    SHCSR = 7u << 16;
    CCR |= 1u << 4 | 1u << 3; /* division by zero and unaligned accesses are faults */
    uint32_t quotient = 77, loaded = 88;
    __asm__ volatile("udiv %0, %1, %2" : "+r"(quotient) : "r"(5), "r"(0));
    __asm__ volatile("ldr.w %0, [%1, #1]" : "+r"(loaded) : "r"(bits));
    __asm__ volatile(".inst.w 0xf7f0a000");
    CCR &= ~(1u << 4 | 1u << 3);
    print_hex(faults), print_hex(quotient), print_hex(loaded), print(" faults\n");
    __asm__ volatile("udiv %0, %1, %2" : "+r"(quotient) : "r"(5), "r"(0));
    print_hex(quotient), print("\n");

    /* Bit 5 of the second word by its alias. */
    uint32_t alias = 0x22000000u + (((uint32_t)&bits[1] - 0x20000000u) * 8 + 5) * 4;
    REGISTER(alias) = 1;
    print_hex(bits[1]), print_hex(REGISTER(alias)), print_hex(REGISTER(alias + 4));
    print(" bits\n");

    print_hex(exclusive_add(&bits[2], 41)), print_hex(bits[2]), print("\n");

    uint32_t main_stack, process, control;
    __asm__ volatile("msr psp, %3\nmovs r0, #3\nmsr control, r0\nisb\nmrs %0, msp\nsvc 1\n"
                     "mrs %1, psp\nmrs %2, control\nmovs r0, #0\nmsr control, r0\nisb"
                     : "=r"(main_stack), "=r"(process), "=r"(control)
                     : "r"(process_stack + 64) : "r0", "memory");
    print_hex(main_stack), print_hex(process - (uint32_t)process_stack);
    print_hex(control), print_hex(order);
    print(" stacks\n");
    return 0;
}
