/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Every call that handles secrets, with random ones. With TAINT they are poisoned, for the
 * simulator to follow; otherwise each call must take the same cycles in all rounds. With RESIDUE a
 * function `look_N` branches on all that call N left in the stack below and in the registers that a
 * call may change, which the simulator reports where it is secret. */
#include "secrets.h"

#define CYCCNT (*(volatile uint32_t *)0xe0001004)

enum { MESSAGE = 200 };

static unsigned char key[64], other[64], m[MESSAGE + 64], c[MESSAGE + 128], out[MESSAGE + 128];
static unsigned char n[24], in[16], state[64];
/* Memory after power-up, and the record of an earlier boot. */
enum { CELLS = 1600 };
static unsigned char cells[CELLS];
static struct munacl_random_record record;
static struct munacl_random_source power_up = {cells, CELLS, 30, 1, in, sizeof in};
static struct munacl_random_source warm = {cells, CELLS, 30, 0, in, sizeof in};
static unsigned long long length;
static uint32_t x = 2463534242u;

static void fill(unsigned char *at, size_t bytes)
{
    for (; bytes; bytes--) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        *at++ = (unsigned char)x;
    }
}

void randombytes(unsigned char *to, unsigned long long bytes)
{
    fill(to, (size_t)bytes);
    POISON(to, bytes);
}

#define random_begin_after_power_up() munacl_random_begin(&power_up, &record)
#define random_begin_after_warm_reset() munacl_random_begin(&warm, &record)
#define random_mix() (munacl_random_mix(m, MESSAGE), 0)
#define random_bytes() (munacl_random_bytes(out, MESSAGE), 0)

#define CALLS(CALL)                                                                                \
    CALL(crypto_scalarmult, (out, key, other))                                                     \
    CALL(crypto_scalarmult_curve25519_checked, (out, key, other))                                  \
    CALL(crypto_scalarmult_base, (out, key))                                                       \
    CALL(crypto_dh_keypair, (out, out + 32))                                                       \
    CALL(crypto_dh, (out, other, key))                                                             \
    CALL(crypto_box_keypair, (out, out + 32))                                                      \
    CALL(crypto_box_beforenm, (out, other, key))                                                   \
    CALL(crypto_box, (c, m, MESSAGE + 32, n, other, key))                                          \
    CALL(crypto_box_afternm, (c, m, MESSAGE + 32, n, key))                                         \
    CALL(crypto_secretbox, (c, m, MESSAGE + 32, n, key))                                           \
    CALL(crypto_secretbox_open, (out, c, MESSAGE + 32, n, key))                                    \
    CALL(crypto_box_open_afternm, (out, c, MESSAGE + 32, n, key))                                  \
    CALL(crypto_box_open, (out, c, MESSAGE + 32, n, other, key))                                   \
    CALL(crypto_hash, (out, m, MESSAGE))                                                           \
    CALL(crypto_hashblocks, (state, m, 128))                                                       \
    CALL(crypto_auth, (out, m, MESSAGE, key))                                                      \
    CALL(crypto_auth_verify, (out, m, MESSAGE, key))                                               \
    CALL(crypto_onetimeauth, (out, m, MESSAGE, key))                                               \
    CALL(crypto_onetimeauth_verify, (out, m, MESSAGE, key))                                        \
    CALL(crypto_stream_salsa20, (out, MESSAGE, n, key))                                            \
    CALL(crypto_stream_salsa20_xor, (out, m, MESSAGE, n, key))                                     \
    CALL(crypto_stream, (out, MESSAGE, n, key))                                                    \
    CALL(crypto_stream_xor, (out, m, MESSAGE, n, key))                                             \
    CALL(crypto_core_salsa20, (out, in, key, in))                                                  \
    CALL(crypto_core_hsalsa20, (out, in, key, in))                                                 \
    CALL(crypto_sign_keypair, (out, out + 32))                                                     \
    CALL(crypto_sign_ed25519_seed_keypair, (out, out + 32, key))                                   \
    CALL(crypto_sign, (c, &length, m, MESSAGE, key))                                               \
    CALL(random_begin_after_power_up, ())                                                          \
    CALL(random_begin_after_warm_reset, ())                                                        \
    CALL(random_mix, ())                                                                           \
    CALL(random_bytes, ())                                                                         \
    CALL(crypto_verify_16, (key, other))                                                           \
    CALL(crypto_verify_32, (key, other))

