// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signing and verifying (PKCS#11 2.40 sections 5.11 and 5.12).

use std::ptr;
use std::thread;

use cryptoki_sys::*;
use warifu_card::crypto::{Curve, Hash};

use crate::bench::{Bench, mechanism};
use crate::sign_verify::{sign, verify};

#[test]
fn sign_and_verify_with_every_mechanism() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    for id in [1, 9] {
        let private = bench.one(session, CKO_PRIVATE_KEY, id);
        let public = bench.one(session, CKO_PUBLIC_KEY, id);
        for kind in [CKM_ECDSA_SHA1, CKM_ECDSA_SHA256, CKM_ECDSA_SHA384, CKM_ECDSA_SHA512] {
            for text in [&b""[..], b"tally", &[7; 5000]] {
                let signature = sign(&bench, session, kind, private, text).unwrap();
                assert_eq!(verify(&bench, session, kind, public, text, &signature), CKR_OK);
                let other = verify(&bench, session, kind, public, b"other", &signature);
                assert_eq!(other, CKR_SIGNATURE_INVALID);
            }
        }
        for length in [1, 7, 20, 31, 32, 33, 48, 64, 100] {
            let hash = vec![0x5a; length];
            let signature = sign(&bench, session, CKM_ECDSA, private, &hash).unwrap();
            assert_eq!(verify(&bench, session, CKM_ECDSA, public, &hash, &signature), CKR_OK);
        }
    }
}

#[test]
fn signature_verified_by_another_implementation() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    let private = bench.one(session, CKO_PRIVATE_KEY, 1);
    let public = bench.one(session, CKO_PUBLIC_KEY, 1);
    let point = bench.get(session, public, CKA_EC_POINT).unwrap();
    let point = Curve::Secp256r1.point(&point[2..]).unwrap();
    let by_hash =
        sign(&bench, session, CKM_ECDSA, private, &Hash::Sha384.digest(b"tally")).unwrap();
    let by_text = sign(&bench, session, CKM_ECDSA_SHA384, private, b"tally").unwrap();
    for signature in [by_hash, by_text] {
        assert!(point.verify(&Hash::Sha384.digest(b"tally"), &signature));
    }
}

#[test]
fn multi_part_signature_and_verification() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    let private = bench.one(session, CKO_PRIVATE_KEY, 1);
    let public = bench.one(session, CKO_PUBLIC_KEY, 1);
    let part = |text: &'static [u8]| (text.as_ptr().cast_mut(), text.len() as CK_ULONG);
    for kind in [CKM_ECDSA, CKM_ECDSA_SHA256] {
        let mut mechanism = mechanism(kind);
        assert_eq!(call!(bench, C_SignInit, session, &mut mechanism, private), CKR_OK);
        for text in [&b"ta"[..], b"l", b"ly"] {
            let (data, length) = part(text);
            assert_eq!(call!(bench, C_SignUpdate, session, data, length), CKR_OK);
        }
        let (mut signature, mut length) = ([0; 64], 0);
        assert_eq!(call!(bench, C_SignFinal, session, ptr::null_mut(), &mut length), CKR_OK);
        assert_eq!(length, 64);
        length = 63;
        let place = signature.as_mut_ptr();
        assert_eq!(call!(bench, C_SignFinal, session, place, &mut length), CKR_BUFFER_TOO_SMALL);
        assert_eq!(call!(bench, C_SignFinal, session, place, &mut length), CKR_OK);
        assert_eq!(verify(&bench, session, kind, public, b"tally", &signature), CKR_OK);
        assert_eq!(call!(bench, C_VerifyInit, session, &mut mechanism, public), CKR_OK);
        let (data, rest) = (part(b"tal"), part(b"ly"));
        assert_eq!(call!(bench, C_VerifyUpdate, session, data.0, data.1), CKR_OK);
        assert_eq!(call!(bench, C_VerifyUpdate, session, rest.0, rest.1), CKR_OK);
        assert_eq!(call!(bench, C_VerifyFinal, session, place, 64), CKR_OK);
    }
}

#[test]
fn concurrent_signatures() {
    let bench = Bench::new(None);
    let first = bench.open(0);
    let key = bench.one(first, CKO_PRIVATE_KEY, 1);
    let public = bench.one(first, CKO_PUBLIC_KEY, 1);
    thread::scope(|scope| {
        for number in 0..4_u8 {
            let bench = &bench;
            scope.spawn(move || {
                let session = bench.open(0);
                for round in 0..8 {
                    let text = [number, round];
                    let signature = sign(bench, session, CKM_ECDSA_SHA256, key, &text).unwrap();
                    let rv = verify(bench, session, CKM_ECDSA_SHA256, public, &text, &signature);
                    assert_eq!(rv, CKR_OK);
                }
                assert_eq!(call!(bench, C_CloseSession, session), CKR_OK);
            });
        }
    });
}
