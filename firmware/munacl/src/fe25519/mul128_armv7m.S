/* SPDX-License-Identifier: Apache-2.0 OR MIT */
	.syntax unified
	.thumb
#include "product.inc"

/* Internal: MUL128 of product.inc, then on at the address in SP + AGAIN. Time fixed. */
	.section .text.munacl_mul128, "ax", %progbits
	.balign 4
	.global	munacl_mul128
	.hidden	munacl_mul128
	.type	munacl_mul128, %function
	.thumb_func
munacl_mul128:
	MUL128
	bx	r1
	.size	munacl_mul128, . - munacl_mul128
