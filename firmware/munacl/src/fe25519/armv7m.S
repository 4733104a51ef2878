/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Field arithmetic modulo 2^255 - 19 for the Cortex-M3, in constant time: products are MUL's of 16
 * by 16 bits, whose time does not depend on operands.
 *
 * A product of 128 by 128 bits is two sums of products: those of halves of equal position and
 * those of unequal position, which stand 16 bits higher. Within each, the products of one half by
 * the four low (or high) halves of the other factor are the words of a number, so that a product
 * takes a MUL and an ADC. 256 bits are three such products (Karatsuba, by differences).
 *
 * munacl_fe_mul to munacl_fe_a24 are internal: they clobber all registers but SP, and use the frame
 * of product.inc at SP, which BEGIN has prepared.
 *   r0 result, r1 and r2 operands: eight words each, any value, which may be the same
 * The result is below 2^256, congruent modulo p. Time fixed.
 */
	.syntax unified
	.thumb
#include "product.inc"

/* \w += \q shifted left by \bits, r11 above */
.macro SHIFTED q0, q1, q2, q3, w0, w1, w2, w3, bits
	adds	\w0, \w0, \q0, lsl #\bits
	adcs	\w1, \w1, \q1, lsl #\bits
	adcs	\w2, \w2, \q2, lsl #\bits
	adcs	\w3, \w3, \q3, lsl #\bits
	adc	r11, r11, #0
	adds	\w1, \w1, \q0, lsr #32 - \bits
	adcs	\w2, \w2, \q1, lsr #32 - \bits
	adcs	\w3, \w3, \q2, lsr #32 - \bits
	adc	r11, r11, \q3, lsr #32 - \bits
.endm

/* T = high half of P0 + low half of P1 in r7 .. r10, its carry in r11; the low half of the product
 * of differences in r0 .. r3. The high half is in r4, r5, r6, r12. */
