// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slot and token management (PKCS#11 2.40 section 5.5).

use std::ptr;

use cryptoki_sys::*;

use super::Row;

pub(super) const ROWS: &[Row] = &[
    (
        "slot list, null count",
        |t| call!(t.bench, C_GetSlotList, 0, ptr::null_mut(), ptr::null_mut()),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "slot list, buffer too small",
        |t| call!(t.bench, C_GetSlotList, 0, &mut 0, &mut 0),
        CKR_BUFFER_TOO_SMALL,
    ),
    (
        "slot info, invalid slot",
        |t| call!(t.bench, C_GetSlotInfo, 9, &mut CK_SLOT_INFO::default()),
        CKR_SLOT_ID_INVALID,
    ),
    (
        "slot info, null pointer",
        |t| call!(t.bench, C_GetSlotInfo, 0, ptr::null_mut()),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "token info, invalid slot",
        |t| call!(t.bench, C_GetTokenInfo, 9, &mut CK_TOKEN_INFO::default()),
        CKR_SLOT_ID_INVALID,
    ),
    (
        "mechanism list, buffer too small",
        |t| call!(t.bench, C_GetMechanismList, 0, &mut 0, &mut 1),
        CKR_BUFFER_TOO_SMALL,
    ),
    (
        "mechanism info, unknown mechanism",
        |t| call!(t.bench, C_GetMechanismInfo, 0, CKM_AES_CBC, &mut CK_MECHANISM_INFO::default()),
        CKR_MECHANISM_INVALID,
    ),
    (
        "no slot event",
        |t| call!(t.bench, C_WaitForSlotEvent, CKF_DONT_BLOCK, &mut 0, ptr::null_mut()),
        CKR_NO_EVENT,
    ),
];
