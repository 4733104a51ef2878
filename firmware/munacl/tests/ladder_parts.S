/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The ladder, with its routine for sums and differences in reach of twins.c:
 * void munacl_test_sums(munacl_fe sums[2], const munacl_fe of[2])
 * Its operands have a bound that products keep, so that no point makes the edge of it. */
#include "scalarmult_curve25519/ladder_armv7m.S"

	.section .text.munacl_test_sums, "ax", %progbits
	.global	munacl_test_sums
	.type	munacl_test_sums, %function
	.thumb_func
munacl_test_sums:
	push	{r4-r11, lr}
	bl	sum_and_difference
	pop	{r4-r11, pc}
	.size	munacl_test_sums, . - munacl_test_sums
