/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* void munacl_ed_look_up(munacl_fe out[3], uint32_t index)
 * out = the comb's point of this index, 0 to 15, which may be secret: the whole table is read, one
 * element of all points after the other, and each word counts once or not at all. Time fixed.
 * Clobbers what the procedure call standard lets it. Stack: 40 bytes. */
	.syntax unified
	.thumb

	.equ POINT, 96

/* Two words of the point, if r12 is 1. */
.macro TWO first, second
	ldm	r2!, {r3, lr}
	mla	\first, r3, r12, \first
	mla	\second, lr, r12, \second
.endm

	.section .text.munacl_ed_look_up, "ax", %progbits
	.balign 4
	.global	munacl_ed_look_up
	.type	munacl_ed_look_up, %function
	.thumb_func
munacl_ed_look_up:
	push	{r0, r4-r11, lr}
	ldr	r2, =munacl_ed_table
	/* The bit of this index, twice: after sixteen points it is at its place again. */
	mov	r3, #0x10001
	lsl	r1, r3, r1
1:	movs	r0, #16
	movs	r4, #0
	movs	r5, #0
	movs	r6, #0
	movs	r7, #0
	mov	r8, r4
	mov	r9, r4
	mov	r10, r4
	mov	r11, r4
2:	and	r12, r1, #1
	ror	r1, r1, #1
	TWO	r4, r5
	TWO	r6, r7
	TWO	r8, r9
	TWO	r10, r11
	adds	r2, r2, #POINT - 32
	subs	r0, r0, #1
	bne	2b
	ldr	r0, [sp]
	stm	r0!, {r4-r11}
	str	r0, [sp]
	sub	r2, r2, #16 * POINT - 32
	ldr	r3, =munacl_ed_table + POINT
	cmp	r2, r3
	bne	1b
	pop	{r0, r4-r11, pc}
	.size	munacl_ed_look_up, . - munacl_ed_look_up
