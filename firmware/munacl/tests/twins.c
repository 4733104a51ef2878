/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Each routine that is assembly in a profile against its portable C twin, on edge and random
 * inputs: prints the names of those compared, what differs before the name, and `twins: equal`. */
#include "scalarmult_curve25519/ladder.h"
#include "sign_ed25519/ed25519.h"
#include "start.h"

#ifndef ROUNDS
#define ROUNDS 300
#endif

void munacl_fe_run_portable(munacl_fe *slots, const munacl_fe_step *program, uint32_t mask);
void munacl_salsa20_blocks_portable(void *out, const void *m, size_t blocks, uint32_t in[16]);
int munacl_salsa20_core_portable(void *out, const unsigned char *in, const unsigned char *k,
                                 const unsigned char *c);
void munacl_x25519_ladder_portable(munacl_fe point[2], const uint32_t scalar[8]);
void munacl_ed_look_up_portable(munacl_fe out[3], uint32_t index);
void munacl_test_sums(munacl_fe sums[2], const munacl_fe of[2]);
int munacl_forget_portable(int result, unsigned pieces);
void munacl_poly1305_blocks_portable(struct munacl_poly1305 *state, const unsigned char *m,
                                     size_t blocks, uint32_t top);
void munacl_sha512_blocks_portable(uint64_t state[8], const unsigned char *m, size_t blocks);

void randombytes(unsigned char *out, unsigned long long bytes)
{
    memset(out, 1, bytes);
}

static int failures;
static void compare(const char *what, uint32_t which, const void *a, const void *b, size_t bytes)
{
    if (memcmp(a, b, bytes) == 0)
        return;
    munacl_print(what);
    munacl_print(" differs from its twin: input ");
    munacl_print_number(which);
    munacl_print("\n");
    if (++failures == 20) {
        munacl_print("twins: different\n");
        munacl_leave(1);
    }
}

static uint32_t random_word(void)
{
    static uint32_t x = 2463534242u;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x;
}

/* 0, 1, p - 1, p, p + 1, 2^255 - 1, 2p - 1, 2p, 2^256 - 1, halves of all ones, sparse words; then
 * random ones whose words are often all zeros or all ones. */
static void element(munacl_fe a, uint32_t which)
{
    static const uint32_t edges[][3] = {
        {0, 0, 0}, {1, 0, 0}, {0xffffffec, 0xffffffff, 0x7fffffff},
        {0xffffffed, 0xffffffff, 0x7fffffff}, {0xffffffee, 0xffffffff, 0x7fffffff},
        {0xffffffff, 0xffffffff, 0x7fffffff}, {0xffffffd9, 0xffffffff, 0xffffffff},
        {0xffffffda, 0xffffffff, 0xffffffff}, {0xffffffdb, 0xffffffff, 0xffffffff},
        {0xffffffff, 0xffffffff, 0xffffffff}, {0, 0xffff0000, 0xffff0000},
        {0xffff, 0xffff, 0xffff}, {0, 0, 0x80000000}, {0xffffffff, 0, 0}, {0, 0xffffffff, 0},
        {0xffff0001, 0x0001ffff, 0x80000001},
    };
    if (which < sizeof edges / sizeof *edges) {
        for (int i = 0; i < 8; i++)
            a[i] = edges[which][i == 0 ? 0 : i == 7 ? 2 : 1];
        return;
    }
    /* Also those that times 60833, of which 121666 is twice, are just below 2^32: a carry there is
     * what chance alone has once in a hundred thousand words. */
    enum { INVERSE = 0x23c63661 };
    uint32_t kinds = random_word();
    for (int i = 0; i < 8; i++, kinds >>= 3)
        a[i] = (kinds & 7) == 0   ? 0
               : (kinds & 7) <= 2 ? 0xffffffff
               : (kinds & 7) <= 4 ? (uint32_t)INVERSE * (0 - 1 - (random_word() & 0x3fff))
                                  : random_word();
}

#ifndef MUNACL_SMALL
/* Elements below 2^255 + 2^136, as products are: what the ladder adds and subtracts. First the
 * edge. */
