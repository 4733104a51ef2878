/* SPDX-License-Identifier: Apache-2.0 OR MIT */
	.syntax unified
	.thumb
#include "product.inc"

/* Internal: MUL128 of product.inc, then on at the address in SP + AGAIN; and what goes on there to
 * keep the high half of a product and make the next one of three (armv7m.S). Time fixed. */
	.section .text.munacl_mul128, "ax", %progbits
	.balign 4
	.global	munacl_mul128_again
	.hidden	munacl_mul128_again
	.type	munacl_mul128_again, %function
	.thumb_func
munacl_mul128_again:
	STORE_HIGH P0H
	add	sp, sp, #A1
	.size	munacl_mul128_again, . - munacl_mul128_again
	/* Falls through. */
	.global	munacl_mul128
	.hidden	munacl_mul128
	.type	munacl_mul128, %function
	.thumb_func
munacl_mul128:
	MUL128
	bx	r1
	.size	munacl_mul128, . - munacl_mul128
