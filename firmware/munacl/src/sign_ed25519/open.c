/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Verification (RFC 8032 section 5.1.7, without the cofactor): signature, message and key are
 * public, so that time and addresses may depend on them. */
#include "ed25519.h"

static const uint32_t d[8] = {0x135978a3, 0x75eb4dca, 0x4141d8ab, 0x00700a4d,
                              0x7779e898, 0x8cc74079, 0x2b6ffe73, 0x52036cee};
static const uint32_t root[8] = {0x4a0ea0b0, 0xc4ee1b27, 0xad2fe478, 0x2f431806,
                                 0x3dfbd7a7, 0x2b4d0099, 0x4fc1df0b, 0x2b832480};

/* Odd multiples of the key: 1, 3, .. of it. */
#ifdef MUNACL_SMALL
#define MUNACL_ED_MULTIPLES 1
#else
#define MUNACL_ED_MULTIPLES 4
#endif

/* Freezes it. */
static int is_zero_vartime(munacl_fe a)
{
    munacl_fe_freeze(a);
    uint32_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits |= a[i];
    return bits == 0;
}

/* E and H, whose product is T, and X, Y, Z of the key's negative; -1 if no point has this
 * encoding. Slots 9 to 12 are used. */
static int decode_negative_vartime(munacl_fe *slots, const unsigned char *pk)
{
    /* u = y^2 - 1 in slot 7, v = d y^2 + 1 in 8, u v^3 in 11, u v^7 in 2. */
    static const munacl_fe_step before[] = {
        FE(SQR, 3, Y, 1), FE(SUB, 7, 3, 2), FE(MUL, 8, 3, 9), FE(ADD, 8, 8, 2), FE(SQR, 3, 8, 1),
        FE(MUL, 11, 3, 8), FE(SQR, 4, 11, 1), FE(MUL, 4, 4, 8), FE(MUL, 2, 4, 7),
        FE(MUL, 11, 11, 7), FE(END, 0, 0, 0),
    };
    /* x = u v^3 (u v^7)^(2^252 - 3); v x^2 - u, v x^2 + u, x sqrt(-1) in 4, 5, 6. */
    static const munacl_fe_step after[] = {
        FE(SQR, 4, 4, 2), FE(MUL, 4, 4, 2), FE(MUL, X, 11, 4), FE(SQR, 3, X, 1), FE(MUL, 3, 3, 8),
        FE(SUB, 4, 3, 7), FE(ADD, 5, 3, 7), FE(MUL, 6, X, 10), FE(SUB, 2, 2, 2), FE(END, 0, 0, 0),
    };
    static const munacl_fe_step negate[] = {FE(SUB, X, Z, X), FE(END, 0, 0, 0)};
    munacl_ed_zero(slots);
    munacl_copy32(slots[Y], pk);
    slots[Y][7] &= 0x7fffffff;
    munacl_copy32(slots[9], d);
    munacl_copy32(slots[10], root);
    munacl_copy32(slots[3], slots[Y]);
    munacl_fe_freeze(slots[3]);
    if (memcmp(slots[3], slots[Y], 32) != 0)
        return -1;
    munacl_fe_run(slots, before, 0);
    munacl_fe_run(slots, munacl_fe_power_250, 0);
    munacl_fe_run(slots, after, 0);
    if (!is_zero_vartime(slots[4])) {
        if (!is_zero_vartime(slots[5]))
            return -1;
        munacl_copy32(slots[X], slots[6]);
    }
    uint32_t sign = pk[31] >> 7;
    if (is_zero_vartime(slots[X]) && sign)
        return -1;
    if ((slots[X][0] & 1) == sign)
        munacl_fe_run(slots, negate, 0);
    memset(slots[Z], 0, 32);
    slots[Z][0] = 1;
    munacl_copy32(slots[E], slots[X]);
    munacl_copy32(slots[H], slots[Y]);
    return 0;
}

#if MUNACL_ED_MULTIPLES > 1
/* Digits 0 or odd, below 8 in magnitude, of a scalar below L, behind which a byte is zero: from the
 * lowest bit on, four bits at each odd one, less 16 if they are 8 or more, which the next ones get
 * ("non-adjacent form of width 4"). */
static void recode_vartime(signed char digits[256], const unsigned char *s)
{
    unsigned carry = 0;
    memset(digits, 0, 256);
    for (unsigned i = 0; i < 256; i++) {
        unsigned window = (s[i >> 3] | (unsigned)s[(i >> 3) + 1] << 8) >> (i & 7) & 15;
        window += carry;
        if (window & 1) {
            carry = window >> 3;
            digits[i] = (signed char)(window - 16 * carry);
            i += 3;
        }
    }
}

static int digit_at(const signed char *digits, unsigned bit)
{
    return digits[bit];
}
#else
static int digit_at(const unsigned char *s, unsigned bit)
{
    return s[bit >> 3] >> (bit & 7) & 1;
}
#endif