#ifdef RESIDUE
/* Naked: a frame would hide what it looks for. r0 is the result. */
#define AS_LOOK(name, arguments)                                                                   \
    __attribute__((naked, noinline)) static void look_##name(void)                                 \
    {                                                                                              \
        __asm__ volatile("cmp r1, #0\n beq 1f\n1: cmp r2, #0\n beq 1f\n1: cmp r3, #0\n beq 1f\n"   \
                         "1: cmp r12, #0\n beq 1f\n1: mov r0, sp\n sub r1, r0, #4096\n"            \
                         "1: ldr r2, [r0, #-4]!\n cmp r2, #0\n beq 2f\n2: cmp r0, r1\n bne 1b\n"   \
                         "bx lr");                                                                 \
    }
CALLS(AS_LOOK)
#define AS_CASE(name, arguments)                                                                   \
    case __COUNTER__:                                                                              \
        (void)name arguments;                                                                      \
        look_##name();                                                                             \
        return 0;
#else
#define AS_CASE(name, arguments) \
    case __COUNTER__: return (int)name arguments;
#endif

static int run(int which)
{
    switch (which) {
        CALLS(AS_CASE)
    default:
        return -1;
    }
}
enum { COUNT = __COUNTER__ };
#define AS_NAME(name, arguments) #name,
static const char *const names[] = {CALLS(AS_NAME)};

/* What is refused takes other paths: only a comparison of what differs may fail here. */
static void expect(int which, int result)
{
    UNPOISON(&result, sizeof result);
    if (result == 0 || strstr(names[which], "verify"))
        return;
    munacl_print(names[which]);
    munacl_print(" failed\n");
    munacl_leave(3);
}

int main(void)
{
    *(volatile uint32_t *)0xe000edfc |= 1 << 24;
    *(volatile uint32_t *)0xe0001000 |= 1;
    int different = 0;
    for (int which = 0; which < COUNT; which++) {
        uint32_t first = 0;
        for (int round = 0; round < ROUNDS; round++) {
            fill(key, sizeof key);
            fill(other, sizeof other);
            other[31] &= 127; /* canonical */
            fill(m, sizeof m);
            fill(state, sizeof state);
            fill(cells, sizeof cells);
            memset(m, 0, 32);
            n[0] = (unsigned char)round;
            if (strcmp(names[which], "crypto_box_open") == 0)
                crypto_box(c, m, MESSAGE + 32, n, other, key);
            else if (strstr(names[which], "_open"))
                crypto_secretbox(c, m, MESSAGE + 32, n, key);
            POISON(key, sizeof key);
            POISON(m, sizeof m);
            POISON(state, sizeof state);
            POISON(cells, sizeof cells);
            uint32_t begin = CYCCNT;
            int result = run(which);
            uint32_t cycles = CYCCNT - begin;
            expect(which, result);
            UNPOISON(key, sizeof key);
            UNPOISON(other, sizeof other);
            UNPOISON(m, sizeof m);
            UNPOISON(c, sizeof c);
            UNPOISON(out, sizeof out);
            UNPOISON(state, sizeof state);
            unsigned char *stack;
            __asm__ volatile("mov %0, sp" : "=r"(stack));
            UNPOISON(stack - 8192, 8192);
            if (round == 0)
                first = cycles;
            if (cycles != first) {
                different = 1;
                munacl_print("different cycles: ");
                munacl_print(names[which]);
                munacl_print("\n");
                break;
            }
        }
    }
    munacl_print_number(COUNT);
    munacl_print(" calls, ");
    munacl_print_number(ROUNDS);
    munacl_print(" rounds\n");
    return different;
}
