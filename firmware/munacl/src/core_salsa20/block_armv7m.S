/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* void munacl_salsa20_blocks(void *out, const void *m, size_t blocks, uint32_t in[16])
 * 64 bytes of out for each block = in after Salsa20's twenty rounds, plus in ("Salsa20
 * specification", section 8), xored with m unless that is NULL; in[8] and in[9] count the blocks.
 * `out` may equal m; neither need be aligned. `blocks` is at least 1. Time depends on it, and on
 * whether m is NULL. Clobbers what the procedure call standard lets it. Stack: 152 bytes.
 *
 * int munacl_salsa20_core(void *out, const void in[16], const void k[32], const void c[16])
 * One block of the words that c, k and in make; 0. No array need be aligned. Leaves no secret in
 * its frame, or in registers. Time fixed. Stack: 152 bytes.
 *
 * Thirteen words are in registers. The last quarter-round of a column round needs words 3, 7 and
 * 11, that of a row round 12, 13 and 14: they take turns in three words of the frame. What is
 * loaded goes to the register that is free, and that of what is stored is the next one. */
	.syntax unified
	.thumb

	.equ TURNS, 0
	.equ SPILLED, 12 /* words 12 to 14 behind the last round, and word 15 */
	.equ COUNT, 28
	.equ OUT, 32
	.equ M, 36
	.equ BLOCKS, 40
	.equ BACK, 44
	.equ IN, 48
	.equ WORDS, 52
	.equ FRAME, 116

/* \t is free. */
.macro QUARTER a, b, c, d, t
	add	\t, \a, \d
	eor	\b, \b, \t, ror #25
	add	\t, \b, \a
	eor	\c, \c, \t, ror #23
	add	\t, \c, \b
	eor	\d, \d, \t, ror #19
	add	\t, \d, \c
	eor	\a, \a, \t, ror #14
