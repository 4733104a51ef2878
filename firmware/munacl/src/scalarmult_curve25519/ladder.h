/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef MUNACL_LADDER_H
#define MUNACL_LADDER_H

#include "fe25519/fe25519.h"

/* point = X, Z of scalar times the point whose u-coordinate point[0] is, which is below 2^255 +
 * 2^136: the assembly's sums and differences take one carry of such values (results of products are
 * among them). X and Z are any value below 2^256. Of the scalar, bits 0 to 2 and 255 are taken as 0
 * and bit 254 as 1 (RFC 7748 section 5). */
MUNACL_APART void munacl_x25519_ladder(munacl_fe point[2], const uint32_t scalar[8]);

#endif