static int is_bounded(const munacl_fe a)
{
    return a[7] < 0x80000000 || (a[7] == 0x80000000 && !a[6] && !a[5] && a[4] < 0x100);
}
static void bounded(munacl_fe a, uint32_t which)
{
    static const munacl_fe edges[] = {
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xff, 0, 0, 0x80000000},
        {0, 0, 0, 0, 0xff, 0, 0, 0x80000000},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0, 0, 0, 0x80000000},
        {38, 0, 0, 0, 0, 0, 0, 0x80000000},
        {37, 0, 0, 0, 0, 0, 0, 0x80000000},
        /* A point of order 8 (RFC 7748 section 7 has all small orders excluded together). */
        {0xbc959c5f, 0x248c50a3, 0x55b1d0b1, 0x5bef839c, 0xc45c4404, 0x868e1c58, 0xdd4e22d8,
         0x57119fd0},
    };
    enum { EDGES = sizeof edges / sizeof *edges };
    if (which < EDGES) {
        memcpy(a, edges[which], 32);
        return;
    }
    element(a, which - EDGES);
    if (!is_bounded(a)) {
        a[7] = 0x80000000;
        a[6] = a[5] = 0;
        a[4] &= 0xff;
    }
}

static void sums(uint32_t which, uint32_t other)
{
    static const munacl_fe_step program[] = {FE(ADD, 2, 0, 1), FE(SUB, 3, 0, 1), FE(END, 0, 0, 0)};
    munacl_fe here[4], there[4];
    bounded(here[0], which);
    bounded(here[1], other);
    memcpy(there, here, sizeof there);
    munacl_test_sums(here + 2, (const munacl_fe *)here);
    munacl_fe_run_portable(there, program, 0);
    for (int i = 2; i < 4; i++) {
        munacl_fe_freeze(here[i]);
        munacl_fe_freeze(there[i]);
        compare(i == 2 ? "ladder's sum" : "ladder's difference", 1000 * which + other, here[i],
                there[i], 32);
    }
}

/* Bits 0 to 2 and 254 and 255 of a scalar are not the caller's. */
static void scalar_of(uint32_t scalar[8], uint32_t which)
{
    /* Words 0, 1 to 6, and 7. */
    static const uint32_t edges[][3] = {
        {0, 0, 0}, {0xffffffff, 0xffffffff, 0xffffffff}, {1, 0, 0}, {0, 0, 0x40000000},
        {0xfffffff8, 0xffffffff, 0x7fffffff}, {7, 0, 0x80000000}, {8, 0, 0},
        {0x80000000, 0x80000001, 1}, {0xaaaaaaaa, 0xaaaaaaaa, 0xaaaaaaaa},
        {0x55555555, 0x55555555, 0x55555555},
    };
    for (int i = 0; i < 8; i++)
        scalar[i] = which < sizeof edges / sizeof *edges ? edges[which][i == 0 ? 0 : i == 7 ? 2 : 1]
                                                         : random_word();
}

static void ladders(uint32_t point, uint32_t which)
{
    /* The same point: X Z' = X' Z. The formulas differ by a factor of both. */
    static const munacl_fe_step cross[] = {
        FE(MUL, 4, 0, 3), FE(MUL, 5, 1, 2), FE(END, 0, 0, 0)};
    munacl_fe slots[6], *a = slots, *b = slots + 2;
    uint32_t scalar[8], zero[2] = {0};
    bounded(a[0], point);
    scalar_of(scalar, which);
    memcpy(b[0], a[0], 32);
    munacl_x25519_ladder(a, scalar);
    munacl_x25519_ladder_portable(b, scalar);
    munacl_fe_run(slots, cross, 0);
    for (int j = 0; j < 6; j++)
        munacl_fe_freeze(slots[j]);
    compare("ladder", 1000 * point + which, slots[4], slots[5], 32);
    for (int j = 0; j < 8; j++) {
        zero[0] |= a[1][j];
        zero[1] |= b[1][j];
    }
    zero[0] = zero[0] == 0;
    zero[1] = zero[1] == 0;
    compare("ladder's zero", 1000 * point + which, zero, zero + 1, 4);
}
#endif

