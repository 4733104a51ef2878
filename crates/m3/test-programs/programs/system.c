/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Sleep, escalated faults, invalid exception returns, narrow and multiple stores to system
 * registers. */
#include <stdint.h>

void print(const char *text);
void print_hex(uint32_t value);

#define REGISTER(at) (*(volatile uint32_t *)(at))
#define BYTE(at) (*(volatile uint8_t *)(at))
#define SYST_CSR REGISTER(0xe000e010)
#define SYST_RVR REGISTER(0xe000e014)
#define SYST_CVR REGISTER(0xe000e018)
#define ISER REGISTER(0xe000e100)
#define ISPR REGISTER(0xe000e200)
#define ICPR REGISTER(0xe000e280)
#define SCR REGISTER(0xe000ed10)
#define CCR REGISTER(0xe000ed14)
#define SHCSR REGISTER(0xe000ed24)
#define CFSR REGISTER(0xe000ed28)
#define HFSR REGISTER(0xe000ed2c)

static volatile uint32_t ticks, wanted, hard, usage, request, seen[2];

static void tell(const char *what, uint32_t value)
{
    print_hex(value), print(what);
}

void sys_tick(void)
{
    ticks++;
    if (ticks == wanted)
        SYST_CSR = 0;
}

/* HardFault: records and clears HFSR. */
void fault(void)
{
    hard = HFSR;
    HFSR = hard;
}

/* Returns from SVCall by an invalid EXC_RETURN, by a frame without the Thumb bit, or properly. */
__attribute__((naked)) void sv_call(void)
{
    __asm__ volatile("ldr r0, =request\nldr r0, [r0]\n"
                     "cmp r0, #1\nbne 1f\nldr r0, =0xfffffff5\nbx r0\n"
                     "1: cmp r0, #2\nittt eq\nldreq r1, [sp, #28]\n"
                     "biceq r1, r1, #0x1000000\nstreq r1, [sp, #28]\n"
                     "bx lr\n.ltorg");
}

/* LR is the EXC_RETURN of the failed return: the frame is on the main stack in each case. */
__attribute__((naked)) void usage_fault(void)
{
    __asm__ volatile("mov r0, sp\npush {r4, lr}\nbl repair\npop {r4, lr}\n"
                     "ldr r0, =0xfffffff9\nbx r0\n.ltorg");
}

__attribute__((used)) void repair(uint32_t *frame)
{
    usage = CFSR;
    CFSR = usage;
    frame[7] |= 1u << 24;
    frame[6] &= ~1u;
}

static void sleep(void)
{
    SYST_RVR = 9999;
    SYST_CVR = 0;
    ticks = 0, wanted = 6;
    SYST_CSR = 7;
    while (ticks < wanted)
        __asm__ volatile("wfi");
    print("woken by ticks\n");

    __asm__ volatile("cpsid i");
    SCR = 16; /* SEVONPEND */
    __asm__ volatile("sev\nwfe");
    ISPR = 2;
    __asm__ volatile("wfe");
    ICPR = 2;
    SCR = 0;
    __asm__ volatile("cpsie i");
    print("woken by what pends\n");
}

static void escalation(void)
{
    SHCSR = 1 << 18; /* UsageFault */
    __asm__ volatile("cpsid i\nsvc 0\ncpsie i" ::: "memory");
    tell(" HFSR after SVC under PRIMASK\n", hard);
    request = 1;
    __asm__ volatile("svc 0" ::: "memory", "r0", "r1", "r2", "r3", "r12");
    tell(" CFSR after a return that does not fit\n", usage);
    request = 2;
    /* The return address is word-aligned: QEMU 7.2 raises another fault otherwise. */
    __asm__ volatile(".balign 4\nnop\nsvc 0\nnop" ::: "memory", "r0", "r1", "r2", "r3", "r12");
    tell(" CFSR after a return without Thumb\n", usage);
    SHCSR = 0;
}

static void stores(void)
{
    CCR |= 1 << 4; /* DIV_0_TRP */
    SHCSR = 0;
    ISER = 0x203;
    BYTE(0xe000e180) = 2; /* ICER: interrupt 1 alone */
    tell(" enabled\n", ISER);
    REGISTER(0xe000e180) = 0xffffffff;
    REGISTER(0xe000e400) = 0;
    BYTE(0xe000e402) = 0x60;
    tell(" priorities\n", REGISTER(0xe000e400));

    ticks = 0, wanted = 2;
    __asm__ volatile("mov r1, #0\nmovw r2, #9999\nmov r3, #0\nstm %0, {r1, r2, r3}\n"
                     "mov r1, #7\nstm %0, {r1, r2}"
                     : : "r"(0xe000e010) : "r1", "r2", "r3", "memory");
    for (uint32_t i = 0; i < 1000000000 && ticks < wanted; i++) {}
    print(ticks >= wanted ? "STM began a timer\n" : "STM began nothing\n");

    SYST_RVR = 0x7fffff;
    SYST_CVR = 0;
    SYST_CSR = 5;
    while (SYST_CVR == 0) {}
    seen[0] = SYST_CVR;
    SYST_RVR = 0xffffff;
    seen[1] = SYST_CVR;
    SYST_CSR = 0;
    print(seen[1] <= seen[0] && seen[1] != 0 ? "the count goes on\n" : "the count was lost\n");
}

static void breakpoint(void)
{
    /* SYS_WRITE0 under a failing condition. QEMU 7.2 still applies the condition to the NOP. */
    register const char *text __asm__("r1") = "BKPT is unconditional\n";
    __asm__ volatile("mov r0, #4\ncmp r0, #4\nit ne\nbkpt 0xab\nnop"
                     : : "r"(text) : "r0", "cc", "memory");
}

int main(void)
{
    sleep();
    escalation();
    stores();
    breakpoint();
    return 0;
}
