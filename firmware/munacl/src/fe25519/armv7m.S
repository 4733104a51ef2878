/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Field arithmetic modulo 2^255 - 19 for the Cortex-M3, in constant time. Products of 256 bits are
 * three of 128 (Karatsuba, by differences), which product.inc has.
 *
 * munacl_fe_mul to munacl_fe_a24 are internal: they clobber all registers but SP, and use the frame
 * of product.inc at SP, which munacl_fe_begin has prepared.
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

/* r0 .. r6, r12 += four words in r7 .. r10 and the same again, 128 bits higher */
.macro TWICE first
	\first	r0, r0, r7
	adcs	r1, r1, r8
	adcs	r2, r2, r9
	adcs	r3, r3, r10
	adcs	r4, r4, r7
	adcs	r5, r5, r8
	adcs	r6, r6, r9
	adcs	r12, r12, r10
.endm

/* Four words at r1 to r0 where r2 is all ones, and on to the next four. */
.macro SELECT4
	ldm	r0, {r3-r6}
	ldm	r1!, {r7-r10}
	eors	r7, r7, r3
	eor	r8, r8, r4
	eor	r9, r9, r5
	eor	r10, r10, r6
	ands	r7, r7, r2
	and	r8, r8, r2
	and	r9, r9, r2
	and	r10, r10, r2
	eors	r3, r3, r7
	eor	r4, r4, r8
	eor	r5, r5, r9
	eor	r6, r6, r10
	stm	r0!, {r3-r6}
.endm

	.section .text.munacl_fe, "ax", %progbits
	.balign 4

/* void munacl_fe_run(munacl_fe *slots, const munacl_fe_step *program, uint32_t mask)
 * Runs a program of field operations (fe25519.h). The program is public, slots and mask may be
 * secret. Time depends on the program alone. Stack: 260 bytes. */
	.global	munacl_fe_run
	.type	munacl_fe_run, %function
	.thumb_func