static void poly1305(uint32_t i)
{
    struct munacl_poly1305 a, b;
    unsigned char m[68];
    /* Bits of i: which of h, r and the message are all ones, and the bound of h, whose top word is
     * at most 5. */
    uint32_t few = i < 128 ? i : 0;
    a.h[4] = i < 128 ? (i >> 3 & 7) % 6 : random_word() & 3;
    for (int j = 0; j < 4; j++) {
        a.h[j] = few & 1 ? 0xffffffff : random_word();
        a.r[j] = few & 2 ? 0xffffffff : random_word();
        a.r[4 + j] = 0;
    }
    a.r[0] &= 0x0fffffff;
    for (int j = 1; j < 4; j++)
        a.r[j] &= 0x0ffffffc;
    for (int j = 0; j < 68; j++)
        m[j] = few & 4 ? 0xff : (unsigned char)random_word();
    b = a;
    size_t blocks = i % 5;
    uint32_t top = i >> 6 & 1;
    munacl_poly1305_blocks(&a, m + (i & 3), blocks, top);
    munacl_poly1305_blocks_portable(&b, m + (i & 3), blocks, top);
    /* Both keep h below 2^130 + 2^129; what is equal is h modulo p. */
    uint32_t within[2] = {a.h[4] <= 5, b.h[4] <= 5}, both[2] = {1, 1};
    compare("poly1305's bound", i, within, both, sizeof both);
    for (int pass = 0; pass < 2; pass++) {
        struct munacl_poly1305 *s = pass ? &b : &a;
        /* Below 2^130, then below p. */
        for (int pass_again = 0; pass_again < 2; pass_again++) {
            uint64_t sum = (uint64_t)(s->h[4] >> 2) * 5;
            s->h[4] &= 3;
            for (int j = 0; j < 5; j++) {
                sum += s->h[j];
                s->h[j] = (uint32_t)sum;
                sum >>= 32;
            }
        }
        uint32_t plus[5];
        uint64_t sum = 5;
        for (int j = 0; j < 5; j++) {
            sum += s->h[j];
            plus[j] = (uint32_t)sum;
            sum >>= 32;
        }
        if (plus[4] >> 2) {
            memcpy(s->h, plus, sizeof plus);
            s->h[4] &= 3;
        }
    }
    compare("poly1305", i, a.h, b.h, sizeof a.h);
}

static void fields(uint32_t which, uint32_t other)
{
    static const munacl_fe_step program[] = {
        FE(MUL, 2, 0, 1),  FE(SQR, 3, 0, 1),    FE(ADD, 4, 0, 1), FE(SUB, 5, 0, 1),
        FE(A24, 6, 0, 1),  FE(SELECT, 7, 0, 0), FE(SQR, 8, 1, 3), FE(MUL, 0, 0, 0),
        FE(SUB, 9, 1, 1),  FE(ADD, 1, 1, 1),    FE(A24, 10, 1, 1), FE(END, 0, 0, 0),
    };
    munacl_fe here[11], there[11];
    memset(here, 0x55, sizeof here);
    element(here[0], which);
    element(here[1], other);
    memcpy(there, here, sizeof here);
    uint32_t mask = 0 - (which & 1);
    munacl_fe_run(here, program, mask);
    munacl_fe_run_portable(there, program, mask);
#ifndef MUNACL_SMALL
    /* What the assembly promises of products, which the ladder relies on. */
    uint32_t within[3] = {is_bounded(here[2]), is_bounded(here[3]), is_bounded(here[8])};
    uint32_t all[3] = {1, 1, 1};
    compare("a product's bound", 1000 * which + other, within, all, sizeof all);
#endif
    for (int i = 0; i < 11; i++) {
        munacl_fe_freeze(here[i]);
        munacl_fe_freeze(there[i]);
        if (i < 2 || memcmp(here[i], there[i], 32) != 0)
            compare(i == 2 ? "fe mul" : i == 3 ? "fe sqr" : i == 4 ? "fe add" : i == 5 ? "fe sub"
                    : i == 6 ? "fe a24" : i == 7 ? "fe select" : "fe", 1000 * which + other,
                    here[i], there[i], 32);
    }
}

#ifndef MUNACL_SMALL
static void all_salsa20_blocks(void)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        /* The counter's carry, 1 to 3 blocks, without a message, with one, and in its place. */
        uint32_t in[2][16];
        unsigned char m[196], x[196], y[196];
        for (int j = 0; j < 16; j++)
            in[0][j] = in[1][j] = i & 31 ? random_word() : 0xffffffff;
        for (int j = 0; j < 196; j++)
            m[j] = x[j] = y[j] = (unsigned char)random_word();
        size_t blocks = 1 + i % 3, at = i & 3;
        const void *other = i % 5 == 0 ? NULL : m + 3 - at;
        munacl_salsa20_blocks(x + at, i % 5 == 1 ? x + at : other, blocks, in[0]);
        munacl_salsa20_blocks_portable(y + at, i % 5 == 1 ? y + at : other, blocks, in[1]);
        compare("salsa20", i, x, y, sizeof x);
        compare("salsa20's counter", i, in[0], in[1], sizeof in[0]);
    }
}

