// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key management (PKCS#11 2.40 section 5.14).

use std::ptr;

use cryptoki_sys::*;

use crate::bench::{Bench, bytes, mechanism, number};
use crate::sign_verify::{sign, verify};

const SECP256R1: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

/// Generates a pair; the token's if `on_token`.
pub fn generate(
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
fn generate_uses_free_containers() {
    let bench = Bench::new(None);
    let session = bench.open(CKF_RW_SESSION);
    let (public, private) = generate(&bench, session, true).unwrap();
    assert_eq!(bench.get(session, private, CKA_ID).unwrap(), [8]);
    let signature = sign(&bench, session, CKM_ECDSA_SHA256, private, b"new").unwrap();
    assert_eq!(verify(&bench, session, CKM_ECDSA_SHA256, public, b"new", &signature), CKR_OK);
    // The only container is in use, and replacing keys is not enabled.
    assert_eq!(generate(&bench, session, true), Err(CKR_DEVICE_MEMORY));
    // There is one container for session pairs too, which destroying the pair frees.
    let (_, private) = generate(&bench, session, false).unwrap();
    assert_eq!(generate(&bench, session, false), Err(CKR_DEVICE_MEMORY));
    assert_eq!(call!(bench, C_DestroyObject, session, private), CKR_OK);
    assert!(generate(&bench, session, false).is_ok());
}

#[test]
fn ecdh_shared_secret() {
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
