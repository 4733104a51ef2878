/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* void munacl_sha512_blocks(uint64_t state[8], const unsigned char *m, size_t blocks)
 * FIPS 180-4 section 6.4. `state` is aligned to words, `m` need not be. Time depends on `blocks`
 * alone. Clobbers what the procedure call standard lets it. Stack: 1,144 bytes at most.
 *
 * SP walks down: each round pushes its a and e, so that b, c, d and f, g, h are at constant
 * distances. After sixteen rounds the last four pairs are moved back up. */
	.syntax unified
	.thumb

/* The frame above the pairs, from W on, which is aligned to 128 bytes. */
	.equ W_BYTES, 640
	.equ STATE, 640
	.equ M, 644
	.equ BLOCKS, 648
	.equ OLD_SP, 652
	.equ CHUNKS, 656

/* \a += sigma0(\b) + \c; \d = \a + sigma1(\d), the word for [r12 + \at]; r10, r11 free. \s, the
 * word before, is stored here: a load before a store takes one cycle. */
.macro SCHEDULE a0, a1, b0, b1, d0, d1, at, s0, s1
	ldr	\b0, [r12, #\at - 120]
	ldr	\b1, [r12, #\at - 116]
	ldr	r8, [r12, #\at - 56]
	ldr	r9, [r12, #\at - 52]
.ifnb \s0
	str	\s0, [r12, #\at - 8]
	str	\s1, [r12, #\at - 4]
.endif
	lsr	r10, \b0, #1
	eor	r10, r10, \b1, lsl #31
	eor	r10, r10, \b0, lsr #8
	eor	r10, r10, \b1, lsl #24
	eor	r10, r10, \b0, lsr #7
	eor	r10, r10, \b1, lsl #25
	adds	\a0, \a0, r10
	lsr	r10, \b1, #1
	eor	r10, r10, \b0, lsl #31
	eor	r10, r10, \b1, lsr #8
	eor	r10, r10, \b0, lsl #24
	eor	r10, r10, \b1, lsr #7
	adc	\a1, \a1, r10
	adds	\a0, \a0, r8
	adc	\a1, \a1, r9
	lsr	r10, \d0, #19
	eor	r10, r10, \d1, lsl #13
	eor	r10, r10, \d1, lsr #29
	eor	r10, r10, \d0, lsl #3
	eor	r10, r10, \d0, lsr #6
	eor	r10, r10, \d1, lsl #26
	lsr	r11, \d1, #19
	eor	r11, r11, \d0, lsl #13
	eor	r11, r11, \d0, lsr #29
	eor	r11, r11, \d1, lsl #3
	eor	r11, r11, \d1, lsr #6
	adds	\d0, \a0, r10
	adc	\d1, \a1, r11
.endm

/* One round. a r0 r1, e r2 r3; \y is b ^ c, and \x becomes a ^ b, the next round's b ^ c. */
.macro ROUND y0, y1, x0, x1
	ldr	r4, [sp, #56]
	ldr	r5, [sp, #60]
	ldr	r6, [sp, #24]
	ldr	r7, [sp, #28]
	ldr	\x0, [sp, #40]
	ldr	\x1, [sp, #44]
	eor	r6, r6, \x0
	ands	r6, r6, r2
	eor	r6, r6, \x0
	eor	r7, r7, \x1
	ands	r7, r7, r3
	eor	r7, r7, \x1
	adds	r4, r4, r6
	adcs	r5, r5, r7
	ldm	lr!, {r6, r7}
	ldm	r12!, {\x0, \x1}
	adds	r4, r4, r6
	adcs	r5, r5, r7
	adds	r4, r4, \x0
	adc	r5, r5, \x1
	/* Sigma1(e) = e ^ (e rotated by 4) ^ (e by 27), all rotated by 14: the two parts of that
	 * last rotation have no bit in common, so that they can be added one after the other. */
	eor	r6, r2, r2, lsr #4
	eor	r6, r6, r3, lsl #28
	eor	r6, r6, r2, lsr #27
	eor	r6, r6, r3, lsl #5
	eor	r7, r3, r3, lsr #4
	eor	r7, r7, r2, lsl #28
	eor	r7, r7, r3, lsr #27
	eor	r7, r7, r2, lsl #5
	adds	r4, r4, r6, lsr #14
	adcs	r5, r5, r7, lsr #14
	adds	r4, r4, r7, lsl #18
	adcs	r5, r5, r6, lsl #18
	ldr	r2, [sp, #48]
	ldr	r3, [sp, #52]
	ldr	r6, [sp, #16]
	ldr	r7, [sp, #20]
	adds	r2, r2, r4
	adcs	r3, r3, r5
	eor	\x0, r0, r6
	eor	\x1, r1, r7
	and	\y0, \y0, \x0
	and	\y1, \y1, \x1
	eor	\y0, \y0, r6
	eor	\y1, \y1, r7
	adds	r4, r4, \y0
	adc	r5, r5, \y1
	/* Sigma0(a) = a ^ (a rotated by 6) ^ (a by 11), all rotated by 28. */
	eor	r6, r0, r0, lsr #6
	eor	r6, r6, r1, lsl #26
	eor	r6, r6, r0, lsr #11
	eor	r6, r6, r1, lsl #21
	eor	r7, r1, r1, lsr #6
	eor	r7, r7, r0, lsl #26
	eor	r7, r7, r1, lsr #11
	eor	r7, r7, r0, lsl #21
	adds	r4, r4, r6, lsr #28
	adcs	r5, r5, r7, lsr #28
	adds	r0, r4, r7, lsl #4
	adcs	r1, r5, r6, lsl #4
	push	{r0-r3}
.endm

	.section .text.munacl_sha512_blocks, "ax", %progbits
	.balign 4
	.global	munacl_sha512_blocks
	.type	munacl_sha512_blocks, %function
	.thumb_func
munacl_sha512_blocks:
	push	{r4-r11, lr}
	mov	r4, sp
	sub	r5, r4, #W_BYTES + 24
	bic	r5, r5, #127
	mov	sp, r5
	str	r4, [sp, #OLD_SP]
	str	r0, [sp, #STATE]
	cmp	r2, #0
	beq	9f
1:	str	r2, [sp, #BLOCKS]
	mov	r12, sp
	mov	lr, #8
2:	ldr	r3, [r1]
	ldr	r2, [r1, #4]
	ldr	r5, [r1, #8]
	ldr	r4, [r1, #12]
	adds	r1, r1, #16
	rev	r3, r3
	rev	r2, r2
	rev	r5, r5
	rev	r4, r4
	stm	r12!, {r2-r5}
	subs	lr, lr, #1
	bne	2b
	str	r1, [sp, #M]
	/* The other 64 words: t - 16 in r0 r1, t - 2 and t - 1 in r2 .. r5. */
	ldr	r2, [sp, #112]
	ldr	r3, [sp, #116]
	ldr	r4, [sp, #120]
	ldr	r5, [sp, #124]
	mov	lr, #32
	ldr	r0, [sp]
	ldr	r1, [sp, #4]
	add	r12, sp, #124
3:	SCHEDULE r0, r1, r6, r7, r2, r3, 4
	SCHEDULE r6, r7, r0, r1, r4, r5, 12, r2, r3
	str	r4, [r12, #12]
	str	r5, [r12, #16]!
	subs	lr, lr, #1
	bne	3b
	/* Pairs d h, c g, b f, a e. */
	mov	r12, sp
	ldr	lr, [sp, #STATE]
	ldr	r0, [lr, #24]
	ldr	r1, [lr, #28]
	ldr	r2, [lr, #56]
	ldr	r3, [lr, #60]
	push	{r0-r3}
	ldr	r8, [lr, #16]
	ldr	r9, [lr, #20]
	ldr	r10, [lr, #48]
	ldr	r11, [lr, #52]
	push	{r8-r11}
	ldr	r0, [lr, #8]
	ldr	r1, [lr, #12]
	ldr	r2, [lr, #40]
	ldr	r3, [lr, #44]
	push	{r0-r3}
	eor	r8, r8, r0
	eor	r9, r9, r1
	ldr	r0, [lr]
	ldr	r1, [lr, #4]
	ldr	r2, [lr, #32]
	ldr	r3, [lr, #36]
	push	{r0-r3}
	ldr	lr, =munacl_sha512_k
	movs	r4, #5
	str	r4, [r12, #CHUNKS]
4:	ROUND	r8, r9, r10, r11
	ROUND	r10, r11, r8, r9
	tst	r12, #127
	bne	4b
	/* The last four pairs back up by 16 times 16 bytes. */
	add	r4, sp, #256
	ldr	r5, [sp, #16]
	ldr	r6, [sp, #20]
	ldr	r7, [sp, #24]
	str	r5, [r4, #16]
	str	r6, [r4, #20]
	str	r7, [r4, #24]
	ldr	r5, [sp, #28]
	ldr	r6, [sp, #32]
	ldr	r7, [sp, #36]
	str	r5, [r4, #28]
	str	r6, [r4, #32]
	str	r7, [r4, #36]
	ldr	r5, [sp, #40]
	ldr	r6, [sp, #44]
	ldr	r7, [sp, #48]
	str	r5, [r4, #40]
	str	r6, [r4, #44]
	str	r7, [r4, #48]
	ldr	r5, [sp, #52]
	ldr	r6, [sp, #56]
	ldr	r7, [sp, #60]
	str	r5, [r4, #52]
	str	r6, [r4, #56]
	str	r7, [r4, #60]
	mov	sp, r4
	stm	sp, {r0-r3}
	/* W is 64 bytes above the oldest pair. */
	ldr	r5, [sp, #64 + CHUNKS]
	subs	r5, r5, #1
	str	r5, [sp, #64 + CHUNKS]
	bne	4b
	ldr	r12, [sp, #64 + STATE]
	movs	r7, #4
5:	pop	{r0-r3}
	ldr	r4, [r12]
	ldr	r5, [r12, #4]
	adds	r0, r0, r4
	adcs	r1, r1, r5
	ldr	r4, [r12, #32]
	ldr	r5, [r12, #36]
	str	r0, [r12], #4
	str	r1, [r12], #4
	adds	r2, r2, r4
	adcs	r3, r3, r5
	str	r2, [r12, #24]
	str	r3, [r12, #28]
	subs	r7, r7, #1
	bne	5b
	ldr	r1, [sp, #M]
	ldr	r2, [sp, #BLOCKS]
	subs	r2, r2, #1
	bne	1b
9:	ldr	r4, [sp, #OLD_SP]
	mov	sp, r4
	pop	{r4-r11, pc}
	.ltorg
	.size	munacl_sha512_blocks, . - munacl_sha512_blocks