static void all_salsa20_cores(void)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        unsigned char input[67], x[65], y[65];
        for (int j = 0; j < 67; j++)
            input[j] = i ? (unsigned char)random_word() : 255;
        const unsigned char *in = input + (i & 3);
        munacl_salsa20_core(x + (i & 1), in, in + 16, in + 48);
        munacl_salsa20_core_portable(y + (i & 1), in, in + 16, in + 48);
        compare("salsa20 core", i, x + (i & 1), y + (i & 1), 64);
    }
}

static void all_ladders(void)
{
    for (uint32_t i = 0; i < 22; i++)
        for (uint32_t j = 0; j < 22; j++)
            sums(i, j);
    for (uint32_t i = 0; i < ROUNDS; i++)
        sums(100 + i, 100 + i);
    /* Each edge of a point and of a scalar; all pairs of them where there is time. */
    for (uint32_t i = 0; i < 22; i++)
        for (uint32_t j = 0; j < 11; j++)
            if (ROUNDS > 1000 || j == i % 11)
                ladders(i, j);
    for (uint32_t i = 0; i < ROUNDS / 64; i++)
        ladders(100 + i, 100 + i);
}

static void all_looks(void)
{
    for (uint32_t i = 0; i < MUNACL_ED_POINTS; i++) {
        munacl_fe a[3], b[3];
        munacl_ed_look_up(a, i);
        munacl_ed_look_up_portable(b, i);
        compare("look up", i, a, b, sizeof a);
    }
}

static void all_sha512(void)
{
    for (uint32_t i = 0; i < ROUNDS / 8 + 2; i++) {
        uint64_t a[8], b[8];
        unsigned char m[260];
        for (int j = 0; j < 8; j++)
            a[j] = b[j] = i ? (uint64_t)random_word() << 32 | random_word() : ~(uint64_t)0;
        for (int j = 0; j < 260; j++)
            m[j] = i ? (unsigned char)random_word() : 255;
        munacl_sha512_blocks(a, m + (i & 3), 1 + (i & 1));
        munacl_sha512_blocks_portable(b, m + (i & 3), 1 + (i & 1));
        compare("sha512", i, a, b, sizeof a);
    }
}
#endif

static void all_fields(void)
{
    for (uint32_t i = 0; i < 16; i++)
        for (uint32_t j = 0; j < 16; j++)
            fields(i, j);
    for (uint32_t i = 0; i < ROUNDS; i++)
        fields(100 + i, 100 + (i & 31 ? i : i & 15));
}

static void all_forgets(void)
{
    for (uint32_t i = 1; i < 40; i++) {
        int a = munacl_forget((int)i - 2, i), b = munacl_forget_portable((int)i - 2, i);
        compare("forget", i, &a, &b, sizeof a);
    }
}

static void all_poly1305(void)
{
    for (uint32_t i = 0; i < ROUNDS; i++)
        poly1305(i);
}

/* What is assembly in this profile: a routine in C would be compared with itself. */
static const struct {
    const char *name;
    void (*all)(void);
} routines[] = {
    {"munacl_forget", all_forgets},
    {"munacl_poly1305_blocks", all_poly1305},
#ifdef MUNACL_SMALL
    /* Under C that is its own twin. */
    {"munacl_product", all_fields},
#else
    {"munacl_fe_run", all_fields},
    {"munacl_salsa20_blocks", all_salsa20_blocks},
    {"munacl_salsa20_core", all_salsa20_cores},
    {"munacl_x25519_ladder", all_ladders},
    {"munacl_ed_look_up", all_looks},
    {"munacl_sha512_blocks", all_sha512},
#endif
};

int main(void)
{
    for (unsigned i = 0; i < sizeof routines / sizeof *routines; i++) {
        routines[i].all();
        munacl_print(routines[i].name);
        munacl_print("\n");
    }
    munacl_print(failures ? "twins: different\n" : "twins: equal\n");
    return failures != 0;
}
