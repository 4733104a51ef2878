// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signing, verifying and hashing (PKCS#11 2.40 sections 5.10 to 5.12).

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
        "sign with no mechanism of ours",
        |t| t.sign_init(CKM_SHA256_RSA_PKCS, t.private),
        CKR_MECHANISM_INVALID,
    ),
    (
        "sign with a digest's mechanism",
        |t| t.sign_init(CKM_SHA256, t.private),
        CKR_MECHANISM_INVALID,
    ),
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
    ("sign with no key", |t| t.sign_init(CKM_ECDSA, NO_HANDLE), CKR_KEY_HANDLE_INVALID),
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
        "sign nothing",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            t.sign(&mut [0; 64], b"")
        },
        CKR_DATA_LEN_RANGE,
    ),
    (
        "sign into too little",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            t.sign(&mut [0; 63], b"x")
        },
        CKR_BUFFER_TOO_SMALL,
    ),
    (
        "too little ends nothing",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            t.sign(&mut [0; 63], b"x");
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OK,
    ),
    (
        "a signature ends",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            assert_eq!(t.sign(&mut [0; 64], b"x"), CKR_OK);
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "bad arguments end a signature",
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
        "one part ends what parts began",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA_SHA256, t.private), CKR_OK);
            assert_eq!(call!(t.bench, C_SignUpdate, t.session, ptr::null_mut(), 0), CKR_OK);
            t.sign(&mut [0; 64], b"x")
        },
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "a null mechanism cancels",
        |t| {
            assert_eq!(t.sign_init(CKM_ECDSA, t.private), CKR_OK);
            call!(t.bench, C_SignInit, t.session, ptr::null_mut(), 0)
        },
        CKR_OK,
    ),
    (
        "cancel all",
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
    (
        "verify with a private key",
        |t| t.verify_init(CKM_ECDSA, t.private),
        CKR_KEY_TYPE_INCONSISTENT,
    ),
    ("verify with no key", |t| t.verify_init(CKM_ECDSA, NO_HANDLE), CKR_KEY_HANDLE_INVALID),
    (
        "verify a short signature",
        |t| {
            assert_eq!(t.verify_init(CKM_ECDSA, t.public), CKR_OK);
            call!(t.bench, C_Verify, t.session, [1].as_mut_ptr(), 1, [0; 64].as_mut_ptr(), 63)
        },
        CKR_SIGNATURE_LEN_RANGE,
    ),
    (
        "verify zeros",
        |t| {
            assert_eq!(t.verify_init(CKM_ECDSA, t.public), CKR_OK);
            call!(t.bench, C_Verify, t.session, [1].as_mut_ptr(), 1, [0; 64].as_mut_ptr(), 64)
        },
        CKR_SIGNATURE_INVALID,
    ),
    (
        "digest with a signature's mechanism",
        |t| call!(t.bench, C_DigestInit, t.session, &mut mechanism(CKM_ECDSA)),
        CKR_MECHANISM_INVALID,
    ),
    (
        "digest without init",
        |t| call!(t.bench, C_Digest, t.session, ptr::null_mut(), 0, ptr::null_mut(), &mut 0),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "digest a private key",
        |t| {
            assert_eq!(call!(t.bench, C_DigestInit, t.session, &mut mechanism(CKM_SHA256)), CKR_OK);
            call!(t.bench, C_DigestKey, t.session, t.private)
        },
        CKR_KEY_INDIGESTIBLE,
    ),
];