/* What an addition of X, Y, Z takes, in four slots that additions and doublings overwrite. */
enum { PREPARED = T };
static void prepare(munacl_fe *slots)
{
    static const munacl_fe_step program[] = {
        FE(MUL, PREPARED + 2, E, H), FE(MUL, PREPARED + 2, PREPARED + 2, PREPARED + 3),
        FE(ADD, PREPARED + 2, PREPARED + 2, PREPARED + 2), FE(ADD, PREPARED, Y, X),
        FE(SUB, PREPARED + 1, Y, X), FE(END, 0, 0, 0),
    };
    munacl_copy32(slots[PREPARED + 3], d);
    munacl_fe_run(slots, program, 0);
    munacl_copy32(slots[PREPARED + 3], slots[Z]);
}

/* h, behind which a byte is zero, times the point in slots, plus s times the base point. */
static void multiply_vartime(munacl_fe *slots, const unsigned char *h, const unsigned char *s)
{
    munacl_fe multiples[MUNACL_ED_MULTIPLES][4];
#if MUNACL_ED_MULTIPLES > 1
    signed char digits[256];
    recode_vartime(digits, h);
#else
    const unsigned char *digits = h;
#endif
    uint32_t signs[8];
    munacl_ed_signs(signs, s);
    /* Twice the point and the point, then twice the point again and again. */
    prepare(slots);
    memcpy(multiples[0], slots + PREPARED, sizeof multiples[0]);
#if MUNACL_ED_MULTIPLES > 1
    memcpy(slots + YPX, slots + PREPARED, sizeof multiples[0]);
    munacl_fe_run(slots, munacl_ed_double, 0);
    prepare(slots);
    memcpy(multiples[MUNACL_ED_MULTIPLES - 1], slots + PREPARED, sizeof multiples[0]);
    for (int i = 1; i < MUNACL_ED_MULTIPLES; i++) {
        munacl_fe_run(slots, munacl_ed_add, 0);
        if (i == 1)
            memcpy(slots + YPX, multiples[MUNACL_ED_MULTIPLES - 1], sizeof multiples[0]);
        prepare(slots);
        memcpy(multiples[i], slots + PREPARED, sizeof multiples[0]);
    }
#endif
    munacl_ed_zero(slots);
    unsigned bit = 256;
    while (bit > MUNACL_ED_SPACING && !digit_at(digits, bit - 1))
        bit--;
    while (bit--) {
        munacl_fe_run(slots, munacl_ed_double, 0);
        int digit = digit_at(digits, bit);
        if (digit) {
            memcpy(slots + YPX, multiples[(digit < 0 ? -digit : digit) >> 1], sizeof multiples[0]);
#if MUNACL_ED_MULTIPLES > 1
            if (digit < 0)
                munacl_ed_negate(slots, 0xffffffff);
#endif
            munacl_fe_run(slots, munacl_ed_add, 0);
        }
        if (bit < MUNACL_ED_SPACING) {
            uint32_t index = munacl_ed_column(signs, bit);
            memcpy(slots + YPX, munacl_ed_table[index & 0x7fffffff], 3 * sizeof *slots);
            if (index >> 31)
                munacl_ed_negate(slots, 0xffffffff);
            munacl_fe_run(slots, munacl_ed_add_affine, 0);
        }
    }
}

/* Whether s < L. */
static int is_reduced_vartime(const unsigned char *s)
{
    for (int i = 31; i >= 0; i--)
        if (s[i] != munacl_sc_order[i])
            return s[i] < munacl_sc_order[i];
    return 0;
}

/* The challenge; apart from what follows, so that their stacks do not add up. The room of m takes
 * R, the key and the message. */
__attribute__((noinline)) static void challenge(unsigned char out[32], unsigned char *m,
                                                const unsigned char *sm, size_t smlen,
                                                const unsigned char *pk)
{
    unsigned char hash[64];
    memmove(m, sm, smlen);
    munacl_copy32(m + 32, pk);
    crypto_hash_sha512(hash, m, smlen);
    munacl_sc_from_hash(out, hash);
}

/* R that the equation asks for. */
__attribute__((noinline)) static int expected_vartime(unsigned char r[32], const unsigned char *h,
                                                      const unsigned char *s,
                                                      const unsigned char *pk)
{
    munacl_fe slots[MUNACL_ED_SLOTS];
    if (decode_negative_vartime(slots, pk) != 0)
        return -1;
    multiply_vartime(slots, h, s);
    munacl_ed_encode(r, slots);
    return 0;
}

static int is_valid_vartime(unsigned char *m, const unsigned char *sm, size_t smlen,
                            const unsigned char *pk)
{
    unsigned char h[33], s[32], r[32], key[32];
    if (smlen < 64 || !is_reduced_vartime(sm + 32))
        return 0;
    munacl_copy32(s, sm + 32);
    munacl_copy32(key, pk);
    challenge(h, m, sm, smlen, key);
    h[32] = 0;
    return expected_vartime(r, h, s, key) == 0 && memcmp(r, m, 32) == 0;
}

int crypto_sign_ed25519_open(unsigned char *m, unsigned long long *mlen, const unsigned char *sm,
                             size_t smlen, const unsigned char *pk)
{
    if (is_valid_vartime(m, sm, smlen, pk)) {
        memmove(m, m + 64, smlen - 64);
        memset(m + smlen - 64, 0, 64);
        *mlen = smlen - 64;
        return 0;
    }
    munacl_wipe(m, smlen);
    *mlen = (unsigned long long)-1;
    return -1;
}
