// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Making and deriving keys (PKCS#11 2.40 section 5.13).

use std::ptr;

use cryptoki_sys::*;

use super::{NO_HANDLE, Row, SECP256R1, SECP384R1};
use crate::bench::{bytes, mechanism, number};

pub(super) const ROWS: &[Row] = &[
    ("generate without curve", |t| t.generate(true, &mut [], &mut []), CKR_TEMPLATE_INCOMPLETE),
    (
        "generate on another curve",
        |t| t.generate(true, &mut [bytes(CKA_EC_PARAMS, &mut { SECP384R1 })], &mut []),
        CKR_CURVE_NOT_SUPPORTED,
    ),
    (
        "generate for RSA",
        |t| {
            t.generate(
                true,
                &mut [
                    bytes(CKA_EC_PARAMS, &mut { SECP256R1 }),
                    number(CKA_KEY_TYPE, &mut { CKK_RSA }),
                ],
                &mut [],
            )
        },
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "generate two private keys",
        |t| {
            t.generate(
                true,
                &mut [
                    bytes(CKA_EC_PARAMS, &mut { SECP256R1 }),
                    number(CKA_CLASS, &mut { CKO_PRIVATE_KEY }),
                ],
                &mut [],
            )
        },
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "generate, extractable",
        |t| {
            t.generate(
                true,
                &mut [bytes(CKA_EC_PARAMS, &mut { SECP256R1 })],
                &mut [bytes(CKA_EXTRACTABLE, &mut [1])],
            )
        },
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "generate, invalid boolean",
        |t| {
            t.generate(
                true,
                &mut [bytes(CKA_EC_PARAMS, &mut { SECP256R1 })],
                &mut [bytes(CKA_SENSITIVE, &mut [2])],
            )
        },
        CKR_ATTRIBUTE_VALUE_INVALID,
    ),
    (
        "generate, CKA_TOKEN of only one key",
        |t| {
            t.generate(
                true,
                &mut [bytes(CKA_EC_PARAMS, &mut { SECP256R1 }), bytes(CKA_TOKEN, &mut [1])],
                &mut [bytes(CKA_TOKEN, &mut [0])],
            )
        },
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "generate token objects, read-only session",
        |t| {
            t.generate(
                false,
                &mut [bytes(CKA_EC_PARAMS, &mut { SECP256R1 }), bytes(CKA_TOKEN, &mut [1])],
                &mut [],
            )
        },
        CKR_SESSION_READ_ONLY,
    ),
    (
        "generate, no such container",
        |t| {
            t.generate(
                true,
                &mut [
                    bytes(CKA_EC_PARAMS, &mut { SECP256R1 }),
                    bytes(CKA_TOKEN, &mut [1]),
                    bytes(CKA_ID, &mut [0x55]),
                ],
                &mut [],
            )
        },
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "generate with a value",
        |t| {
            t.generate(
                true,
                &mut [bytes(CKA_EC_PARAMS, &mut { SECP256R1 })],
                &mut [bytes(CKA_VALUE, &mut [1])],
            )
        },
        CKR_ATTRIBUTE_TYPE_INVALID,
    ),
    (
        "derive, unsupported KDF",
        |t| t.derive(CKD_SHA256_KDF, &mut [4; 65], t.private),
        CKR_MECHANISM_PARAM_INVALID,
    ),
    (
        "derive, malformed point",
        |t| t.derive(CKD_NULL, &mut [4; 10], t.private),
        CKR_MECHANISM_PARAM_INVALID,
    ),
    (
        "derive, point not on the curve",
        |t| t.derive(CKD_NULL, &mut [4; 65], t.private),
        CKR_MECHANISM_PARAM_INVALID,
    ),
    (
        "derive from a public key",
        |t| t.derive(CKD_NULL, &mut [4; 65], t.public),
        CKR_KEY_TYPE_INCONSISTENT,
    ),
    (
        "derive, invalid key",
        |t| t.derive(CKD_NULL, &mut [4; 65], NO_HANDLE),
        CKR_KEY_HANDLE_INVALID,
    ),
    (
        "derive without parameter",
        |t| {
            call!(
                t.bench,
                C_DeriveKey,
                t.session,
                &mut mechanism(CKM_ECDH1_DERIVE),
                t.private,
                ptr::null_mut(),
                0,
                &mut 0
            )
        },
        CKR_MECHANISM_PARAM_INVALID,
    ),
];
