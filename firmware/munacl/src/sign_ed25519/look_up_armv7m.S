/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* void munacl_ed_look_up(munacl_fe out[3], uint32_t index)
 * out = the comb's point of this index, 0 to 15, which may be secret: the whole table is read, one
 * half after the other. Time fixed. Clobbers what the procedure call standard lets it. Stack: 40
 * bytes. */
	.syntax unified
	.thumb

/* \mask = all ones if r1 is \i */
.macro IS i, mask
	eor	\mask, r1, #\i
	sub	\mask, \mask, #1
	asr	\mask, \mask, #31
.endm
.macro TWO from, first, second
	ldr	r3, [r2, #\from]
	ldr	r12, [r2, #\from + 96]
	and	r3, r3, \first
	orr	lr, lr, r3
	and	r12, r12, \second
	orr	lr, lr, r12
.endm

	.section .text.munacl_ed_look_up, "ax", %progbits
	.balign 4
	.global	munacl_ed_look_up
	.type	munacl_ed_look_up, %function
	.thumb_func
munacl_ed_look_up:
	push	{r4-r11, lr}
	ldr	r2, =munacl_ed_table
	movs	r4, #0
	movs	r5, #0
	movs	r6, #0
	movs	r7, #0
	mov	r8, r4
	mov	r9, r4
	mov	r10, r4
	mov	r11, r4
	stm	r0!, {r4-r11}
	stm	r0!, {r4-r11}
	stm	r0!, {r4-r11}
	sub	r0, r0, #96
1:	IS	0, r4
	IS	1, r5
	IS	2, r6
	IS	3, r7
	IS	4, r8
	IS	5, r9
	IS	6, r10
	IS	7, r11
	push	{r1}
	movs	r1, #24
2:	ldr	lr, [r0]
	TWO	0, r4, r5
	TWO	192, r6, r7
	TWO	384, r8, r9
	TWO	576, r10, r11
	str	lr, [r0], #4
	adds	r2, r2, #4
	subs	r1, r1, #1
	bne	2b
	pop	{r1}
	sub	r0, r0, #96
	add	r2, r2, #672
	eor	r1, r1, #8
	ldr	r3, =munacl_ed_table + 2 * 768
	cmp	r2, r3
	bne	1b
	pop	{r4-r11, pc}
	.size	munacl_ed_look_up, . - munacl_ed_look_up
