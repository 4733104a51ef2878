/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "fe25519.h"

/* The twin of the assembly has no assembly below it. */
#define MUNACL_PRODUCT MUNACL_TWIN(munacl_product)

/* r = a + 2^256 * above modulo 2p, for `above` below 2^25. */
static void fold(munacl_fe r, const munacl_fe a, uint32_t above)
{
    /* 2^256 = 38. Twice: the first fold may carry out, and then leaves less than 2^30. */
    for (int pass = 0; pass < 2; pass++) {
        uint64_t sum = above * 38;
        for (int i = 0; i < 8; i++) {
            sum += a[i];
            r[i] = (uint32_t)sum;
            sum >>= 32;
        }
        above = (uint32_t)sum;
        a = r;
    }
}

static void add(munacl_fe d, const munacl_fe a, const munacl_fe b)
{
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++) {
        sum += (uint64_t)a[i] + b[i];
        d[i] = (uint32_t)sum;
        sum >>= 32;
    }
    fold(d, d, (uint32_t)sum);
}

static void sub(munacl_fe d, const munacl_fe a, const munacl_fe b)
{
    int64_t difference = 0;
    for (int i = 0; i < 8; i++) {
        difference = (difference >> 32) + a[i] - b[i];
        d[i] = (uint32_t)difference;
    }
    /* 2^256 too much, which is 38. Twice: d may be less than 38, but then not a second time. */
    for (int pass = 0; pass < 2; pass++) {
        int64_t excess = 38 & (difference >> 32);
        difference = 0;
        for (int i = 0; i < 8; i++) {
            difference = (difference >> 32) + d[i] - excess;
            d[i] = (uint32_t)difference;
            excess = 0;
        }
    }
}

static void halves(uint16_t out[16], const munacl_fe a)
{
    munacl_copy32(out, a);
}

static void multiply(munacl_fe d, const munacl_fe a, const munacl_fe b)
{
    union {
        uint32_t words[17];
        uint16_t halves[34];
    } product;
    MUNACL_PRODUCT(product.words, a, b);
    uint32_t carry = 0;
    for (int i = 0; i < 16; i++) {
        carry += product.halves[i] + product.halves[16 + i] * 38u;
        product.halves[i] = (uint16_t)carry;
        carry >>= 16;
    }
    munacl_copy32(d, product.words);
    fold(d, d, carry);
}

static void a24(munacl_fe d, const munacl_fe a, const munacl_fe b)
{
    uint16_t x[16], y[16];
    halves(x, a);
    halves(y, b);
    /* 121666 = 2^16 + 56130: the second part takes a product of 16 by 16 bits. */
    uint64_t sum = 0;
    uint32_t before = 0;
    for (int i = 0; i < 16; i++) {
        sum += munacl_mul16(x[i], 56130);
        sum += before;
        sum += y[i];
        before = x[i];
        y[i] = (uint16_t)sum;
        sum >>= 16;
    }
    munacl_copy32(d, y);
    fold(d, d, (uint32_t)sum + before);
}

void MUNACL_TWIN(munacl_fe_run)(munacl_fe *slots, const munacl_fe_step *program, uint32_t mask)
{
    for (;; program++) {
        uint32_t *d = slots[*program >> 8 & 15];
        const uint32_t *a = slots[*program >> 4 & 15];
        unsigned count = *program & 15;
        const uint32_t *b = slots[count];
        switch (*program >> 12) {
        case MUNACL_FE_END:
            return;
        case MUNACL_FE_SQR10:
            count *= 10;
            /* fall through */
        case MUNACL_FE_SQR:
            do {
                multiply(d, a, a);
                a = d;
            } while (--count);
            break;
        case MUNACL_FE_MUL:
            multiply(d, a, b);
            break;
        case MUNACL_FE_ADD:
            add(d, a, b);
            break;
        case MUNACL_FE_SUB:
            sub(d, a, b);
            break;
        case MUNACL_FE_A24:
            a24(d, a, b);
            break;
        case MUNACL_FE_SELECT:
            for (int i = 0; i < 8; i++)
                d[i] ^= (d[i] ^ a[i]) & mask;
        }
    }
}
