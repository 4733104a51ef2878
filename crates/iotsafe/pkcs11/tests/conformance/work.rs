// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a program does: find, read, sign, verify, derive, generate, log in, lose the card.

use std::ptr;
use std::sync::atomic::Ordering;
use std::thread;

use cryptoki_sys::*;
use warifu_card::PinScope;
use warifu_card::crypto::{Curve, Hash};

use crate::bench::{Bench, PIN, bytes, mechanism, number};

const SECP256R1: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

/// Signs in one call.
pub fn sign(
    bench: &Bench,
    session: CK_SESSION_HANDLE,
    kind: CK_MECHANISM_TYPE,
    key: CK_OBJECT_HANDLE,
    data: &[u8],
) -> Result<[u8; 64], CK_RV> {
    let mut mechanism = mechanism(kind);
    match call!(bench, C_SignInit, session, &mut mechanism, key) {
        CKR_OK => {}
        rv => return Err(rv),
    }
    let (mut signature, mut length) = ([0; 64], 64);
    let data = (data.as_ptr().cast_mut(), data.len() as CK_ULONG);
    match call!(bench, C_Sign, session, data.0, data.1, signature.as_mut_ptr(), &mut length) {
        CKR_OK => Ok(signature),
        rv => Err(rv),
    }
}

/// Verifies in one call.
pub fn verify(
    bench: &Bench,
    session: CK_SESSION_HANDLE,
    kind: CK_MECHANISM_TYPE,
    key: CK_OBJECT_HANDLE,
    data: &[u8],
    signature: &[u8],
) -> CK_RV {
    let mut mechanism = mechanism(kind);
    assert_eq!(call!(bench, C_VerifyInit, session, &mut mechanism, key), CKR_OK);
    let data = (data.as_ptr().cast_mut(), data.len() as CK_ULONG);
    let signature = (signature.as_ptr().cast_mut(), signature.len() as CK_ULONG);
    call!(bench, C_Verify, session, data.0, data.1, signature.0, signature.1)
}

#[test]
fn a_key_its_public_half_and_its_certificate_share_an_id() {
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
    // Two keys with their public halves, a certificate, and nothing of empty places.
    assert_eq!(bench.find(session, &mut []).len(), 5);
}

