/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A benchmark for `warifu calibrate m3`. It times loops instead of a TLS stack, with known numbers
 * of rounds for each call and each byte, so that the costs are known. */
#include <stddef.h>
#include <stdint.h>

void print(const char *text);

static volatile uint32_t *const demcr = (uint32_t *)0xe000edfc;
static volatile uint32_t *const ctrl = (uint32_t *)0xe0001000;
static volatile uint32_t *const cyccnt = (uint32_t *)0xe0001004;

static void print_number(uint32_t value)
{
    char text[11];
    int at = 10;
    text[at] = 0;
    do {
        text[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    print(text + at);
}

/* Three cycles a round: subs 1, a taken branch 2. */
__attribute__((noipa)) static void rounds(uint32_t count)
{
    __asm__ volatile(".balign 4\n1: subs %0, #1\n bne 1b" : "+r"(count) : : "cc");
}

static void work(uint32_t call, uint32_t per_byte, uint32_t bytes)
{
    rounds(1 + call + per_byte * bytes);
}

static const struct {
    const char *name;
    uint32_t call, per_byte;
} operations[] = {
    {"client.send.ClientHello", 400000, 0},       {"client.receive.ServerHello", 450000, 0},
    {"client.receive.EncryptedExtensions", 800, 0}, {"client.receive.Certificate", 900000, 0},
    {"client.receive.CertificateVerify", 700000, 0}, {"client.receive.Finished", 1500, 0},
    {"client.send.Finished", 1200, 0},            {"client.receive.NewSessionTicket", 1000, 0},
    {"client.send.ApplicationData", 600, 20},     {"client.receive.ApplicationData", 500, 22},
    {"hash.sha-256", 900, 30},
};

int main(void)
{
    static const uint32_t sizes[] = {16, 256, 1024, 4096};

    *demcr |= 1u << 24;
    *ctrl |= 1;
#ifdef BAD_LINE
    print(BAD_LINE "\n");
#endif
    print("# name bytes cycles\n");
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        size_t count = operations[i].per_byte == 0 ? 1 : sizeof sizes / sizeof *sizes;
        for (size_t s = 0; s < count; s++) {
            uint32_t bytes = operations[i].per_byte == 0 ? 0 : sizes[s];
            uint32_t start = *cyccnt;
            work(operations[i].call, operations[i].per_byte, bytes);
            uint32_t cycles = *cyccnt - start;
            print(operations[i].name);
            print(" ");
            print_number(bytes);
            print(" ");
            print_number(cycles);
            print("\n");
        }
    }
#ifdef FAILS
    return 3;
#endif
    return 0;
}
