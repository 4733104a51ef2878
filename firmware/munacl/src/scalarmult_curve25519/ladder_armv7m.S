/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* void munacl_x25519_ladder(munacl_fe point[2], const uint32_t scalar[8])
 * point = X, Z of scalar times the point whose u-coordinate point[0] is, which is below 2^255 +
 * 2^136. Of the scalar, bits 0 to 2 and 255 are taken as 0 and bit 254 as 1 (RFC 7748 section 5).
 * Time fixed. Clobbers what the procedure call standard lets it. Stack: 512 bytes.
 *
 * The sum of the ladder's two points does not depend on their order, so that only what is doubled
 * is selected: after a step the double is X2, Z2 and the sum X3, Z3, whatever the bit. */
	.syntax unified
	.thumb
#include "fe25519/product.inc"

	.equ X1, FRAME + 4
	.equ X2, X1 + 32
	.equ Z2, X1 + 64
	.equ X3, X1 + 96
	.equ Z3, X1 + 128
	.equ A, X1 + 160 /* of the point to be doubled: X + Z, X - Z */
	.equ B, X1 + 192
	.equ POINT, X1 + 224
	.equ SCALAR, POINT + 4
	.equ WORD, POINT + 8
	.equ BEFORE, POINT + 12
	.equ BIT, POINT + 16
	.equ INNER, POINT + 20 /* LR of the local routines */
	.equ LOCALS, POINT + 24

.macro CALL operation, d, a, b
	add	r0, sp, #\d
.ifnb \a
	add	r1, sp, #\a
.endif
.ifnb \b
	add	r2, sp, #\b
.endif
	bl	munacl_fe_\operation
.endm

/* \d = a + b and the element behind it a - b, for a = \a and b behind it */
.macro SUMS d, a
	add	r0, sp, #\d
	add	r1, sp, #\a
	bl	sum_and_difference
.endm

	.section .text.munacl_x25519_ladder, "ax", %progbits
	.balign 4
	.global	munacl_x25519_ladder
	.type	munacl_x25519_ladder, %function
	.thumb_func
munacl_x25519_ladder:
	push	{r4-r11, lr}
	sub	sp, sp, #LOCALS
	str	r0, [sp, #POINT]
	str	r1, [sp, #SCALAR]
	bl	munacl_fe_begin
	ldm	r0, {r2-r9}
	add	r0, sp, #X1
	stm	r0, {r2-r9}
	add	r0, sp, #X3
	stm	r0!, {r2-r9}
	movs	r2, #1
	movs	r3, #0
	movs	r4, #0
	movs	r5, #0
	stm	r0!, {r2-r5}
	movs	r2, #0
	stm	r0!, {r2-r5}
	/* Bit 254: twice the point, and the point. */
	SUMS	A, X3
	bl	double
	ldr	r1, [sp, #SCALAR]
	ldr	r0, [r1, #28]
	lsls	r0, r0, #2
	movs	r2, #1
	movs	r3, #253
	strd	r0, r2, [sp, #WORD]
1:	str	r3, [sp, #BIT]
	SUMS	A, X2
	SUMS	X2, X3
	stm	sp, {r3-r10} /* Z2 */
	CALL	mul_loaded, X3, , A
	CALL	mul, Z3, X2, B
	bl	select
	SUMS	X2, X3
	CALL	sqr_loaded, A0, Z2
	CALL	mul_kept, Z3, , X1
	CALL	sqr, X3, X2
	bl	double
	ldr	r3, [sp, #BIT]
	subs	r3, r3, #1
	ands	r0, r3, #31
	cmp	r0, #31
	bne	2f
	ldr	r1, [sp, #SCALAR]
	lsrs	r0, r3, #5
	ldr	r0, [r1, r0, lsl #2]
	str	r0, [sp, #WORD]
2:	cmp	r3, #3
	bge	1b
	/* The last three bits are 0: doublings. */
	movs	r0, #0
	str	r0, [sp, #WORD]
	SUMS	A, X2
	SUMS	X2, X3
	bl	select
	bl	double
	SUMS	A, X2
	bl	double
	SUMS	A, X2
	bl	double
	ldr	r0, [sp, #POINT]
	add	r1, sp, #X2
	ldm	r1!, {r2-r9}
	stm	r0!, {r2-r9}
	ldm	r1, {r2-r9}
	stm	r0, {r2-r9}
	add	sp, sp, #LOCALS
	pop	{r4-r11, pc}

/* Operands are below 2^255 + 2^136, as products are, and results below 2^256. */
sum_and_difference:
	ldm	r1!, {r3-r10}
	ldm	r1!, {r2, r11, r12}
	adds	r3, r3, r2
	adcs	r4, r4, r11
	adcs	r5, r5, r12
	ldm	r1!, {r2, r11, r12}
	adcs	r6, r6, r2
	adcs	r7, r7, r11
	adcs	r8, r8, r12
	ldm	r1!, {r11, r12}
	adcs	r9, r9, r11
	adcs	r10, r10, r12
	/* A carry is 38, and leaves less than 2^137. */
	mov	r12, #38
	sbc	r11, r11, r11
	bic	r11, r12, r11
	adds	r3, r3, r11
	adcs	r4, r4, #0
	adcs	r5, r5, #0
	adcs	r6, r6, #0
	adc	r7, r7, #0
	stm	r0!, {r3-r10}
	sub	r1, r1, #64
	ldm	r1!, {r3-r10}
	ldm	r1!, {r2, r11, r12}
	subs	r3, r3, r2
	sbcs	r4, r4, r11
	sbcs	r5, r5, r12
	ldm	r1!, {r2, r11, r12}
	sbcs	r6, r6, r2
	sbcs	r7, r7, r11
	sbcs	r8, r8, r12
	ldm	r1, {r11, r12}
	sbcs	r9, r9, r11
	sbcs	r10, r10, r12
	/* A borrow leaves more than 2^254: a second one cannot follow. */
	sbc	r11, r11, r11
	and	r11, r11, #38
	subs	r3, r3, r11
	sbcs	r4, r4, #0
	sbcs	r5, r5, #0
	sbcs	r6, r6, #0
	sbcs	r7, r7, #0
	sbcs	r8, r8, #0
	sbcs	r9, r9, #0
	sbc	r10, r10, #0
	stm	r0, {r3-r10}
	bx	lr

/* A, B of the second point, if the next bit differs from the one before. */
select:
	ldr	r2, [sp, #WORD]
	ldr	r4, [sp, #BEFORE]
	lsrs	r3, r2, #31
	lsls	r2, r2, #1
	str	r2, [sp, #WORD]
	str	r3, [sp, #BEFORE]
	eors	r4, r4, r3
	rsbs	r2, r4, #0
	add	r0, sp, #A
	add	r1, sp, #X2
	mov	r12, #2
	b	munacl_fe_select

/* X2, Z2 = the double of the point of A, B. */
double:
	str	lr, [sp, #INNER]
	CALL	sqr, A, A
	/* Not at A0, which lies below SP within a product: an interrupt may overwrite it there. */
	CALL	sqr, Z2, B
	CALL	mul, X2, Z2, A
	CALL	sub, A, A, Z2
	CALL	a24, A0, A, Z2
	CALL	mul_loaded, Z2, , A
	ldr	pc, [sp, #INNER]
	.size	munacl_x25519_ladder, . - munacl_x25519_ladder
