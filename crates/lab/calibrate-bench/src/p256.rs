// SPDX-License-Identifier: Apache-2.0 OR MIT
//! P-256 as DDS Security's authentication uses it (PKI-DH, section 9.3.2.5 of DDS Security 1.1):
//! OpenSSL's, which both middlewares call.

use std::hint::black_box;

use openssl::derive::Deriver;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::sign::{Signer, Verifier};

use crate::ciphers::Call;

/// What is signed, B: about the length of a handshake message's signed properties.
const SIGNED: [u8; 512] = [5; 512];

type Openssl<T> = Result<T, openssl::error::ErrorStack>;

/// Each call with its name in profiles.
pub fn calls() -> Openssl<Vec<(&'static str, Call)>> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    let key = || PKey::from_ec_key(EcKey::generate(&group)?);
    let (own, other, signer) = (key()?, key()?, key()?);
    let signature = sign(&signer)?;
    let verifier = signer.clone();
    Ok(vec![
        (
            "ecdh.keygen.secp256r1",
            Box::new(move || EcKey::generate(&group).ok().map(black_box).map(drop)),
        ),
        (
            "ecdh.derive.secp256r1",
            Box::new(move || {
                let mut deriver = Deriver::new(&own).ok()?;
                deriver.set_peer(black_box(&other)).ok()?;
                deriver.derive_to_vec().ok().map(black_box).map(drop)
            }),
        ),
        ("sign.ecdsa_secp256r1", Box::new(move || sign(&signer).ok().map(black_box).map(drop))),
        (
            "verify.ecdsa_secp256r1",
            Box::new(move || {
                let mut check = Verifier::new(MessageDigest::sha256(), &verifier).ok()?;
                check.verify_oneshot(&signature, black_box(&SIGNED)).ok()?.then_some(())
            }),
        ),
    ])
}

fn sign(key: &PKey<Private>) -> Openssl<Vec<u8>> {
    Signer::new(MessageDigest::sha256(), key)?.sign_oneshot_to_vec(black_box(&SIGNED))
}
