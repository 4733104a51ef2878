// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Session management (PKCS#11 2.40 section 5.6).

use std::ptr;

use cryptoki_sys::*;

use super::{NO_HANDLE, Row};

pub(super) const ROWS: &[Row] = &[
    (
        "open session, invalid slot",
        |t| call!(t.bench, C_OpenSession, 9, CKF_SERIAL_SESSION, ptr::null_mut(), None, &mut 0),
        CKR_SLOT_ID_INVALID,
    ),
    (
        "open session, parallel",
        |t| call!(t.bench, C_OpenSession, 0, 0, ptr::null_mut(), None, &mut 0),
        CKR_SESSION_PARALLEL_NOT_SUPPORTED,
    ),
    (
        "open session, null pointer",
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
    (
        "close session, invalid handle",
        |t| call!(t.bench, C_CloseSession, NO_HANDLE),
        CKR_SESSION_HANDLE_INVALID,
    ),
    (
        "close all sessions, invalid slot",
        |t| call!(t.bench, C_CloseAllSessions, 9),
        CKR_SLOT_ID_INVALID,
    ),
    (
        "session info, invalid handle",
        |t| call!(t.bench, C_GetSessionInfo, NO_HANDLE, &mut CK_SESSION_INFO::default()),
        CKR_SESSION_HANDLE_INVALID,
    ),
    (
        "session info, null pointer",
        |t| call!(t.bench, C_GetSessionInfo, t.session, ptr::null_mut()),
        CKR_ARGUMENTS_BAD,
    ),
    ("login, invalid session", |t| t.bench.login(NO_HANDLE, "1234"), CKR_SESSION_HANDLE_INVALID),
    (
        "login, invalid user type",
        |t| call!(t.bench, C_Login, t.session, 7, ptr::null_mut(), 0),
        CKR_USER_TYPE_INVALID,
    ),
    (
        "login, context-specific without operation",
        |t| call!(t.bench, C_Login, t.session, CKU_CONTEXT_SPECIFIC, ptr::null_mut(), 0),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    ("login twice", |t| t.bench.login(t.session, "1234"), CKR_USER_ALREADY_LOGGED_IN),
    (
        "logout, invalid session",
        |t| call!(t.bench, C_Logout, NO_HANDLE),
        CKR_SESSION_HANDLE_INVALID,
    ),
];
