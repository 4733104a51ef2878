/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Every call while SysTick interrupts it, at intervals that vary, with a handler that overwrites
 * the stack below: what a call keeps there, or believes of registers, would change its results. */
#include <string.h>

#include "munacl.h"
#include "start.h"

#define REGISTER(at) (*(volatile uint32_t *)(at))
#define SYST_CSR REGISTER(0xe000e010)
#define SYST_RVR REGISTER(0xe000e014)
#define SYST_CVR REGISTER(0xe000e018)
#define VTOR REGISTER(0xe000ed08)

enum { MESSAGE = 300, ROOM = 640 };

static uint32_t interrupts, x = 2463534242u;

void randombytes(unsigned char *to, unsigned long long bytes)
{
    memset(to, 3, (size_t)bytes);
}

/* The next one after 64 to 191 cycles, of which the handler's end takes some. */
__attribute__((used)) static void tick(void)
{
    interrupts++;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    SYST_RVR = 64 + (x & 127);
    SYST_CVR = 0;
}

/* What an exception stacks (r0 to r3, r12, lr, pc, xPSR) is restored; the registers that it does
 * not are the handler's to keep. */
__attribute__((naked)) static void handler(void)
{
    __asm__ volatile("push {r4, lr}\n sub sp, #96\n mov r0, sp\n movs r1, #24\n mvn r2, r1\n"
                     "1: str r2, [r0], #4\n subs r1, #1\n bne 1b\n add sp, #96\n bl tick\n"
                     "mvn r12, r12\n pop {r4, pc}");
}

extern uint32_t __stack_top[];
void munacl_reset(void);
void munacl_fault(void);
/* Aligned to the table's size, as VTOR asks for. */
__attribute__((aligned(128))) static const void *const vectors[16] = {
    __stack_top, (void *)munacl_reset, (void *)munacl_fault, (void *)munacl_fault,
    (void *)munacl_fault, (void *)munacl_fault, (void *)munacl_fault, [15] = (void *)handler,
};

struct results {
    unsigned char shared[96], signature[MESSAGE + 64], opened[MESSAGE + 64], box[MESSAGE];
    unsigned char unboxed[MESSAGE], tags[96], stream[MESSAGE], pk[32], sk[64];
    unsigned long long length;
    int codes[6];
};

static unsigned char m[ROOM], k[64], n[24];

static void work(struct results *to)
{
    memset(to, 0, sizeof *to);
    crypto_scalarmult_base(to->shared, k);
    crypto_scalarmult(to->shared + 32, k, to->shared);
    crypto_box_beforenm(to->shared + 64, to->shared, k + 32);
    crypto_sign_ed25519_seed_keypair(to->pk, to->sk, k);
    crypto_sign(to->signature, &to->length, m, MESSAGE, to->sk);
    to->codes[0] = crypto_sign_open(to->opened, &to->length, to->signature, MESSAGE + 64, to->pk);
    to->codes[1] = crypto_secretbox(to->box, m, MESSAGE, n, k);
    to->codes[2] = crypto_secretbox_open(to->unboxed, to->box, MESSAGE, n, k);
    crypto_auth(to->tags, m, MESSAGE, k);
    to->codes[3] = crypto_auth_verify(to->tags, m, MESSAGE, k);
    crypto_onetimeauth(to->tags + 32, m, MESSAGE, k);
    to->codes[4] = crypto_onetimeauth_verify(to->tags + 32, m, MESSAGE, k);
    to->codes[5] = (int)crypto_hashblocks(to->tags + 32, m, 256);
    crypto_stream(to->stream, MESSAGE, n, k);
}

static struct results alone, interrupted;

int main(void)
{
    int different = 0;
    for (int i = 32; i < ROOM; i++)
        m[i] = (unsigned char)(7 * i);
    for (int i = 0; i < 64; i++)
        k[i] = (unsigned char)(5 * i + 1);
    work(&alone);
    for (int i = 0; i < 6; i++)
        different |= alone.codes[i] != 0;
    VTOR = (uint32_t)vectors;
    SYST_RVR = 100;
    SYST_CVR = 0;
    SYST_CSR = 7;
    work(&interrupted);
    SYST_CSR = 0;
    different |= memcmp(&alone, &interrupted, sizeof alone) != 0;
    munacl_print(different ? "interrupts: different\n" : "interrupts: equal\n");
    munacl_leave(different ? 1 : interrupts < 10000 ? 2 : 0);
}
