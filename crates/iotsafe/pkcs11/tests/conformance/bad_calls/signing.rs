// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signing (PKCS#11 2.40 section 5.11).

use std::ptr;

use cryptoki_sys::*;

use super::{NO_HANDLE, Row};
use crate::bench::mechanism;

pub(super) const ROWS: &[Row] = &[
    (
        "sign without mechanism",
        |t| call!(t.bench, C_SignInit, t.session, ptr::null_mut(), t.private),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "sign, unsupported mechanism",
        |t| t.sign_init(CKM_SHA256_RSA_PKCS, t.private),
        CKR_MECHANISM_INVALID,
    ),
    ("sign, digest mechanism", |t| t.sign_init(CKM_SHA256, t.private), CKR_MECHANISM_INVALID),
    (
        "sign with a parameter",
        |t| {
            let mut mechanism = CK_MECHANISM {
                pParameter: [1_u8].as_mut_ptr().cast(),
                ulParameterLen: 1,
                ..mechanism(CKM_ECDSA)
            };
            call!(t.bench, C_SignInit, t.session, &mut mechanism, t.private)
        },
        CKR_MECHANISM_PARAM_INVALID,
    ),
    ("sign, invalid key", |t| t.sign_init(CKM_ECDSA, NO_HANDLE), CKR_KEY_HANDLE_INVALID),
    ("sign with a public key", |t| t.sign_init(CKM_ECDSA, t.public), CKR_KEY_TYPE_INCONSISTENT),
    (
        "sign with a certificate",
        |t| t.sign_init(CKM_ECDSA, t.certificate),
        CKR_KEY_TYPE_INCONSISTENT,
    ),
    ("sign without init", |t| t.sign(&mut [0; 64], b"x"), CKR_OPERATION_NOT_INITIALIZED),
    (
        "sign twice",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            t.sign_init(CKM_ECDSA, t.private)
        },
        CKR_OPERATION_ACTIVE,
    ),
    (
        "sign, empty digest",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            t.sign(&mut [0; 64], b"")
        },
        CKR_DATA_LEN_RANGE,
    ),
    (
        "sign, buffer too small",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            t.sign(&mut [0; 63], b"x")
        },
        CKR_BUFFER_TOO_SMALL,
    ),
    (
        "sign again after buffer too small",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            t.sign(&mut [0; 63], b"x");
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OK,
    ),
    (
        "sign again after a signature",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            assert_eq!(t.sign(&mut [0; 64], b"x"), CKR_OK);
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "sign again after bad arguments",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            let rv = call!(
                t.bench,
                C_Sign,
                t.session,
                ptr::null_mut(),
                1,
                ptr::null_mut(),
                ptr::null_mut()
            );
            assert_eq!(rv, CKR_ARGUMENTS_BAD);
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "C_Sign after C_SignUpdate",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA_SHA256, t.private), CKR_OK);
            assert_eq!(call!(t.bench, C_SignUpdate, t.session, ptr::null_mut(), 0), CKR_OK);
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "sign after a null mechanism",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            call!(t.bench, C_SignInit, t.session, ptr::null_mut(), 0)
        },
        CKR_OK,
    ),
    (
        "sign after C_SessionCancel",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            assert_eq!(call!(t.bench, C_SessionCancel, t.session, CKF_SIGN), CKR_OK);
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "update without init",
        |t| call!(t.bench, C_SignUpdate, t.session, ptr::null_mut(), 0),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "final without init",
        |t| call!(t.bench, C_SignFinal, t.session, ptr::null_mut(), &mut 0),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
];
