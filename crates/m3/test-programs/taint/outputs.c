/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Secrets that are output, by each way out; a public one beside each. */
#include "warifu_m3.h"

#define OWN __attribute__((noinline, noclone))
#define REGISTER(address) (*(volatile uint32_t *)(address))

uint8_t key[4] = {'k', 'e', 'y', 0};
static uint8_t public[4] = {'p', 'u', 'b', 0};

static int host(int number, const void *parameter)
{
    register int r0 __asm__("r0") = number;
    register const void *r1 __asm__("r1") = parameter;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

/* No loop over a secret: the host looks for the end of a string. */
OWN static void writes_string(const uint8_t *text) { host(4, text); }
OWN static void writes_byte(const uint8_t *text) { host(3, text); }
OWN static void writes_to_console(const uint8_t *text)
{
    const uint32_t block[3] = {2, (uint32_t)text, 3};
    host(5, block);
}
OWN static void sends_by_uart(const uint8_t *text) { REGISTER(0x40004000) = text[0]; }
OWN static void sends_by_itm(const uint8_t *text) { REGISTER(0xe0000000) = text[1]; }
OWN static void sends_by_pipe(const uint8_t *text) { REGISTER(0xf0000100) = text[2]; }
OWN static void keeps(const uint8_t *text) { REGISTER(0x40004010) = text[0]; }

static void all(const uint8_t *text)
{
    writes_string(text);
    writes_byte(text);
    writes_to_console(text);
    sends_by_uart(text);
    sends_by_itm(text);
    sends_by_pipe(text);
    keeps(text);
}

int main(void)
{
    REGISTER(0x40004008) = 1;
    all(public);
#ifdef SECRET
    WARIFU_POISON(key, sizeof key);
    all(key);
    WARIFU_UNPOISON(key, sizeof key);
    all(key);
#else
    WARIFU_POISON(key, sizeof key);
#endif
    return 0;
}
