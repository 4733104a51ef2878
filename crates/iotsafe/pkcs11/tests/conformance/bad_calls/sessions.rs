// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slots and sessions (PKCS#11 2.40 sections 5.4 to 5.6), and functions that there are not.

use std::ptr;

use cryptoki_sys::*;

use super::{NO_HANDLE, Row};

pub(super) const ROWS: &[Row] = &[
    (
        "slot list without a count",
        |t| call!(t.bench, C_GetSlotList, 0, ptr::null_mut(), ptr::null_mut()),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "slot list with no room",
        |t| call!(t.bench, C_GetSlotList, 0, &mut 0, &mut 0),
        CKR_BUFFER_TOO_SMALL,
    ),
    (
        "info of no slot",
        |t| call!(t.bench, C_GetSlotInfo, 9, &mut CK_SLOT_INFO::default()),
        CKR_SLOT_ID_INVALID,
    ),
    (
        "slot info to nowhere",
        |t| call!(t.bench, C_GetSlotInfo, 0, ptr::null_mut()),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "token of no slot",
        |t| call!(t.bench, C_GetTokenInfo, 9, &mut CK_TOKEN_INFO::default()),
        CKR_SLOT_ID_INVALID,
    ),
    ("library info to nowhere", |t| call!(t.bench, C_GetInfo, ptr::null_mut()), CKR_ARGUMENTS_BAD),
    (
        "mechanism list with no room",
        |t| call!(t.bench, C_GetMechanismList, 0, &mut 0, &mut 1),
        CKR_BUFFER_TOO_SMALL,
    ),
    (
        "unknown mechanism",
        |t| call!(t.bench, C_GetMechanismInfo, 0, CKM_AES_CBC, &mut CK_MECHANISM_INFO::default()),
        CKR_MECHANISM_INVALID,
    ),
    (
        "no slot event",
        |t| call!(t.bench, C_WaitForSlotEvent, CKF_DONT_BLOCK, &mut 0, ptr::null_mut()),
        CKR_NO_EVENT,
    ),
    (
        "session with no slot",
        |t| call!(t.bench, C_OpenSession, 9, CKF_SERIAL_SESSION, ptr::null_mut(), None, &mut 0),
        CKR_SLOT_ID_INVALID,
    ),
    (
        "parallel session",
        |t| call!(t.bench, C_OpenSession, 0, 0, ptr::null_mut(), None, &mut 0),
        CKR_SESSION_PARALLEL_NOT_SUPPORTED,
    ),
    (
        "session to nowhere",
        |t| {
            call!(
                t.bench,
                C_OpenSession,
                0,
                CKF_SERIAL_SESSION,
                ptr::null_mut(),
                None,
                ptr::null_mut()
            )
        },
        CKR_ARGUMENTS_BAD,
    ),
    ("close no session", |t| call!(t.bench, C_CloseSession, NO_HANDLE), CKR_SESSION_HANDLE_INVALID),
    ("close all of no slot", |t| call!(t.bench, C_CloseAllSessions, 9), CKR_SLOT_ID_INVALID),
    (
        "info of no session",
        |t| call!(t.bench, C_GetSessionInfo, NO_HANDLE, &mut CK_SESSION_INFO::default()),
        CKR_SESSION_HANDLE_INVALID,
    ),
    (
        "session info to nowhere",
        |t| call!(t.bench, C_GetSessionInfo, t.session, ptr::null_mut()),
        CKR_ARGUMENTS_BAD,
    ),
    ("login in no session", |t| t.bench.login(NO_HANDLE, "1234"), CKR_SESSION_HANDLE_INVALID),
    (
        "login as nobody",
        |t| call!(t.bench, C_Login, t.session, 7, ptr::null_mut(), 0),
        CKR_USER_TYPE_INVALID,
    ),
    (
        "login again for an operation",
        |t| call!(t.bench, C_Login, t.session, CKU_CONTEXT_SPECIFIC, ptr::null_mut(), 0),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    ("login twice", |t| t.bench.login(t.session, "1234"), CKR_USER_ALREADY_LOGGED_IN),
    ("logout of no session", |t| call!(t.bench, C_Logout, NO_HANDLE), CKR_SESSION_HANDLE_INVALID),
    (
        "function status",
        |t| call!(t.bench, C_GetFunctionStatus, t.session),
        CKR_FUNCTION_NOT_PARALLEL,
    ),
    ("cancel function", |t| call!(t.bench, C_CancelFunction, t.session), CKR_FUNCTION_NOT_PARALLEL),
    (
        "no such function",
        |t| call!(t.bench, C_EncryptInit, t.session, ptr::null_mut(), 0),
        CKR_FUNCTION_NOT_SUPPORTED,
    ),
    (
        "seed",
        |t| call!(t.bench, C_SeedRandom, t.session, [0].as_mut_ptr(), 1),
        CKR_RANDOM_SEED_NOT_SUPPORTED,
    ),
    (
        "random to nowhere",
        |t| call!(t.bench, C_GenerateRandom, t.session, ptr::null_mut(), 1),
        CKR_ARGUMENTS_BAD,
    ),
];