#[test]
fn attributes_follow_the_rules_of_c_get_attribute_value() {
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
fn every_mechanism_signs_what_its_public_key_verifies() {
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
fn signatures_are_what_others_verify() {
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
fn parts_are_one_text() {
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
fn digests_are_those_of_the_standard() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    for (kind, hash) in
        [(CKM_SHA256, Hash::Sha256), (CKM_SHA384, Hash::Sha384), (CKM_SHA512, Hash::Sha512)]
    {
        let (mut digest, mut length) = ([0; 64], 64);
        let data = b"tally".as_ptr().cast_mut();
        assert_eq!(call!(bench, C_DigestInit, session, &mut mechanism(kind)), CKR_OK);
        assert_eq!(
            call!(bench, C_Digest, session, data, 5, digest.as_mut_ptr(), &mut length),
            CKR_OK
        );
        assert_eq!(digest[..length as usize], hash.digest(b"tally"));
        assert_eq!(call!(bench, C_DigestInit, session, &mut mechanism(kind)), CKR_OK);
        assert_eq!(call!(bench, C_DigestUpdate, session, data, 5), CKR_OK);
        digest = [0; 64];
        length = 64;
        assert_eq!(call!(bench, C_DigestFinal, session, digest.as_mut_ptr(), &mut length), CKR_OK);
        assert_eq!(digest[..length as usize], hash.digest(b"tally"));
    }
}

/// Generates a pair; the token's if `on_token`.
fn generate(
    bench: &Bench,
    session: CK_SESSION_HANDLE,
    on_token: bool,
) -> Result<(CK_OBJECT_HANDLE, CK_OBJECT_HANDLE), CK_RV> {
    let (mut params, mut flag) = (SECP256R1, [u8::from(on_token)]);
    let mut public = [bytes(CKA_EC_PARAMS, &mut params), bytes(CKA_TOKEN, &mut flag)];
    let mut flag = [u8::from(on_token)];
    let mut private = [bytes(CKA_TOKEN, &mut flag)];
    let (mut one, mut two) = (0, 0);
    let mut mechanism = mechanism(CKM_EC_KEY_PAIR_GEN);
    let rv = call!(
        bench,
        C_GenerateKeyPair,
        session,
        &mut mechanism,
        public.as_mut_ptr(),
        2,
        private.as_mut_ptr(),
        1,
        &mut one,
        &mut two,
    );
    if rv == CKR_OK { Ok((one, two)) } else { Err(rv) }
}

#[test]
fn pairs_are_generated_where_the_card_has_places() {
    let bench = Bench::new(None);
    let session = bench.open(CKF_RW_SESSION);
    let (public, private) = generate(&bench, session, true).unwrap();
    assert_eq!(bench.get(session, private, CKA_ID).unwrap(), [8]);
    let signature = sign(&bench, session, CKM_ECDSA_SHA256, private, b"new").unwrap();
    assert_eq!(verify(&bench, session, CKM_ECDSA_SHA256, public, b"new", &signature), CKR_OK);
    // The one place is taken, and nobody said that keys may be replaced.
    assert_eq!(generate(&bench, session, true), Err(CKR_DEVICE_MEMORY));
    // A session's pair has one place as well, which is free again when it is destroyed.
    let (_, private) = generate(&bench, session, false).unwrap();
    assert_eq!(generate(&bench, session, false), Err(CKR_DEVICE_MEMORY));
    assert_eq!(call!(bench, C_DestroyObject, session, private), CKR_OK);
    assert!(generate(&bench, session, false).is_ok());
}

#[test]
fn a_destroyed_key_signs_no_more() {
    let bench = Bench::new(None);
    let session = bench.open(CKF_RW_SESSION);
    let (public, private) = generate(&bench, session, true).unwrap();
    let point = bench.get(session, public, CKA_EC_POINT).unwrap();
    assert_eq!(bench.get(session, private, CKA_DESTROYABLE).unwrap(), [CK_TRUE]);
    assert_eq!(call!(bench, C_DestroyObject, session, public), CKR_ACTION_PROHIBITED);
    // A signature with it is under way elsewhere.
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
    assert_ne!(on_card, point[2..], "the card has another key there");
    // The place is free.
    let (public, private) = generate(&bench, session, true).unwrap();
    let signature = sign(&bench, session, CKM_ECDSA_SHA256, private, b"new").unwrap();
    assert_eq!(verify(&bench, session, CKM_ECDSA_SHA256, public, b"new", &signature), CKR_OK);
}

#[test]
fn two_keys_share_a_secret() {
    let bench = Bench::new(None);
    let session = bench.open(CKF_RW_SESSION);
    let own = bench.one(session, CKO_PRIVATE_KEY, 1);
    let own_public = bench.one(session, CKO_PUBLIC_KEY, 1);
    let (public, private) = generate(&bench, session, false).unwrap();
    let derive = |key, peer, length: CK_ULONG| {
        let mut point = bench.get(session, peer, CKA_EC_POINT).unwrap();
        let mut parameters = CK_ECDH1_DERIVE_PARAMS {
            kdf: CKD_NULL,
            ulSharedDataLen: 0,
            pSharedData: ptr::null_mut(),
            ulPublicDataLen: point.len() as CK_ULONG,
            pPublicData: point.as_mut_ptr(),
        };
        let mut mechanism = CK_MECHANISM {
            mechanism: CKM_ECDH1_DERIVE,
            pParameter: ptr::from_mut(&mut parameters).cast(),
            ulParameterLen: size_of::<CK_ECDH1_DERIVE_PARAMS>() as CK_ULONG,
        };
        let mut length = length;
        let (mut attributes, mut secret) = ([number(CKA_VALUE_LEN, &mut length)], 0);
        let template = attributes.as_mut_ptr();
        let rv = call!(bench, C_DeriveKey, session, &mut mechanism, key, template, 1, &mut secret);
        assert_eq!(rv, CKR_OK);
        bench.get(session, secret, CKA_VALUE).unwrap()
    };
    let secret = derive(own, public, 32);
    assert_eq!(secret, derive(private, own_public, 32));
    assert_eq!(secret[16..], derive(own, public, 16));
}

#[test]
fn random_bytes_come_from_the_card() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    let mut room = [0; 600];
    assert_eq!(call!(bench, C_GenerateRandom, session, room.as_mut_ptr(), 600), CKR_OK);
    assert!(room[..256] != room[256..512] && room[512..] != [0; 88]);
}

#[test]
fn a_pin_is_the_cards_policy() {
    let bench = Bench::new(Some(PinScope::Signing));
    let session = bench.open(0);
    let state = |session| {
        let mut info = CK_SESSION_INFO::default();
        assert_eq!(call!(bench, C_GetSessionInfo, session, &mut info), CKR_OK);
        info.state
    };
    let mut class = CKO_PRIVATE_KEY;
    assert!(bench.find(session, &mut [number(CKA_CLASS, &mut class)]).is_empty());
    assert_eq!(bench.login(session, "9999"), CKR_PIN_INCORRECT);
    assert_eq!(bench.login(session, PIN), CKR_OK);
    let other = bench.open(CKF_RW_SESSION);
    assert_eq!(state(session), CKS_RO_USER_FUNCTIONS);
    assert_eq!(state(other), CKS_RW_USER_FUNCTIONS, "a login is one for all sessions");
    assert_eq!(bench.login(other, PIN), CKR_USER_ALREADY_LOGGED_IN);
    let key = bench.one(session, CKO_PRIVATE_KEY, 1);
    assert!(sign(&bench, session, CKM_ECDSA_SHA256, key, b"x").is_ok());
    assert_eq!(call!(bench, C_Logout, other), CKR_OK);
    assert_eq!(state(session), CKS_RO_PUBLIC_SESSION);
    let refused = sign(&bench, session, CKM_ECDSA_SHA256, key, b"x");
    assert_eq!(refused, Err(CKR_USER_NOT_LOGGED_IN));
    assert_eq!(bench.login(session, PIN), CKR_OK);
    assert!(sign(&bench, session, CKM_ECDSA_SHA256, key, b"x").is_ok());
}

#[test]
fn wrong_pins_lock_and_are_never_tried_again_by_the_module() {
    let bench = Bench::new(Some(PinScope::EveryKey));
    let session = bench.open(0);
    let flags = || {
        let mut info = CK_TOKEN_INFO::default();
        assert_eq!(call!(bench, C_GetTokenInfo, 0, &mut info), CKR_OK);
        info.flags
    };
    assert_eq!(flags() & CKF_USER_PIN_COUNT_LOW, 0);
    assert_ne!(flags() & CKF_LOGIN_REQUIRED, 0);
    // What cannot be a PIN costs no try.
    for no_pin in ["", "12", "123456789", "12ab"] {
        assert_eq!(bench.login(session, no_pin), CKR_PIN_INCORRECT);
    }
    assert_eq!(flags() & CKF_USER_PIN_COUNT_LOW, 0);
    assert_eq!(bench.login(session, "0000"), CKR_PIN_INCORRECT);
    assert_ne!(flags() & CKF_USER_PIN_COUNT_LOW, 0);
    assert_eq!(bench.login(session, "0000"), CKR_PIN_INCORRECT);
    assert_ne!(flags() & CKF_USER_PIN_FINAL_TRY, 0);
    assert_eq!(bench.login(session, "0000"), CKR_PIN_LOCKED);
    assert_eq!(bench.login(session, PIN), CKR_PIN_LOCKED);
    assert_ne!(flags() & CKF_USER_PIN_LOCKED, 0);
}

#[test]
fn a_card_that_is_gone_is_an_error_and_may_come_back() {
    let bench = Bench::new(None);
    let session = bench.open(0);
    let key = bench.one(session, CKO_PRIVATE_KEY, 1);
    bench.world.absent.store(true, Ordering::SeqCst);
    let gone = sign(&bench, session, CKM_ECDSA_SHA256, key, b"x");
    assert_eq!(gone, Err(CKR_DEVICE_REMOVED));
    let mut info = CK_TOKEN_INFO::default();
    assert_eq!(call!(bench, C_GetTokenInfo, 0, &mut info), CKR_TOKEN_NOT_PRESENT);
    let mut count = 0;
    assert_eq!(call!(bench, C_GetSlotList, CK_TRUE, ptr::null_mut(), &mut count), CKR_OK);
    assert_eq!(count, 0);
    bench.world.absent.store(false, Ordering::SeqCst);
    assert!(sign(&bench, session, CKM_ECDSA_SHA256, key, b"x").is_ok());
}

#[test]
fn threads_sign_at_the_same_time() {
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
