// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Message digesting (PKCS#11 2.40 section 5.10).

use std::ptr;

use cryptoki_sys::*;

use super::Row;
use crate::bench::mechanism;

pub(super) const ROWS: &[Row] = &[
    (
        "digest, signature mechanism",
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
