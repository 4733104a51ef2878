/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* void munacl_product(uint32_t out[17], const uint32_t a[8], const uint32_t b[8])
 * out[0 .. 15] = a b; out[16] is overwritten. `out` overlaps neither a nor b. Time fixed. Clobbers
 * what the procedure call standard lets it. Stack: 260 bytes. */
	.syntax unified
	.thumb
#include "product.inc"

	.equ A, PROGRAM
	.equ B, SLOTS

	.section .text.munacl_product, "ax", %progbits
	.balign 4
	.global	munacl_product
	.type	munacl_product, %function
	.thumb_func
munacl_product:
	push	{r4-r11, lr}
	sub	sp, sp, #FRAME
	str	r0, [sp, #DST]
	str	r1, [sp, #A]
	str	r2, [sp, #B]
	adr	r3, high + 1
	str	r3, [sp, #AGAIN]
	movs	r3, #0
	str	r3, [sp, #COUNT]
	movs	r4, #16
1:	str	r3, [r0], #4
	subs	r4, r4, #1
	bne	1b
	/* Four products of halves: low low, low high, high low, high high. */
2:	ldr	r1, [sp, #A]
	ldm	r1, {r4-r7}
	stm	sp, {r4-r7}
	ldr	r1, [sp, #B]
	ldm	r1, {r4-r7}
	add	r1, sp, #B0
	stm	r1, {r4-r7}
	b	munacl_mul128
	.balign	4
high:
	ldr	r0, [sp, #DST]
	add	r1, sp, #P0L
	ldm	r1, {r7-r10}
	ldm	r0, {r1-r3, r11}
	adds	r7, r7, r1
	adcs	r8, r8, r2
	adcs	r9, r9, r3
	adcs	r10, r10, r11
	stm	r0!, {r7-r10}
	ldm	r0, {r1-r3, r11}
	adcs	r4, r4, r1
	adcs	r5, r5, r2
	adcs	r6, r6, r3
	adcs	r12, r12, r11
	stm	r0!, {r4-r6, r12}
	ldr	r1, [r0]
	adc	r1, r1, #0
	str	r1, [r0]
	ldr	r1, [sp, #COUNT]
	ldr	r2, [sp, #B]
	adds	r1, r1, #1
	str	r1, [sp, #COUNT]
	lsls	r3, r1, #31
	beq	3f
	subs	r0, r0, #16
	str	r0, [sp, #DST]
	adds	r2, r2, #16
	str	r2, [sp, #B]
	b	2b
3:	subs	r2, r2, #16
	str	r2, [sp, #B]
	ldr	r2, [sp, #A]
	adds	r2, r2, #16
	str	r2, [sp, #A]
	cmp	r1, #4
	bne	2b
	add	sp, sp, #FRAME
	pop	{r4-r11, pc}
	.size	munacl_product, . - munacl_product
