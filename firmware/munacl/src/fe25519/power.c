/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "fe25519.h"

const munacl_fe_step munacl_fe_power_250[] = {
    FE(SQR, 3, 2, 1),   FE(SQR, 4, 3, 2),   FE(MUL, 4, 4, 2), /* 9 */
    FE(MUL, 3, 3, 4),   FE(SQR, 5, 3, 1),   FE(MUL, 4, 4, 5), /* 2^5 - 1 */
    FE(SQR, 5, 4, 5),   FE(MUL, 4, 5, 4),                     /* 2^10 - 1 */
    FE(SQR10, 5, 4, 1),  FE(MUL, 5, 5, 4),                     /* 2^20 - 1 */
    FE(SQR10, 6, 5, 2),  FE(MUL, 5, 6, 5),                     /* 2^40 - 1 */
    FE(SQR10, 5, 5, 1),  FE(MUL, 4, 5, 4),                     /* 2^50 - 1 */
    FE(SQR10, 5, 4, 5),  FE(MUL, 5, 5, 4),                     /* 2^100 - 1 */
    FE(SQR10, 6, 5, 10), FE(MUL, 5, 6, 5),                     /* 2^200 - 1 */
    FE(SQR10, 5, 5, 5),  FE(MUL, 4, 5, 4),                     /* 2^250 - 1 */
    FE(END, 0, 0, 0),
};