.endm
/* \free is loaded, \done stored and free then. */
.macro TURN which, free, done
	ldr	\free, [sp, #TURNS + 4 * \which]
	str	\done, [sp, #TURNS + 4 * \which]
.endm

	.section .text.munacl_salsa20_blocks, "ax", %progbits
	.balign 4
	.global	munacl_salsa20_blocks
	.type	munacl_salsa20_blocks, %function
	.thumb_func
munacl_salsa20_blocks:
	push	{r4-r11, lr}
	sub	sp, sp, #FRAME
	str	r2, [sp, #BLOCKS]
	str	r3, [sp, #IN]
	add	r12, sp, #WORDS
	ldm	r3!, {r4-r11}
	stm	r12!, {r4-r11}
	ldm	r3, {r4-r11}
	stm	r12, {r4-r11}
1:	bl	block
	ldr	r4, [sp, #WORDS + 32]
	ldr	r5, [sp, #WORDS + 36]
	ldr	r3, [sp, #IN]
	ldr	r2, [sp, #BLOCKS]
	adds	r4, r4, #1
	adc	r5, r5, #0
	str	r4, [sp, #WORDS + 32]
	str	r5, [sp, #WORDS + 36]
	str	r4, [r3, #32]
	str	r5, [r3, #36]
	adds	r0, r0, #64
	cbz	r1, 2f
	adds	r1, r1, #64
2:	subs	r2, r2, #1
	str	r2, [sp, #BLOCKS]
	bne	1b
	add	sp, sp, #FRAME
	pop	{r4-r11, pc}
	.size	munacl_salsa20_blocks, . - munacl_salsa20_blocks

	.global	munacl_salsa20_core
	.type	munacl_salsa20_core, %function
	.thumb_func
munacl_salsa20_core:
	push	{r4-r11, lr}
	sub	sp, sp, #FRAME
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
	movs	r1, #0
	bl	block
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
	add	sp, sp, #FRAME
	pop	{r4-r11, pc}
	.size	munacl_salsa20_core, . - munacl_salsa20_core

/* A block at r0 of the frame's words, xored with what r1 points to unless that is 0. r0 and r1 are
 * left as they are, other registers are not. */
	.type	block, %function
	.thumb_func
block:
	str	lr, [sp, #BACK]
	str	r0, [sp, #OUT]
	str	r1, [sp, #M]
	movs	r3, #10
	str	r3, [sp, #COUNT]
	ldr	r0, [sp, #WORDS + 12]
	ldr	r1, [sp, #WORDS + 28]
	ldr	r2, [sp, #WORDS + 44]
	str	r0, [sp, #TURNS]
	str	r1, [sp, #TURNS + 4]
	str	r2, [sp, #TURNS + 8]
	/* Registers by word: 0 r0, 1 r1, 2 r2, 4 r3, 5 r4, 6 r5, 8 r6, 9 r7, 10 r8, 12 r10, 13 r11,
	 * 14 r12, 15 r9. */
	ldr	r0, [sp, #WORDS]
	ldr	r1, [sp, #WORDS + 4]
	ldr	r2, [sp, #WORDS + 8]
	ldr	r3, [sp, #WORDS + 16]
	ldr	r4, [sp, #WORDS + 20]
	ldr	r5, [sp, #WORDS + 24]
	ldr	r6, [sp, #WORDS + 32]
	ldr	r7, [sp, #WORDS + 36]
	ldr	r8, [sp, #WORDS + 40]
	ldr	r10, [sp, #WORDS + 48]
	ldr	r11, [sp, #WORDS + 52]
	ldr	r12, [sp, #WORDS + 56]
	ldr	r9, [sp, #WORDS + 60]
1:	QUARTER	r0, r3, r6, r10, lr
	TURN	0, lr, r10 /* 3 for 12 */
	QUARTER	r4, r7, r11, r1, r10
	TURN	1, r10, r11 /* 7 for 13 */
	QUARTER	r8, r12, r2, r5, r11
	TURN	2, r11, r12 /* 11 for 14 */
	QUARTER	r9, lr, r10, r11, r12
	QUARTER	r8, r11, r6, r7, r12
	TURN	2, r12, r11
	QUARTER	r4, r5, r10, r3, r11
	TURN	1, r11, r10
	QUARTER	r0, r1, r2, lr, r10
	TURN	0, r10, lr
	QUARTER	r9, r10, r11, r12, lr
	ldr	lr, [sp, #COUNT]
	subs	lr, lr, #1
	str	lr, [sp, #COUNT]
	bne	1b
	/* Plus the input, and m. Loads in chains: one alone takes two cycles. */
	str	r10, [sp, #SPILLED]
	str	r11, [sp, #SPILLED + 4]
	str	r12, [sp, #SPILLED + 8]
	str	r9, [sp, #SPILLED + 12]
	ldr	r9, [sp, #WORDS]
	ldr	r10, [sp, #WORDS + 4]
	ldr	r11, [sp, #WORDS + 8]
	ldr	lr, [sp, #OUT]
	ldr	r12, [sp, #M]
	add	r0, r0, r9
	add	r1, r1, r10
	add	r2, r2, r11
	cmp	r12, #0
	beq	2f
	ldr	r9, [r12]
	ldr	r10, [r12, #4]
	ldr	r11, [r12, #8]
	eor	r0, r0, r9
	eor	r1, r1, r10
	eor	r2, r2, r11
2:	str	r0, [lr]
	str	r1, [lr, #4]
	str	r2, [lr, #8]
	/* Words 4, 5, 6, 8, 9, 10 */
	ldr	r0, [sp, #WORDS + 16]
	ldr	r1, [sp, #WORDS + 20]
	ldr	r2, [sp, #WORDS + 24]
	ldr	r9, [sp, #WORDS + 32]
	ldr	r10, [sp, #WORDS + 36]
	ldr	r11, [sp, #WORDS + 40]
	add	r3, r3, r0
	add	r4, r4, r1
	add	r5, r5, r2
	add	r6, r6, r9
	add	r7, r7, r10
	add	r8, r8, r11
	beq	2f
	ldr	r0, [r12, #16]
	ldr	r1, [r12, #20]
	ldr	r2, [r12, #24]
	ldr	r9, [r12, #32]
	ldr	r10, [r12, #36]
	ldr	r11, [r12, #40]
	eor	r3, r3, r0
	eor	r4, r4, r1
	eor	r5, r5, r2
	eor	r6, r6, r9
	eor	r7, r7, r10
	eor	r8, r8, r11
2:	str	r3, [lr, #16]
	str	r4, [lr, #20]
	str	r5, [lr, #24]
	str	r6, [lr, #32]
	str	r7, [lr, #36]
	str	r8, [lr, #40]
	/* Words 3, 7, 11, then 12 to 15 */
	ldr	r0, [sp, #TURNS]
	ldr	r1, [sp, #TURNS + 4]
	ldr	r2, [sp, #TURNS + 8]
	ldr	r3, [sp, #WORDS + 12]
	ldr	r4, [sp, #WORDS + 28]
	ldr	r5, [sp, #WORDS + 44]
	add	r0, r0, r3
	add	r1, r1, r4
	add	r2, r2, r5
	ldr	r3, [sp, #SPILLED]
	ldr	r4, [sp, #SPILLED + 4]
	ldr	r5, [sp, #SPILLED + 8]
	ldr	r6, [sp, #SPILLED + 12]
	ldr	r7, [sp, #WORDS + 48]
	ldr	r8, [sp, #WORDS + 52]
	ldr	r9, [sp, #WORDS + 56]
	ldr	r10, [sp, #WORDS + 60]
	add	r3, r3, r7
	add	r4, r4, r8
	add	r5, r5, r9
	add	r6, r6, r10
	beq	2f
	ldr	r7, [r12, #12]
	ldr	r8, [r12, #28]
	ldr	r9, [r12, #44]
	ldr	r10, [r12, #48]
	eor	r0, r0, r7
	eor	r1, r1, r8
	eor	r2, r2, r9
	eor	r3, r3, r10
	ldr	r7, [r12, #52]
	ldr	r8, [r12, #56]
	ldr	r9, [r12, #60]
	eor	r4, r4, r7
	eor	r5, r5, r8
	eor	r6, r6, r9
2:	str	r0, [lr, #12]
	str	r1, [lr, #28]
	str	r2, [lr, #44]
	str	r3, [lr, #48]
	str	r4, [lr, #52]
	str	r5, [lr, #56]
	str	r6, [lr, #60]
	mov	r0, lr
	mov	r1, r12
	ldr	pc, [sp, #BACK]
	.size	block, . - block
