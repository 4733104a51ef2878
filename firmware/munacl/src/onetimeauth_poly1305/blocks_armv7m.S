/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* void munacl_poly1305_blocks(struct munacl_poly1305 *state, const unsigned char *m, size_t blocks,
 *                             uint32_t top)
 * h = (h + block + 2^128 top) r modulo 2^130 - 5 for each block of 16 bytes; h stays below 2^130 +
 * 2^129, r is clamped. `m` need not be aligned. Time depends on `blocks` alone. Clobbers what the
 * procedure call standard lets it. Stack: 260 bytes. */
	.syntax unified
	.thumb
#include "fe25519/product.inc"

	.equ M, DST
	.equ END, COUNT
	.equ TOP, SIGN
	.equ STATE, PROGRAM
	.equ H4, SLOTS

	.section .text.munacl_poly1305_blocks, "ax", %progbits
	.balign 4
	.global	munacl_poly1305_blocks
	.type	munacl_poly1305_blocks, %function
	.thumb_func
munacl_poly1305_blocks:
	push	{r4-r11, lr}
	sub	sp, sp, #FRAME
	cmp	r2, #0
	beq	2f
	str	r3, [sp, #TOP]
	add	r2, r1, r2, lsl #4
	str	r2, [sp, #END]
	str	r0, [sp, #STATE]
	adr	r4, high + 1
	str	r4, [sp, #AGAIN]
	ldm	r0!, {r4-r8}
	ldm	r0, {r9-r12}
	STORE4	B0, r9, r10, r11, r12
1:	/* h in r4 .. r8 */
	ldr	r0, [r1]
	ldr	r2, [r1, #4]
	ldr	r3, [r1, #8]
	ldr	r9, [r1, #12]
	ldr	r10, [sp, #TOP]
	str	r1, [sp, #M]
	adds	r4, r4, r0
	adcs	r5, r5, r2
	adcs	r6, r6, r3
	adcs	r7, r7, r9
	adc	r8, r8, r10
	str	r8, [sp, #H4]
	STORE4	A0, r4, r5, r6, r7
	b	munacl_mul128
	.balign	4
high:
	/* h4 r, whose words are below 2^32: h4 has three bits, a word of r 28. Of the low words, r2
	 * and r3 are what MUL128 leaves. */
	ldr	r11, [sp, #H4]
	LOAD4	B0, r7, r8, r9, r10
	ldr	r0, [sp, #P0L]
	ldr	r1, [sp, #P0L + 4]
	mul	r7, r7, r11
	adds	r4, r4, r7
	mul	r8, r8, r11
	adcs	r5, r5, r8
	mul	r9, r9, r11
	adcs	r6, r6, r9
	mul	r10, r10, r11
	adc	r12, r12, r10
	/* r4 r5 r6 r12 stand 2^128 higher: what is above 2^130 counts 5 times, as 4 and 1, and that
	 * as each word's upper 30 bits and its lower two, which are the upper ones of the word
	 * before. */
	and	r8, r4, #3
	bic	r9, r4, #3
	adds	r0, r0, r9
	adcs	r1, r1, r5
	adcs	r2, r2, r6
	adcs	r3, r3, r12
	adc	r8, r8, #0
	adds	r4, r0, r4, lsr #2
	adcs	r1, r1, r5, lsr #2
	adcs	r2, r2, r6, lsr #2
	adcs	r7, r3, r12, lsr #2
	adc	r8, r8, #0
	adds	r4, r4, r5, lsl #30
	adcs	r5, r1, r6, lsl #30
	adcs	r6, r2, r12, lsl #30
	adcs	r7, r7, #0
	adc	r8, r8, #0
	ldr	r1, [sp, #M]
	ldr	r2, [sp, #END]
	adds	r1, r1, #16
	cmp	r1, r2
	bne	1b
	ldr	r0, [sp, #STATE]
	stm	r0, {r4-r8}
2:	add	sp, sp, #FRAME
	pop	{r4-r11, pc}
	.size	munacl_poly1305_blocks, . - munacl_poly1305_blocks
