/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* int munacl_forget(int result, unsigned pieces)
 * Zeroes 64 `pieces` bytes below the caller's stack pointer, where what was called left its frames,
 * and the registers that a call may change but r0. Returns `result`. Called as the last thing, so
 * that the frame of the function itself is gone by then. Time depends on `pieces` alone. Stack:
 * what is zeroed. */
	.syntax unified
	.thumb
	.section .text.munacl_forget, "ax", %progbits
	.balign 4
	.global	munacl_forget
	.type	munacl_forget, %function
	.thumb_func
munacl_forget:
#ifdef MUNACL_KEEP /* for a test of the test */
	bx	lr
#endif
	mov	r12, r0
	mov	r3, sp
	lsls	r1, r1, #6
	subs	r1, r3, r1
	mov	sp, r1
	movs	r0, #0
	movs	r2, #0
1:	.rept 8
	stm	r1!, {r0, r2}
	.endr
	cmp	r1, r3
	bne	1b
	mov	sp, r3
	mov	r0, r12
	mov	r12, r2
	bx	lr
	.size	munacl_forget, . - munacl_forget
