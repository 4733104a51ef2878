/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* void munacl_salsa20_block(void *out, const uint32_t in[16])
 * 64 bytes of out = in after Salsa20's twenty rounds, plus in ("Salsa20 specification", section
 * 8). The arrays may be the same; `out` need not be aligned. Time fixed. Clobbers what the
 * procedure call standard lets it. Stack: 76 bytes.
 *
 * int munacl_salsa20_core(void *out, const void in[16], const void k[32], const void c[16])
 * The same of the words that c, k and in make; 0. No array need be aligned. Leaves no secret in its
 * frame, or in registers. Stack: 140 bytes.
 *
 * Thirteen words are in registers. The last quarter-round of a column round needs words 3, 7 and
 * 11, that of a row round 12, 13 and 14: they take turns in the same registers. */
	.syntax unified
	.thumb

	.equ OTHERS, 12
	.equ COUNT, 24
	.equ OUT, 28
	.equ IN, 32
	.equ BACK, 36
	.equ FRAME, 40
	.equ WORDS, 40

.macro QUARTER a, b, c, d
	add	lr, \a, \d
	eor	\b, \b, lr, ror #25
	add	lr, \b, \a
	eor	\c, \c, lr, ror #23
	add	lr, \c, \b
	eor	\d, \d, lr, ror #19
	add	lr, \d, \c
	eor	\a, \a, lr, ror #14
.endm

/* Registers by word: 0 r0, 1 r1, 2 r2, 4 r3, 5 r4, 6 r5, 8 r6, 9 r7, 10 r8, 15 r9,
 * 12 and 3 r10, 13 and 7 r11, 14 and 11 r12. */
	.section .text.munacl_salsa20_block, "ax", %progbits
	.balign 4
	.global	munacl_salsa20_block
	.type	munacl_salsa20_block, %function
	.thumb_func
munacl_salsa20_block:
	push	{r4-r11, lr}
	sub	sp, sp, #FRAME
	bl	rounds
	add	sp, sp, #FRAME
	pop	{r4-r11, pc}
	.size	munacl_salsa20_block, . - munacl_salsa20_block

	.global	munacl_salsa20_core
	.type	munacl_salsa20_core, %function
	.thumb_func
