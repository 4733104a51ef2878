/* SPDX-License-Identifier: Apache-2.0 OR MIT */
	.syntax unified
	.thumb
#include "product.inc"

/* Internal: the product of four words at SP + DA and four at SP + DB. The low four words go to
 * SP + A0, the high four are r4, r5, r6, r12. Clobbers all registers and SP + RETURN. Time fixed. */
	.section .text.munacl_mul128, "ax", %progbits
	.balign 4
	.global	munacl_mul128
	.hidden	munacl_mul128
	.type	munacl_mul128, %function
	.thumb_func
munacl_mul128:
	str	lr, [sp, #RETURN]
	MUL128	DA, sp, DB, 0, A0
	ldr	pc, [sp, #RETURN]
	.size	munacl_mul128, . - munacl_mul128
