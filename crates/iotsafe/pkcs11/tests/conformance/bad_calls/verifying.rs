// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Verifying (PKCS#11 2.40 section 5.12).

use cryptoki_sys::*;

use super::{NO_HANDLE, Row};

pub(super) const ROWS: &[Row] = &[
    (
        "verify with a private key",
        |t| t.verify_init(CKM_ECDSA, t.private),
        CKR_KEY_TYPE_INCONSISTENT,
    ),
    ("verify, invalid key", |t| t.verify_init(CKM_ECDSA, NO_HANDLE), CKR_KEY_HANDLE_INVALID),
    (
        "verify, short signature",
        |t| {
            assert_eq!(t.verify_init(CKM_ECDSA, t.public), CKR_OK);
            call!(t.bench, C_Verify, t.session, [1].as_mut_ptr(), 1, [0; 64].as_mut_ptr(), 63)
        },
        CKR_SIGNATURE_LEN_RANGE,
    ),
    (
        "verify, signature of zeros",
        |t| {
            assert_eq!(t.verify_init(CKM_ECDSA, t.public), CKR_OK);
            call!(t.bench, C_Verify, t.session, [1].as_mut_ptr(), 1, [0; 64].as_mut_ptr(), 64)
        },
        CKR_SIGNATURE_INVALID,
    ),
];