.macro MIDDLE
	ldr	r0, [sp, #P0H]
	ldr	r1, [sp, #P0H + 4]
	ldr	r2, [sp, #P0H + 8]
	ldr	r3, [sp, #P0H + 12]
	ldr	r7, [sp, #P1L]
	ldr	r8, [sp, #P1L + 4]
	ldr	r9, [sp, #P1L + 8]
	ldr	r10, [sp, #P1L + 12]
	adds	r7, r7, r0
	adcs	r8, r8, r1
	adcs	r9, r9, r2
	adcs	r10, r10, r3
	mov	r11, #0
	adc	r11, r11, #0
	ldr	r0, [sp, #DL]
	ldr	r1, [sp, #DL + 4]
	ldr	r2, [sp, #DL + 8]
	ldr	r3, [sp, #DL + 12]
.endm

/* \b += 121666 \a and what r4 and r5 hold of the word before */
.macro A24 a, b
	uxth	r8, \a
	uxth	r9, \b
	mla	r9, r8, r3, r9
	add	r9, r9, r4
	add	r9, r9, r5, lsr #16
	lsr	r4, \a, #16
	lsr	\b, \b, #16
	mla	r5, r4, r3, \b
	add	r5, r5, r8
	add	r5, r5, r9, lsr #16
	uxth	r9, r9
	orr	\b, r9, r5, lsl #16
.endm

	.section .text.munacl_fe, "ax", %progbits
	.balign 4

/* void munacl_fe_run(munacl_fe *slots, const uint32_t *program, uint32_t mask)
 * Runs a program of field operations (fe25519.h). The program is public, slots and mask may be
 * secret. Time depends on the program alone. Stack: 232 bytes. */
	.global	munacl_fe_run
	.type	munacl_fe_run, %function
	.thumb_func
munacl_fe_run:
	push	{r4-r11, lr}
	sub	sp, sp, #FRAME
	str	r0, [sp, #SLOTS]
	str	r1, [sp, #PROGRAM]
	str	r2, [sp, #MASK]
	BEGIN	r3
	adr	r3, next + 1
	str	r3, [sp, #LR]
	.balign 4
next:
	ldr	r4, [sp, #PROGRAM]
	ldr	r5, [sp, #SLOTS]
	ldr	lr, [sp, #LR]
	ldr	r3, [r4], #4
	str	r4, [sp, #PROGRAM]
	ubfx	r0, r3, #16, #8
	ubfx	r1, r3, #8, #8
	uxtb	r4, r3
	lsrs	r3, r3, #24
	add	r0, r5, r0, lsl #5
	add	r1, r5, r1, lsl #5
	add	r2, r5, r4, lsl #5
	tbh	[pc, r3, lsl #1]
2:	.hword	(finish - 2b) / 2
	.hword	(fe_mul_run - 2b) / 2
	.hword	(squares - 2b) / 2
	.hword	(fe_add_run - 2b) / 2
	.hword	(fe_sub_run - 2b) / 2
	.hword	(fe_a24_run - 2b) / 2
	.hword	(select - 2b) / 2
select:
	ldr	r2, [sp, #MASK]
	mov	r12, #2
3:	ldm	r0, {r3-r6}
	ldm	r1!, {r7-r10}
	eor	r7, r7, r3
	eor	r8, r8, r4
	eor	r9, r9, r5
	eor	r10, r10, r6
	and	r7, r7, r2
	and	r8, r8, r2
	and	r9, r9, r2
	and	r10, r10, r2
	eor	r3, r3, r7
	eor	r4, r4, r8
	eor	r5, r5, r9
	eor	r6, r6, r10
	stm	r0!, {r3-r6}
	subs	r12, r12, #1
	bne	3b
	b	next
squares:
	str	r4, [sp, #COUNT]
	bl	munacl_fe_sqr
	ldr	r4, [sp, #COUNT]
	subs	r4, r4, #1
	ldr	r0, [sp, #DST]
	mov	r1, r0
	bne	squares
	adr	r3, next + 1
	str	r3, [sp, #LR]
	b	next
finish:
	add	sp, sp, #FRAME
	pop	{r4-r11, pc}
	.size	munacl_fe_run, . - munacl_fe_run

/* r0 = r1 * r2. 0 to 2^256 - 1 in, the same out. */
	.global	munacl_fe_mul
	.hidden	munacl_fe_mul
	.thumb_func
munacl_fe_mul:
	str	lr, [sp, #LR]
fe_mul_run:
	str	r0, [sp, #DST]
	add	r3, r2, #16
	str	r2, [sp, #BPTR]
	str	r3, [sp, #BPTR + 16]
	ldm	r1, {r3-r10}
	stm	sp, {r3-r10}
	DIFFERENCE r11
	STORE4	DA
	ldm	r2, {r7-r10}
	ldr	r3, [r2, #16]
	ldr	r4, [r2, #20]
	ldr	r5, [r2, #24]
	ldr	r6, [r2, #28]
	DIFFERENCE r12
	STORE4	DB
	eor	r11, r11, r12
	str	r11, [sp, #SIGN]
	bl	munacl_mul128
	STORE_HIGH P0H
	add	sp, sp, #A1
	bl	munacl_mul128
	STORE_HIGH P1H - A1
	add	sp, sp, #DA - A1
	bl	munacl_mul128
	sub	sp, sp, #DA

/* The product of (a0 - a1) and (b1 - b0) is negative where SIGN is all ones. */
	MIDDLE
	ldr	lr, [sp, #SIGN]
	eor	r0, r0, lr
	eor	r1, r1, lr
	eor	r2, r2, lr
	eor	r3, r3, lr
	eor	r4, r4, lr
	eor	r5, r5, lr
	eor	r6, r6, lr
	eor	r12, r12, lr
	cmn	lr, lr
	adcs	r0, r0, r7
	adcs	r1, r1, r8
	adcs	r2, r2, r9
	adcs	r3, r3, r10
	adcs	r4, r4, r7
	adcs	r5, r5, r8
	adcs	r6, r6, r9
	adcs	r12, r12, r10
	adc	lr, lr, #0

/* r0 .. r6, r12 = T + T 2^128 + the product of differences, lr above them (-1 to 1). What the
 * middle of the whole product still lacks is P0's low half and P1's high half; what stands above
 * 2^256 counts 38 times. */
combine:
	ldr	r7, [sp, #P0L]
	ldr	r8, [sp, #P0L + 4]
	ldr	r9, [sp, #P0L + 8]
	ldr	r10, [sp, #P0L + 12]
	adds	r0, r0, r7
	adcs	r1, r1, r8
	adcs	r2, r2, r9
	adcs	r3, r3, r10
	adcs	r4, r4, r11
	adcs	r5, r5, #0
	adcs	r6, r6, #0
	adcs	r12, r12, #0
	adc	lr, lr, r11
	ldr	r7, [sp, #P1H]
	ldr	r8, [sp, #P1H + 4]
	ldr	r9, [sp, #P1H + 8]
	ldr	r10, [sp, #P1H + 12]
	adds	r4, r4, r7
	adcs	r5, r5, r8
	adcs	r6, r6, r9
	adcs	r12, r12, r10
	adc	lr, lr, #0 /* no longer negative */
	adds	r7, r7, lr
	adcs	r8, r8, #0
	adcs	r9, r9, #0
	adc	r10, r10, #0
	/* 38 = 2 + 4 + 32. r0 .. r3 += 38 (r7 .. r10), r11 above. */
	mov	r11, #0
	SHIFTED	r7, r8, r9, r10, r0, r1, r2, r3, 1
	SHIFTED	r7, r8, r9, r10, r0, r1, r2, r3, 2
	SHIFTED	r7, r8, r9, r10, r0, r1, r2, r3, 5
	mov	lr, #38
	mul	lr, lr, r11
	mov	r11, #0
	ldr	r7, [sp, #P0L]
	ldr	r8, [sp, #P0L + 4]
	ldr	r9, [sp, #P0L + 8]
	ldr	r10, [sp, #P0L + 12]
	/* r7 .. r10 += 38 (r4, r5, r6, r12) + lr, and on into r0. */
	adds	r7, r7, lr
	adcs	r8, r8, r4, lsr #31
	adcs	r9, r9, r5, lsr #31
	adcs	r10, r10, r6, lsr #31
	adc	r11, r11, r12, lsr #31
	SHIFTED	r4, r5, r6, r12, r7, r8, r9, r10, 2
	SHIFTED	r4, r5, r6, r12, r7, r8, r9, r10, 5
	adds	r7, r7, r4, lsl #1
	adcs	r8, r8, r5, lsl #1
	adcs	r9, r9, r6, lsl #1
	adcs	r10, r10, r12, lsl #1
	adcs	r0, r0, r11
	adcs	r1, r1, #0
	adcs	r2, r2, #0
	adcs	r3, r3, #0
	/* A carry leaves r0 .. r3 below 2^8: 38 more reach r0 at most. */
	sbc	r11, r11, r11
	mov	lr, #38
	bic	r11, lr, r11
	ldr	lr, [sp, #LR]
	ldr	r4, [sp, #DST]
	adds	r7, r7, r11
	adcs	r8, r8, #0
	adcs	r9, r9, #0
	adcs	r10, r10, #0
	adc	r0, r0, #0
	str	r7, [r4]
	str	r8, [r4, #4]
	str	r9, [r4, #8]
	str	r10, [r4, #12]
	str	r0, [r4, #16]
	str	r1, [r4, #20]
	str	r2, [r4, #24]
	str	r3, [r4, #28]
	bx	lr

/* r0 = r1 ^ 2. */
	.global	munacl_fe_sqr
	.hidden	munacl_fe_sqr
	.thumb_func
munacl_fe_sqr:
	str	lr, [sp, #LR]
fe_sqr_run:
	str	r0, [sp, #DST]
	str	r1, [sp, #BPTR]
	ldm	r1, {r3-r10}
	DIFFERENCE r11
	STORE4	DA
	SQR128	r1, 0, P1L, P0L
	STORE_HIGH P0H
	ldr	r1, [sp, #BPTR]
	SQR128	r1, 16, A0, P1L
	STORE_HIGH P1H
	SQR128	sp, DA, A0, DL
	MIDDLE
	subs	r0, r7, r0
	sbcs	r1, r8, r1
	sbcs	r2, r9, r2
	sbcs	r3, r10, r3
	sbcs	r4, r7, r4
	sbcs	r5, r8, r5
	sbcs	r6, r9, r6
	sbcs	r12, r10, r12
	sbc	lr, lr, lr
	b	combine

/* r0 = r1 + r2. */
	.global	munacl_fe_add
	.hidden	munacl_fe_add
	.thumb_func
munacl_fe_add:
fe_add_run:
	ldm	r1, {r3-r10}
	ldm	r2!, {r1, r11, r12}
	adds	r3, r3, r1
	adcs	r4, r4, r11
	adcs	r5, r5, r12
	ldm	r2!, {r1, r11, r12}
	adcs	r6, r6, r1
	adcs	r7, r7, r11
	adcs	r8, r8, r12
	ldm	r2, {r11, r12}
	adcs	r9, r9, r11
	adcs	r10, r10, r12
	/* A carry is 38; a second one leaves less than 38. */
	mov	r12, #38
	sbc	r11, r11, r11
	bic	r11, r12, r11
	adds	r3, r3, r11
	adcs	r4, r4, #0
	adcs	r5, r5, #0
	adcs	r6, r6, #0
	adcs	r7, r7, #0
	adcs	r8, r8, #0
	adcs	r9, r9, #0
	adcs	r10, r10, #0
	sbc	r11, r11, r11
	bic	r11, r12, r11
	add	r3, r3, r11
	stm	r0, {r3-r10}
	bx	lr

/* r0 = r1 - r2. */
	.global	munacl_fe_sub
	.hidden	munacl_fe_sub
	.thumb_func
munacl_fe_sub:
fe_sub_run:
	ldm	r1, {r3-r10}
	ldm	r2!, {r1, r11, r12}
	subs	r3, r3, r1
	sbcs	r4, r4, r11
	sbcs	r5, r5, r12
	ldm	r2!, {r1, r11, r12}
	sbcs	r6, r6, r1
	sbcs	r7, r7, r11
	sbcs	r8, r8, r12
	ldm	r2, {r11, r12}
	sbcs	r9, r9, r11
	sbcs	r10, r10, r12
	sbc	r11, r11, r11
	and	r11, r11, #38
	subs	r3, r3, r11
	sbcs	r4, r4, #0
	sbcs	r5, r5, #0
	sbcs	r6, r6, #0
	sbcs	r7, r7, #0
	sbcs	r8, r8, #0
	sbcs	r9, r9, #0
	sbcs	r10, r10, #0
	/* A second borrow leaves 2^256 - 38 at least. */
	sbc	r11, r11, r11
	and	r11, r11, #38
	sub	r3, r3, r11
	stm	r0, {r3-r10}
	bx	lr

/* r0 = 121666 r1 + r2, by halves: 121666 = 2^16 + 56130. */
	.global	munacl_fe_a24
	.hidden	munacl_fe_a24
	.thumb_func
munacl_fe_a24:
fe_a24_run:
	str	r0, [sp, #DST]
	movw	r3, #56130
	mov	r4, #0 /* the half before */
	mov	r5, #0 /* the sum before, whose upper half is the carry */
	mov	r12, #4
1:	ldm	r1!, {r6, r10}
	ldm	r2!, {r7, r11}
	A24	r6, r7
	A24	r10, r11
	stm	r0!, {r7, r11}
	subs	r12, r12, #1
	bne	1b
	add	r11, r4, r5, lsr #16
	mov	r12, #38
	mul	r11, r11, r12
	ldr	r0, [sp, #DST]
	ldm	r0, {r3-r10}
	adds	r3, r3, r11
	adcs	r4, r4, #0
	adcs	r5, r5, #0
	adcs	r6, r6, #0
	adcs	r7, r7, #0
	adcs	r8, r8, #0
	adcs	r9, r9, #0
	adcs	r10, r10, #0
	sbc	r11, r11, r11
	bic	r11, r12, r11
	add	r3, r3, r11
	stm	r0, {r3-r10}
	bx	lr

