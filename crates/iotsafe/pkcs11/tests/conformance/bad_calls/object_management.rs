// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects and their attributes (PKCS#11 2.40 section 5.7).

use std::ptr;

use cryptoki_sys::*;

use super::{NO_HANDLE, Row, SECP256R1, SECP384R1};
use crate::bench::{bytes, number};

pub(super) const ROWS: &[Row] = &[
    (
        "find without init",
        |t| call!(t.bench, C_FindObjects, t.session, &mut 0, 1, &mut 0),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "find end without init",
        |t| call!(t.bench, C_FindObjectsFinal, t.session),
        CKR_OPERATION_NOT_INITIALIZED,
    ),
    (
        "find, invalid session",
        |t| call!(t.bench, C_FindObjectsInit, NO_HANDLE, ptr::null_mut(), 0),
        CKR_SESSION_HANDLE_INVALID,
    ),
    (
        "find, null template",
        |t| call!(t.bench, C_FindObjectsInit, t.session, ptr::null_mut(), 1),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "find twice",
        |t| {
            assert_eq!(call!(t.bench, C_FindObjectsInit, t.session, ptr::null_mut(), 0), CKR_OK);
            call!(t.bench, C_FindObjectsInit, t.session, ptr::null_mut(), 0)
        },
        CKR_OPERATION_ACTIVE,
    ),
    (
        "get attribute, invalid object",
        |t| t.bench.get(t.session, NO_HANDLE, CKA_ID).unwrap_err(),
        CKR_OBJECT_HANDLE_INVALID,
    ),
    (
        "get attribute, null template",
        |t| call!(t.bench, C_GetAttributeValue, t.session, t.private, ptr::null_mut(), 1),
        CKR_ARGUMENTS_BAD,
    ),
    (
        "object size, invalid object",
        |t| call!(t.bench, C_GetObjectSize, t.session, NO_HANDLE, &mut 0),
        CKR_OBJECT_HANDLE_INVALID,
    ),
    (
        "destroy, invalid object",
        |t| call!(t.bench, C_DestroyObject, t.rw, NO_HANDLE),
        CKR_OBJECT_HANDLE_INVALID,
    ),
    (
        "destroy, read-only session",
        |t| call!(t.bench, C_DestroyObject, t.session, t.private),
        CKR_SESSION_READ_ONLY,
    ),
    (
        "destroy, token object",
        |t| call!(t.bench, C_DestroyObject, t.rw, t.private),
        CKR_ACTION_PROHIBITED,
    ),
    (
        "set attribute, token object",
        |t| {
            call!(
                t.bench,
                C_SetAttributeValue,
                t.rw,
                t.private,
                [bytes(CKA_LABEL, &mut [1])].as_mut_ptr(),
                1
            )
        },
        CKR_ACTION_PROHIBITED,
    ),
    (
        "set attribute, read-only session",
        |t| {
            call!(
                t.bench,
                C_SetAttributeValue,
                t.session,
                t.private,
                [bytes(CKA_LABEL, &mut [1])].as_mut_ptr(),
                1
            )
        },
        CKR_SESSION_READ_ONLY,
    ),
    (
        "copy",
        |t| call!(t.bench, C_CopyObject, t.rw, t.public, ptr::null_mut(), 0, &mut 0),
        CKR_ACTION_PROHIBITED,
    ),
    (
        "create without class",
        |t| t.create(true, &mut [bytes(CKA_LABEL, &mut [1])]),
        CKR_TEMPLATE_INCOMPLETE,
    ),
    (
        "create token object, read-only session",
        |t| {
            t.create(
                false,
                &mut [number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }), bytes(CKA_TOKEN, &mut [1])],
            )
        },
        CKR_SESSION_READ_ONLY,
    ),
    (
        "create token object",
        |t| {
            t.create(
                true,
                &mut [number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }), bytes(CKA_TOKEN, &mut [1])],
            )
        },
        CKR_TOKEN_WRITE_PROTECTED,
    ),
    (
        "create a private key",
        |t| t.create(true, &mut [number(CKA_CLASS, &mut { CKO_PRIVATE_KEY })]),
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "create, class of one byte",
        |t| t.create(true, &mut [bytes(CKA_CLASS, &mut [1])]),
        CKR_ATTRIBUTE_VALUE_INVALID,
    ),
    (
        "create, two classes",
        |t| t.create(true, &mut [number(CKA_CLASS, &mut 1), number(CKA_CLASS, &mut 2)]),
        CKR_TEMPLATE_INCONSISTENT,
    ),
    (
        "create a public key without point",
        |t| {
            t.create(
                true,
                &mut [
                    number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }),
                    number(CKA_KEY_TYPE, &mut { CKK_EC }),
                    bytes(CKA_EC_PARAMS, &mut { SECP256R1 }),
                ],
            )
        },
        CKR_TEMPLATE_INCOMPLETE,
    ),
    (
        "create a public key off its curve",
        |t| {
            t.create(
                true,
                &mut [
                    number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }),
                    number(CKA_KEY_TYPE, &mut { CKK_EC }),
                    bytes(CKA_EC_PARAMS, &mut { SECP256R1 }),
                    bytes(CKA_EC_POINT, &mut [4; 65]),
                ],
            )
        },
        CKR_ATTRIBUTE_VALUE_INVALID,
    ),
    (
        "create a public key of another curve",
        |t| {
            t.create(
                true,
                &mut [
                    number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }),
                    number(CKA_KEY_TYPE, &mut { CKK_EC }),
                    bytes(CKA_EC_PARAMS, &mut { SECP384R1 }),
                    bytes(CKA_EC_POINT, &mut [4; 97]),
                ],
            )
        },
        CKR_CURVE_NOT_SUPPORTED,
    ),
    (
        "create a public key with a modulus",
        |t| {
            t.create(
                true,
                &mut [
                    number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }),
                    number(CKA_KEY_TYPE, &mut { CKK_EC }),
                    bytes(CKA_MODULUS, &mut [1]),
                ],
            )
        },
        CKR_ATTRIBUTE_TYPE_INVALID,
    ),
    (
        "create a trusted public key",
        |t| {
            t.create(
                true,
                &mut [
                    number(CKA_CLASS, &mut { CKO_PUBLIC_KEY }),
                    number(CKA_KEY_TYPE, &mut { CKK_EC }),
                    bytes(CKA_TRUSTED, &mut [1]),
                ],
            )
        },
        CKR_ATTRIBUTE_READ_ONLY,
    ),
];
