// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Object management (PKCS#11 2.40 section 5.7).

use std::ptr;

use cryptoki_sys::*;

use crate::bench::{Bench, bytes, mechanism};
use crate::key_management::generate;
use crate::sign_verify::{sign, verify};

const SECP256R1: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

#[test]
fn key_pair_and_certificate_share_an_id() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    let public = bench.one(session, CKO_PUBLIC_KEY, 1);
    let private = bench.one(session, CKO_PRIVATE_KEY, 1);
    let certificate = bench.one(session, CKO_CERTIFICATE, 1);
    let get = |object, kind| bench.get(session, object, kind);
    let point = get(public, CKA_EC_POINT).unwrap();
    assert_eq!((point.len(), &point[..3]), (67, &[4, 65, 4][..]));
    assert_eq!(get(private, CKA_EC_PARAMS).unwrap(), SECP256R1);
    assert_eq!(get(private, CKA_VALUE), Err(CKR_ATTRIBUTE_SENSITIVE));
    assert_eq!(get(private, CKA_MODULUS), Err(CKR_ATTRIBUTE_TYPE_INVALID));
    assert_eq!(get(certificate, CKA_SERIAL_NUMBER).unwrap(), [2, 3, 0, 0x80, 1]);
    let subject = get(certificate, CKA_SUBJECT).unwrap();
    assert_eq!(get(private, CKA_SUBJECT).unwrap(), subject);
    assert_ne!(get(certificate, CKA_ISSUER).unwrap(), subject);
    assert_eq!(get(certificate, CKA_START_DATE).unwrap(), b"20260102");
    assert_eq!(get(certificate, CKA_PUBLIC_KEY_INFO), get(public, CKA_PUBLIC_KEY_INFO));
    // Two key pairs and a certificate, and no empty containers.
    assert_eq!(bench.find(session, &mut []).len(), 5);
}

#[test]
fn get_attribute_value_lengths_and_errors() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    let private = bench.one(session, CKO_PRIVATE_KEY, 1);
    let (mut label, mut short) = ([0_u8; 16], [0_u8; 2]);
    let null = |type_| CK_ATTRIBUTE { type_, pValue: ptr::null_mut(), ulValueLen: 7 };
    let mut attributes = [
        null(CKA_LABEL),
        bytes(CKA_LABEL, &mut label),
        bytes(CKA_LABEL, &mut short),
        null(CKA_VALUE),
        null(CKA_MODULUS),
    ];
    let count = attributes.len() as CK_ULONG;
    let get = |attributes: &mut [CK_ATTRIBUTE], count| {
        call!(bench, C_GetAttributeValue, session, private, attributes.as_mut_ptr(), count)
    };
    let rv = get(&mut attributes, count);
    let named = [CKR_BUFFER_TOO_SMALL, CKR_ATTRIBUTE_SENSITIVE, CKR_ATTRIBUTE_TYPE_INVALID];
    assert!(named.contains(&rv));
    let lengths: Vec<CK_ULONG> = attributes.iter().map(|attribute| attribute.ulValueLen).collect();
    let none = CK_UNAVAILABLE_INFORMATION;
    assert_eq!(lengths, [6, 6, none, none, none]);
    assert_eq!((&label[..6], short), (&b"client"[..], [0, 0]));
    for (kind, rv) in [
        (CKA_VALUE, CKR_ATTRIBUTE_SENSITIVE),
        (CKA_MODULUS, CKR_ATTRIBUTE_TYPE_INVALID),
        (CKA_LABEL, CKR_OK),
    ] {
        assert_eq!(get(&mut [null(kind)], 1), rv);
    }
    assert_eq!(get(&mut [bytes(CKA_LABEL, &mut [0; 2])], 1), CKR_BUFFER_TOO_SMALL);
}

#[test]
fn destroyed_key_cannot_sign() {
    let bench = Bench::new(None);
    let session = bench.open(CKF_RW_SESSION);
    let (public, private) = generate(&bench, session, true).unwrap();
    let point = bench.get(session, public, CKA_EC_POINT).unwrap();
    assert_eq!(bench.get(session, private, CKA_DESTROYABLE).unwrap(), [CK_TRUE]);
    assert_eq!(call!(bench, C_DestroyObject, session, public), CKR_ACTION_PROHIBITED);
    // Another session has begun a signature with it.
    let other = bench.open(0);
    let mut mechanism = mechanism(CKM_ECDSA_SHA256);
    assert_eq!(call!(bench, C_SignInit, other, &mut mechanism, private), CKR_OK);
    assert_eq!(call!(bench, C_DestroyObject, session, private), CKR_OK);
    let (mut signature, mut length) = ([0; 64], 64);
    let text = b"text".as_ptr().cast_mut();
    let rv = call!(bench, C_Sign, other, text, 4, signature.as_mut_ptr(), &mut length);
    assert_eq!(rv, CKR_OPERATION_NOT_INITIALIZED);
    assert_eq!(call!(bench, C_DestroyObject, session, public), CKR_OK);
    assert_eq!(call!(bench, C_DestroyObject, session, public), CKR_OBJECT_HANDLE_INVALID);
    let mut id = [8];
    assert!(bench.find(session, &mut [bytes(CKA_ID, &mut id)]).is_empty());
    let on_card = *bench.world.card.lock().unwrap().0.export_public_key(&[8]).unwrap().bytes();
    assert_ne!(on_card, point[2..], "the card has another key in the container");
    // The container is free.
    let (public, private) = generate(&bench, session, true).unwrap();
    let signature = sign(&bench, session, CKM_ECDSA_SHA256, private, b"new").unwrap();
    assert_eq!(verify(&bench, session, CKM_ECDSA_SHA256, public, b"new", &signature), CKR_OK);
}
