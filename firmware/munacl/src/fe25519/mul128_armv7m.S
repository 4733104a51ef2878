/* SPDX-License-Identifier: Apache-2.0 OR MIT */
	.syntax unified
	.thumb
#include "product.inc"

/* r8 to r11 = the low (0) or high (2) halves of four words at \b + \off */
.macro HALVES b, off, high
	ldrh	r8, [\b, #\off + \high]
	ldrh	r9, [\b, #\off + 4 + \high]
	ldrh	r10, [\b, #\off + 8 + \high]
	ldrh	r11, [\b, #\off + 12 + \high]
.endm

/* \w0, \w1, \w2 += three products by \x, \w3 = the fourth and the carry; no carry beyond */
.macro ROW_NEW x, w0, w1, w2, w3
	mul	r7, \x, r8
	adds	\w0, \w0, r7
	mul	r7, \x, r9
	adcs	\w1, \w1, r7
	mul	r7, \x, r10
	adcs	\w2, \w2, r7
	mul	\w3, \x, r11
	adc	\w3, \w3, #0
.endm

/* \w0 .. \w3 += four products by lr; the carry is for the next row, which begins with it */
.macro ROW_FIRST w0, w1, w2, w3
	mul	r7, lr, r8
	adds	\w0, \w0, r7
	mul	r7, lr, r9
	adcs	\w1, \w1, r7
	mul	r7, lr, r10
	adcs	\w2, \w2, r7
	mul	r7, lr, r11
	adcs	\w3, \w3, r7
.endm
.macro ROW_NEXT top, w0, w1, w2, w3
	mul	\top, lr, r11
	adc	\top, \top, #0
	mul	r7, lr, r8
	adds	\w0, \w0, r7
	mul	r7, lr, r9
	adcs	\w1, \w1, r7
	mul	r7, lr, r10
	adcs	\w2, \w2, r7
	adcs	\w3, \w3, \top
.endm

/* Internal: the product of four words at SP + A0 and the four to which SP + BPTR points. The low
 * four words go to SP + P0L, the high four are r4, r5, r6, r12. Clobbers all registers and
 * SP + RETURN. Time fixed. */
	.section .text.munacl_mul128, "ax", %progbits
	.balign 4
	.global	munacl_mul128
	.hidden	munacl_mul128
	.type	munacl_mul128, %function
	.thumb_func
munacl_mul128:
	ldr	r2, [sp, #BPTR]
	str	lr, [sp, #RETURN]
	HALVES	r2, 0, 2
	ldrh	r4, [sp, #A0]
	ldrh	r5, [sp, #A0 + 4]
	ldrh	r6, [sp, #A0 + 8]
	ldrh	lr, [sp, #A0 + 12]
	mul	r0, r4, r8
	mul	r1, r4, r9
	mul	r2, r4, r10
	mul	r3, r4, r11
	ROW_NEW	r5, r1, r2, r3, r4
	ROW_NEW	r6, r2, r3, r4, r5
	ROW_NEW	lr, r3, r4, r5, r6
	ldr	r7, [sp, #BPTR]
	HALVES	r7, 0, 0
	ldrh	lr, [sp, #A0 + 2]
	ROW_FIRST r0, r1, r2, r3
	ldrh	lr, [sp, #A0 + 6]
	ROW_NEXT r12, r1, r2, r3, r4
	ldrh	lr, [sp, #A0 + 10]
	ROW_NEXT r12, r2, r3, r4, r5
	ldrh	lr, [sp, #A0 + 14]
	ROW_NEXT r12, r3, r4, r5, r6
	/* Sixteen bits up; the carry becomes bit 16 of the last word. */
	rrx	r12, r6
	lsr	r12, r12, #15
	lsls	r6, r6, #16
	orr	r6, r6, r5, lsr #16
	lsls	r5, r5, #16
	orr	r5, r5, r4, lsr #16
	lsls	r4, r4, #16
	orr	r4, r4, r3, lsr #16
	lsls	r3, r3, #16
	orr	r3, r3, r2, lsr #16
	lsls	r2, r2, #16
	orr	r2, r2, r1, lsr #16
	lsls	r1, r1, #16
	orr	r1, r1, r0, lsr #16
	ldrh	lr, [sp, #A0]
	mul	r7, lr, r8
	adds	r0, r7, r0, lsl #16
	mul	r7, lr, r9
	adcs	r1, r1, r7
	mul	r7, lr, r10
	adcs	r2, r2, r7
	mul	r7, lr, r11
	adcs	r3, r3, r7
	ldrh	lr, [sp, #A0 + 4]
	str	r0, [sp, #P0L]
	ROW_NEXT r0, r1, r2, r3, r4
	ldrh	lr, [sp, #A0 + 8]
	ROW_NEXT r0, r2, r3, r4, r5
	ldrh	lr, [sp, #A0 + 12]
	ROW_NEXT r0, r3, r4, r5, r6
	adc	r12, r12, #0
	ldr	r7, [sp, #BPTR]
	HALVES	r7, 0, 2
	ldrh	lr, [sp, #A0 + 2]
	ROW_FIRST r1, r2, r3, r4
	ldrh	lr, [sp, #A0 + 6]
	str	r1, [sp, #P0L + 4]
	ROW_NEXT r0, r2, r3, r4, r5
	ldrh	lr, [sp, #A0 + 10]
	str	r2, [sp, #P0L + 8]
	ROW_NEXT r0, r3, r4, r5, r6
	ldrh	lr, [sp, #A0 + 14]
	str	r3, [sp, #P0L + 12]
	ROW_NEXT r0, r4, r5, r6, r12
	ldr	pc, [sp, #RETURN]
	.size	munacl_mul128, . - munacl_mul128