munacl_fe_run:
	push	{r4-r11, lr}
	sub	sp, sp, #FRAME
	str	r0, [sp, #SLOTS]
	str	r1, [sp, #PROGRAM]
	str	r2, [sp, #MASK]
	bl	munacl_fe_begin
	adr	r3, next + 1
	str	r3, [sp, #LR]
	.balign 4
next:
	ldr	r4, [sp, #PROGRAM]
	ldr	r5, [sp, #SLOTS]
	ldr	lr, [sp, #LR]
	ldrh	r3, [r4], #2
	str	r4, [sp, #PROGRAM]
	ubfx	r0, r3, #8, #4
	ubfx	r1, r3, #4, #4
	and	r4, r3, #15
	lsrs	r3, r3, #12
	add	r0, r5, r0, lsl #5
	add	r1, r5, r1, lsl #5
	add	r2, r5, r4, lsl #5
	tbh	[pc, r3, lsl #1]
2:	.hword	(finish - 2b) / 2
	.hword	(fe_mul_run - 2b) / 2
	.hword	(squares - 2b) / 2
	.hword	(squares10 - 2b) / 2
	.hword	(fe_add_run - 2b) / 2
	.hword	(fe_sub_run - 2b) / 2
	.hword	(fe_a24_run - 2b) / 2
	.hword	(select - 2b) / 2
select:
	ldr	r2, [sp, #MASK]
	mov	r12, #1
	b	munacl_fe_select
squares10:
	add	r4, r4, r4, lsl #2
	lsls	r4, r4, #1
squares:
	cmp	r4, #1
	beq	fe_sqr_run
3:	str	r4, [sp, #COUNT]
	bl	munacl_fe_sqr
	ldr	r4, [sp, #COUNT]
	subs	r4, r4, #1
	ldr	r0, [sp, #DST]
	mov	r1, r0
	bne	3b
	adr	r3, next + 1
	str	r3, [sp, #LR]
	b	next
finish:
	add	sp, sp, #FRAME
	pop	{r4-r11, pc}
	.size	munacl_fe_run, . - munacl_fe_run

/* Prepares a frame. Clobbers r3. */
	.global	munacl_fe_begin
	.hidden	munacl_fe_begin
	.thumb_func
munacl_fe_begin:
	ldr	r3, =munacl_mul128_again
	str	r3, [sp, #AGAIN]
	str	r3, [sp, #AGAIN + A1]
	adr	r3, differences + 1
	str	r3, [sp, #AGAIN + DA]
	add	r3, sp, #DL
	str	r3, [sp, #NEXT + A1]
	mov	r3, #0
	str	r3, [sp, #NEXT + DA]
	bx	lr
	.ltorg

/* r0 = A0 * r2: what SP points to, and with munacl_fe_mul_loaded also r3 .. r10. */
	.global	munacl_fe_mul_kept
	.hidden	munacl_fe_mul_kept
	.thumb_func
munacl_fe_mul_kept:
	ldm	sp, {r3-r10}
	.global	munacl_fe_mul_loaded
	.hidden	munacl_fe_mul_loaded
	.thumb_func
munacl_fe_mul_loaded:
	str	lr, [sp, #LR]
	str	r0, [sp, #DST]
	b	1f

/* r0 = r1 * r2. 0 to 2^256 - 1 in, the same out. */
	.global	munacl_fe_mul
	.hidden	munacl_fe_mul
	.thumb_func
munacl_fe_mul:
	str	lr, [sp, #LR]
fe_mul_run:
	str	r0, [sp, #DST]
	ldm	r1, {r3-r10}
	stm	sp, {r3-r10}
1:	DIFFERENCE r11, r3, r4, r5, r6, r7, r8, r9, r10
	STORE4	DA, r3, r4, r5, r6
	add	r0, sp, #B0
	ldm	r2, {r3-r10}
	stm	r0, {r3-r10}
	DIFFERENCE r12, r7, r8, r9, r10, r3, r4, r5, r6
	eor	r11, r11, r12
	str	r11, [sp, #SIGN]
	STORE4	DB, r7, r8, r9, r10
	b	munacl_mul128
/* r0 .. r6, r12 = the product of (a0 - a1) and (b1 - b0), lr its sign, + P0's high half at 0 and
 * 2^128. */
	.balign	4
differences:
	sub	sp, sp, #DA
	ldr	r0, [sp, #DL]
	ldr	r1, [sp, #DL + 4]
	ldr	lr, [sp, #SIGN]
	LOAD4	P0H, r7, r8, r9, r10
	eor	r0, r0, lr
	eor	r1, r1, lr
	eor	r2, r2, lr
	eor	r3, r3, lr
	eor	r4, r4, lr
	eor	r5, r5, lr
	eor	r6, r6, lr
	eor	r12, r12, lr
	cmn	lr, lr
	TWICE	adcs
	adc	lr, lr, #0

/* The same with P1's low half, P0's low half at 0 and P1's high half at 2^128: now r0 .. r3 are the
 * upper half of what is below 2^256, r4, r5, r6, r12, and 128 bits higher r7 .. r10 and lr, what
 * counts 38 times. */
combine:
	LOAD4	P1L, r7, r8, r9, r10
	TWICE	adds
	adc	lr, lr, #0
	LOAD4	P0L, r7, r8, r9, r10
	adds	r0, r0, r7
	adcs	r1, r1, r8
	adcs	r2, r2, r9
	adcs	r3, r3, r10
	LOAD4	P1H, r7, r8, r9, r10
	adcs	r4, r4, r7
	adcs	r5, r5, r8
	adcs	r6, r6, r9
	adcs	r12, r12, r10
	adc	lr, lr, #0 /* no longer negative */
	/* 38 = 2 + 4 + 32. r0 .. r3 += 38 (r7 .. r10), r11 above. */
	mov	r11, #0
	SHIFTED	r7, r8, r9, r10, r0, r1, r2, r3, 1
	SHIFTED	r7, r8, r9, r10, r0, r1, r2, r3, 2
	SHIFTED	r7, r8, r9, r10, r0, r1, r2, r3, 5
	/* Bits from 2^255 on count 19 times. Without them r0 .. r3 are below 2^127, and what they
	 * get from below is less than 200: the result is below 2^255 + 2^136. */
	lsl	r11, r11, #1
	orr	r11, r11, r3, lsr #31
	bic	r3, r3, #0x80000000
	mov	r7, #19
	mul	r11, r11, r7
	mov	r7, #38
	mul	lr, lr, r7
	LOAD4	P0L, r7, r8, r9, r10
	/* r7 .. r10 += 38 (r4, r5, r6, r12) + r11, and on into r0, with lr. */
	adds	r7, r7, r11
	adcs	r8, r8, r4, lsr #31
	adcs	r9, r9, r5, lsr #31
	adcs	r10, r10, r6, lsr #31
	adc	r11, lr, r12, lsr #31
	SHIFTED	r4, r5, r6, r12, r7, r8, r9, r10, 2
	SHIFTED	r4, r5, r6, r12, r7, r8, r9, r10, 5
	adds	r7, r7, r4, lsl #1
	adcs	r8, r8, r5, lsl #1
	adcs	r9, r9, r6, lsl #1
	adcs	r10, r10, r12, lsl #1
	adcs	r0, r0, r11
	adcs	r1, r1, #0
	adcs	r2, r2, #0
	adc	r3, r3, #0
	ldr	r4, [sp, #DST]
	ldr	lr, [sp, #LR]
	str	r7, [r4]
	str	r8, [r4, #4]
	str	r9, [r4, #8]
	str	r10, [r4, #12]
	str	r0, [r4, #16]
	str	r1, [r4, #20]
	str	r2, [r4, #24]
	str	r3, [r4, #28]
	bx	lr

/* r0 = r1 ^ 2, r1's words being in r3 .. r10 as well. */
	.global	munacl_fe_sqr_loaded
	.hidden	munacl_fe_sqr_loaded
	.thumb_func
munacl_fe_sqr_loaded:
	str	lr, [sp, #LR]
	add	r2, r1, #16
	b	2f

/* r0 = r1 ^ 2. */
	.global	munacl_fe_sqr
	.hidden	munacl_fe_sqr
	.thumb_func
munacl_fe_sqr:
	str	lr, [sp, #LR]
fe_sqr_run:
	add	r2, r1, #16
	ldm	r1, {r3-r10}
2:	str	r0, [sp, #DST]
	str	r2, [sp, #NEXT]
	DIFFERENCE r11, r3, r4, r5, r6, r7, r8, r9, r10
	STORE4	DL, r3, r4, r5, r6
1:	SQR128
	movs	r1, r8
	beq	2f
	STORE_HIGH P0H
	add	sp, sp, #A1
	b	1b
2:	sub	sp, sp, #DA
	ldr	r1, [sp, #DL + 4]
	LOAD4	P0H, r7, r8, r9, r10
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

/* Where r2 is all ones, r0 = r1, for r12 elements one behind the other. */
	.global	munacl_fe_select
	.hidden	munacl_fe_select
	.thumb_func
munacl_fe_select:
	SELECT4
	SELECT4
	subs	r12, r12, #1
	bne	munacl_fe_select
	bx	lr

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

/* r0 = 121666 r1 + r2. 121666 = 2 * 60833, which has 16 bits. */
	.global	munacl_fe_a24
	.hidden	munacl_fe_a24
	.thumb_func
munacl_fe_a24:
fe_a24_run:
	str	r0, [sp, #DST]
	str	r2, [sp, #SRC]
	str	lr, [sp, #LR]
	movw	r12, #60833
	/* Products of the low halves are words, those of the high halves stand 16 bits higher. */
	ldrh	r3, [r1]
	ldrh	r4, [r1, #4]
	ldrh	r5, [r1, #8]
	ldrh	r6, [r1, #12]
	ldrh	r7, [r1, #16]
	ldrh	r8, [r1, #20]
	ldrh	r9, [r1, #24]
	ldrh	r10, [r1, #28]
	ldrh	r0, [r1, #2]
	ldrh	r2, [r1, #6]
	ldrh	r11, [r1, #10]
	ldrh	lr, [r1, #14]
	mul	r3, r3, r12
	mul	r4, r4, r12
	mul	r5, r5, r12
	mul	r6, r6, r12
	mul	r7, r7, r12
	mul	r8, r8, r12
	mul	r9, r9, r12
	mul	r10, r10, r12
	mul	r0, r0, r12
	mul	r2, r2, r12
	mul	r11, r11, r12
	mul	lr, lr, r12
	adds	r3, r3, r0, lsl #16
	adcs	r4, r4, r2, lsl #16
	adcs	r5, r5, r11, lsl #16
	adcs	r6, r6, lr, lsl #16
	lsr	lr, lr, #16
	adc	lr, lr, #0
	adds	r4, r4, r0, lsr #16
	adcs	r5, r5, r2, lsr #16
	adcs	r6, r6, r11, lsr #16
	adcs	r7, r7, lr
	ldrh	r0, [r1, #18]
	ldrh	r2, [r1, #22]
	ldrh	r11, [r1, #26]
	ldrh	lr, [r1, #30]
	mul	r0, r0, r12
	mul	r2, r2, r12
	mul	r11, r11, r12
	mul	lr, lr, r12
	adcs	r8, r8, r0, lsr #16
	adcs	r9, r9, r2, lsr #16
	adcs	r10, r10, r11, lsr #16
	mov	r1, #0
	adc	r1, r1, lr, lsr #16
	adds	r7, r7, r0, lsl #16
	adcs	r8, r8, r2, lsl #16
	adcs	r9, r9, r11, lsl #16
	adcs	r10, r10, lr, lsl #16
	adc	r1, r1, #0
	/* Twice, and r2. */
	ldr	r2, [sp, #SRC]
	adds	r3, r3, r3
	adcs	r4, r4, r4
	adcs	r5, r5, r5
	adcs	r6, r6, r6
	adcs	r7, r7, r7
	adcs	r8, r8, r8
	adcs	r9, r9, r9
	adcs	r10, r10, r10
	adc	r1, r1, r1
	ldm	r2!, {r0, r11, r12, lr}
	adds	r3, r3, r0
	adcs	r4, r4, r11
	adcs	r5, r5, r12
	adcs	r6, r6, lr
	ldm	r2, {r0, r11, r12, lr}
	adcs	r7, r7, r0
	adcs	r8, r8, r11
	adcs	r9, r9, r12
	adcs	r10, r10, lr
	adc	r1, r1, #0
	/* Bits from 2^255 on count 19 times; what is below them does not carry any more. */
	lsl	r1, r1, #1
	orr	r1, r1, r10, lsr #31
	bic	r10, r10, #0x80000000
	mov	r12, #19
	mul	r1, r1, r12
	ldr	r0, [sp, #DST]
	ldr	lr, [sp, #LR]
	adds	r3, r3, r1
	adcs	r4, r4, #0
	adcs	r5, r5, #0
	adcs	r6, r6, #0
	adcs	r7, r7, #0
	adcs	r8, r8, #0
	adcs	r9, r9, #0
	adc	r10, r10, #0
	stm	r0, {r3-r10}
	bx	lr
