// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What was read from the card and does not change: served to callers without a turn at the card.

use std::collections::BTreeMap;
use std::sync::Arc;

use openssl::bn::{BigNum, BigNumContext};
use openssl::ec::{EcGroup, EcKey, EcPoint};
use openssl::ecdsa::EcdsaSig;
use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::pkey::Public;
use warifu_iotsafe_client::{Curve, File, Inventory, SignInput, TokenError, TokenInfo};

/// The most bytes of files that are kept, over all files.
const FILES_MAX_BYTES: usize = 1 << 20;

/// What was read from a card.
#[derive(Default)]
pub struct CardCache {
    /// Information on the card.
    pub info: Option<TokenInfo>,
    /// Its objects.
    pub inventory: Option<Arc<Inventory>>,
    points: BTreeMap<Vec<u8>, [u8; 65]>,
    verifiers: BTreeMap<Vec<u8>, Verifier>,
    files: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl CardCache {
    /// A public key, if it was read.
    #[must_use]
    pub fn point(&self, public_id: &[u8]) -> Option<[u8; 65]> {
        self.points.get(public_id).copied()
    }

    /// A public key with its id, to tell the card from others.
    pub(super) fn any_point(&self) -> Option<(Vec<u8>, [u8; 65])> {
        self.points.first_key_value().map(|(id, point)| (id.clone(), *point))
    }

    /// Keeps a public key, unless it belongs to a volatile pair, which ends with the session.
    pub fn keep_point(&mut self, public_id: &[u8], point: [u8; 65]) {
        if !self.is_volatile(public_id) {
            self.points.insert(public_id.to_vec(), point);
        }
    }

    /// The verifier with a public key, if that was read.
    pub(super) fn verifier(&self, public_id: &[u8]) -> Option<Verifier> {
        self.verifiers.get(public_id).cloned()
    }

    /// Keeps it, as [`CardCache::keep_point`].
    pub(super) fn keep_verifier(&mut self, public_id: &[u8], verifier: Verifier) {
        if !self.is_volatile(public_id) {
            self.verifiers.insert(public_id.to_vec(), verifier);
        }
    }

    /// A file's content, if it was read.
    #[must_use]
    pub fn file(&self, file: &File) -> Option<&[u8]> {
        self.files.get(&file.id).map(Vec::as_slice)
    }

    /// Keeps a file's content.
    pub fn keep_file(&mut self, file: &File, content: &[u8]) {
        let held: usize = self.files.values().map(Vec::len).sum();
        if held + content.len() <= FILES_MAX_BYTES {
            self.files.insert(file.id.clone(), content.to_vec());
        }
    }

    /// Forgets a key pair that was replaced.
    pub fn forget_pair(&mut self, public_id: Option<&[u8]>) {
        self.inventory = None;
        self.verifiers.clear();
        match public_id {
            Some(id) => drop(self.points.remove(id)),
            None => self.points.clear(),
        }
    }

    fn is_volatile(&self, public_id: &[u8]) -> bool {
        let keys = self.inventory.iter().flat_map(|inventory| &inventory.public_keys);
        keys.filter(|key| key.id == public_id).any(|key| key.attributes.is_volatile())
    }
}

/// Verifies signatures with a public key. Every signature waits for it: OpenSSL takes a third of
/// the time that the virtual card's library takes.
#[derive(Clone)]
pub(super) struct Verifier(EcKey<Public>);

impl Verifier {
    /// A point that is not on its curve is an error of the answer, which was damaged on the line.
    pub(super) fn new(curve: Curve, point: &[u8; 65]) -> Result<Verifier, TokenError> {
        let nid = match curve {
            Curve::Secp256r1 => Nid::X9_62_PRIME256V1,
            Curve::BrainpoolP256r1 => Nid::BRAINPOOL_P256R1,
        };
        let key = || -> Result<EcKey<Public>, ErrorStack> {
            let group = EcGroup::from_curve_name(nid)?;
            let point = EcPoint::from_bytes(&group, point, &mut *BigNumContext::new()?)?;
            EcKey::from_public_key(&group, &point)
        };
        key().map(Verifier).map_err(|_| TokenError::Answer {
            command: "READ PUBLIC KEY".into(),
            what: "is not a point on its curve".into(),
        })
    }

    /// Returns the signature if the public key verifies it: the card or the line may be faulty.
    pub(super) fn checked(
        &self,
        input: SignInput<'_>,
        signature: [u8; 64],
    ) -> Result<[u8; 64], TokenError> {
        let hashed;
        let digest = match input {
            SignInput::Digest(_, digest) => digest,
            SignInput::Message(hash, text) => {
                hashed = hash.digest(text);
                &hashed
            }
        };
        let matches = || -> Result<bool, ErrorStack> {
            let (r, s) = signature.split_at(32);
            let (r, s) = (BigNum::from_slice(r)?, BigNum::from_slice(s)?);
            EcdsaSig::from_private_components(r, s)?.verify(digest, &self.0)
        };
        // OpenSSL returns an error for numbers out of range.
        match matches() {
            Ok(true) => Ok(signature),
            _ => Err(TokenError::Answer {
                command: "COMPUTE SIGNATURE".into(),
                what: "does not verify with the key's public half".into(),
            }),
        }
    }
}

/// The point, if it is on this curve or, without one, on any; otherwise as [`Verifier::new`].
pub(super) fn on_curve(curve: Option<Curve>, point: [u8; 65]) -> Result<[u8; 65], TokenError> {
    let curves = curve.map_or_else(|| Curve::ALL.to_vec(), |curve| vec![curve]);
    match curves.iter().any(|curve| curve.point(&point).is_some()) {
        true => Ok(point),
        false => Err(TokenError::Answer {
            command: "READ PUBLIC KEY".into(),
            what: "is not a point on its curve".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warifu_card::crypto::Hash;

    #[test]
    fn verifier_accepts_signatures_of_its_key_only() {
        for curve in Curve::ALL {
            let key = curve.scalar(&[7; 32]).unwrap();
            let point = *key.public().unwrap().bytes();
            let verifier = Verifier::new(curve, &point).unwrap();
            for hash in Hash::ALL {
                let text = b"meter reading";
                let digest = hash.digest(text);
                let signature = key.sign(hash, &digest, &[]).unwrap();
                for input in [SignInput::Digest(hash, &digest), SignInput::Message(hash, text)] {
                    assert_eq!(verifier.checked(input, signature), Ok(signature));
                    let mut wrong = signature;
                    wrong[63] ^= 1;
                    assert!(verifier.checked(input, wrong).is_err());
                    assert!(verifier.checked(input, [0; 64]).is_err());
                    assert!(verifier.checked(input, [0xff; 64]).is_err());
                }
            }
            let mut off = point;
            off[64] ^= 1;
            assert!(Verifier::new(curve, &off).is_err() && on_curve(None, off).is_err());
        }
    }
}
