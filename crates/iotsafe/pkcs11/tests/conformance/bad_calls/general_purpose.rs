// SPDX-License-Identifier: Apache-2.0 OR MIT
//! General-purpose, random number and legacy functions, and functions that are not supported
//! (PKCS#11 2.40 sections 5.4, 5.15 and 5.16).

use std::ptr;

use cryptoki_sys::*;

use super::Row;

pub(super) const ROWS: &[Row] = &[
    (
        "library info, null pointer",
        |t| call!(t.bench, C_GetInfo, ptr::null_mut()),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "unsupported function",
        |t| call!(t.bench, C_EncryptInit, t.session, ptr::null_mut(), 0),
        CKR_FUNCTION_NOT_SUPPORTED,
    ),
    (
        "function status",
        |t| call!(t.bench, C_GetFunctionStatus, t.session),
        CKR_FUNCTION_NOT_PARALLEL,
    ),
    ("cancel function", |t| call!(t.bench, C_CancelFunction, t.session), CKR_FUNCTION_NOT_PARALLEL),
    (
        "seed random",
        |t| call!(t.bench, C_SeedRandom, t.session, [0].as_mut_ptr(), 1),
        CKR_RANDOM_SEED_NOT_SUPPORTED,
    ),
    (
        "generate random, null pointer",
        |t| call!(t.bench, C_GenerateRandom, t.session, ptr::null_mut(), 1),
        CKR_ARGUMENTS_BAD,
    ),
];