munacl_salsa20_core:
	push	{r4-r11, lr}
	sub	sp, sp, #WORDS + 64
	ldr	r4, [r3]
	ldr	r5, [r3, #4]
	ldr	r6, [r3, #8]
	ldr	r7, [r3, #12]
	str	r4, [sp, #WORDS]
	str	r5, [sp, #WORDS + 20]
	str	r6, [sp, #WORDS + 40]
	str	r7, [sp, #WORDS + 60]
	ldr	r4, [r2]
	ldr	r5, [r2, #4]
	ldr	r6, [r2, #8]
	ldr	r7, [r2, #12]
	add	r3, sp, #WORDS + 4
	stm	r3!, {r4-r7}
	ldr	r4, [r1]
	ldr	r5, [r1, #4]
	ldr	r6, [r1, #8]
	ldr	r7, [r1, #12]
	adds	r3, r3, #4
	stm	r3!, {r4-r7}
	ldr	r4, [r2, #16]
	ldr	r5, [r2, #20]
	ldr	r6, [r2, #24]
	ldr	r7, [r2, #28]
	adds	r3, r3, #4
	stm	r3!, {r4-r7}
	add	r1, sp, #WORDS
	bl	rounds
	movs	r0, #0
	movs	r1, #0
	movs	r2, #0
	movs	r3, #0
	movs	r4, #0
	movs	r5, #0
	movs	r6, #0
	movs	r7, #0
	mov	r12, sp
	stm	r12!, {r0-r7}
	add	r12, r12, #WORDS - 32
	stm	r12!, {r0-r7}
	stm	r12!, {r0-r7}
	add	sp, sp, #WORDS + 64
	pop	{r4-r11, pc}
	.size	munacl_salsa20_core, . - munacl_salsa20_core

/* With the frame of either: its 36 bytes from SP on hold words, the last one for the return. */
	.type	rounds, %function
	.thumb_func
rounds:
	str	lr, [sp, #BACK]
	str	r0, [sp, #OUT]
	str	r1, [sp, #IN]
	mov	lr, r1
	ldr	r10, [lr, #12]
	ldr	r11, [lr, #28]
	ldr	r12, [lr, #44]
	str	r10, [sp, #OTHERS]
	str	r11, [sp, #OTHERS + 4]
	str	r12, [sp, #OTHERS + 8]
	movs	r0, #10
	str	r0, [sp, #COUNT]
	ldm	lr!, {r0-r2}
	ldr	r3, [lr, #4]
	ldr	r4, [lr, #8]
	ldr	r5, [lr, #12]
	ldr	r6, [lr, #20]
	ldr	r7, [lr, #24]
	ldr	r8, [lr, #28]
	ldr	r10, [lr, #36]
	ldr	r11, [lr, #40]
	ldr	r12, [lr, #44]
	ldr	r9, [lr, #48]
1:	QUARTER	r0, r3, r6, r10
	QUARTER	r4, r7, r11, r1
	QUARTER	r8, r12, r2, r5
	/* 12, 13, 14 out; 3, 7, 11 in. */
	stm	sp, {r10-r12}
	ldr	r10, [sp, #OTHERS]
	ldr	r11, [sp, #OTHERS + 4]
	ldr	r12, [sp, #OTHERS + 8]
	ldr	lr, [sp, #COUNT]
	subs	lr, lr, #1
	str	lr, [sp, #COUNT]
	/* Nothing changes the flags until the branch. */
	QUARTER	r9, r10, r11, r12
	QUARTER	r0, r1, r2, r10
	QUARTER	r4, r5, r11, r3
	QUARTER	r8, r12, r6, r7
	str	r10, [sp, #OTHERS]
	str	r11, [sp, #OTHERS + 4]
	str	r12, [sp, #OTHERS + 8]
	ldm	sp, {r10-r12}
	QUARTER	r9, r10, r11, r12
	bne	1b
	/* The sum with the input. Three words wait in the frame, so that loads come in chains: one
	 * alone takes two cycles. */
	str	r11, [sp]
	str	r12, [sp, #4]
	ldr	lr, [sp, #IN]
	str	r9, [sp, #COUNT]
	ldr	r9, [sp, #OUT]
	ldr	r11, [lr]
	ldr	r12, [lr, #4]
	add	r0, r0, r11
	add	r1, r1, r12
	str	r0, [r9]
	str	r1, [r9, #4]
	ldr	r0, [lr, #8]
	ldr	r1, [lr, #16]
	ldr	r11, [lr, #20]
	ldr	r12, [lr, #24]
	add	r2, r2, r0
	add	r3, r3, r1
	add	r4, r4, r11
	add	r5, r5, r12
	str	r2, [r9, #8]
	str	r3, [r9, #16]
	str	r4, [r9, #20]
	str	r5, [r9, #24]
	ldr	r0, [lr, #32]
	ldr	r1, [lr, #36]
	ldr	r2, [lr, #40]
	ldr	r3, [lr, #48]
	ldr	r4, [sp, #OTHERS]
	ldr	r5, [sp, #OTHERS + 4]
	ldr	r11, [lr, #12]
	ldr	r12, [lr, #28]
	add	r6, r6, r0
	add	r7, r7, r1
	add	r8, r8, r2
	add	r10, r10, r3
	add	r4, r4, r11
	add	r5, r5, r12
	str	r6, [r9, #32]
	str	r7, [r9, #36]
	str	r8, [r9, #40]
	str	r10, [r9, #48]
	str	r4, [r9, #12]
	str	r5, [r9, #28]
	ldr	r0, [lr, #44]
	ldr	r1, [lr, #52]
	ldr	r2, [lr, #56]
	ldr	r3, [lr, #60]
	ldr	r4, [sp, #OTHERS + 8]
	ldr	r5, [sp]
	ldr	r6, [sp, #4]
	ldr	r7, [sp, #COUNT]
	add	r0, r0, r4
	add	r1, r1, r5
	add	r2, r2, r6
	add	r3, r3, r7
	str	r0, [r9, #44]
	str	r1, [r9, #52]
	str	r2, [r9, #56]
	str	r3, [r9, #60]
	ldr	pc, [sp, #BACK]
	.size	rounds, . - rounds
