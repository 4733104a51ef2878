// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signatures and verifications under way (PKCS#11 2.40 sections 5.11 and 5.12).

use std::sync::Arc;

use cryptoki_sys::*;
use warifu_iotsafe_client::{Curve, Hash, SignInput};
use zeroize::Zeroizing;

use crate::digest::Digest;
use crate::mechanism::{Mechanism, SignatureInput};
use crate::object::{Kind, Object, PrivateKey};
use crate::output::Output;
use crate::rv::{Result, Rv, fail};
use crate::slot::Slot;

/// The length of r and s together.
pub(crate) const SIGNATURE_BYTES: usize = 64;
/// ECDSA uses the leftmost bits of a digest longer than the order (FIPS 186-4 section 6.4), so the
/// rest need not be kept. 64 bytes are the longest digest that a card takes.
const DIGEST_MAX_BYTES: usize = 64;

/// A signature under way.
pub struct SignOperation {
    /// The private key.
    pub(crate) key: Arc<Object>,
    pub(crate) message: Message,
}

/// A verification under way.
pub struct VerifyOperation {
    curve: Curve,
    point: [u8; 65],
    pub(crate) message: Message,
}

/// What is signed or verified, as far as it has been given.
pub(crate) struct Message {
    input: Input,
    /// C_SignUpdate or C_VerifyUpdate was called.
    pub(crate) in_parts: bool,
}

enum Input {
    /// CKM_ECDSA: the first bytes of a digest, and its length.
    Digest(Vec<u8>, usize),
    /// Hashed by this module; None for a hash that cards do not have.
    Hashed(Option<Hash>, Digest),
    /// Hashed by the card.
    Message(Hash, Zeroizing<Vec<u8>>),
}

impl Message {
    pub(crate) fn new(signed: SignatureInput, card_hashes: bool) -> Message {
        let input = match signed {
            SignatureInput::Digest => Input::Digest(Vec::new(), 0),
            SignatureInput::Sha1 => Input::Hashed(None, Digest::sha1()),
            SignatureInput::Message(hash) if card_hashes => {
                Input::Message(hash, Zeroizing::default())
            }
            SignatureInput::Message(hash) => Input::Hashed(Some(hash), Digest::new(hash)),
        };
        Message { input, in_parts: false }
    }

    pub(crate) fn update(&mut self, data: &[u8]) {
        match &mut self.input {
            Input::Digest(kept, length) => {
                let room = DIGEST_MAX_BYTES - kept.len();
                kept.extend_from_slice(&data[..data.len().min(room)]);
                *length += data.len();
            }
            Input::Hashed(_, digest) => digest.update(data),
            Input::Message(_, message) => message.extend_from_slice(data),
        }
    }

    /// Refuses an empty digest.
    fn check(&self) -> Result {
        match &self.input {
            Input::Digest(_, 0) => fail(CKR_DATA_LEN_RANGE),
            _ => Ok(()),
        }
    }

    /// The leftmost 32 bytes of the digest, a shorter one padded with zeros on the left: the number
    /// that ECDSA on a curve of 256 bits works with.
    fn leftmost(&self) -> [u8; 32] {
        match &self.input {
            Input::Digest(hash, _) => leftmost(hash),
            Input::Hashed(_, digest) => leftmost(&digest.value()),
            Input::Message(hash, message) => {
                let mut digest = Digest::new(*hash);
                digest.update(message);
                leftmost(&digest.value())
            }
        }
    }

    /// Has the card sign it. A key that does not support this hash is given the same number as the
    /// digest of a hash that it supports.
    fn sign(&self, slot: &Slot, key: &PrivateKey) -> Result<[u8; SIGNATURE_BYTES]> {
        let supported = |hash: Hash| key.hashes.contains(&hash);
        if let Input::Message(hash, message) = &self.input
            && supported(*hash)
        {
            let input = SignInput::Message(*hash, message);
            return slot.with_token(|token, deadline| token.sign(&key.card_id, input, deadline));
        }
        let whole = match &self.input {
            Input::Hashed(Some(hash), digest) if supported(*hash) => Some((*hash, digest.value())),
            Input::Digest(hash, length) if hash.len() == *length => {
                let named = Hash::ALL.into_iter().find(|named| named.length_bytes() == *length);
                named.filter(|named| supported(*named)).map(|named| (named, hash.clone()))
            }
            _ => None,
        };
        let (hash, digest) = match whole {
            Some(whole) => whole,
            None => {
                let hash = *key.hashes.first().ok_or(Rv(CKR_KEY_FUNCTION_NOT_PERMITTED))?;
                let mut digest = self.leftmost().to_vec();
                digest.resize(hash.length_bytes(), 0);
                (hash, digest)
            }
        };
        let input = SignInput::Digest(hash, &digest);
        slot.with_token(|token, deadline| token.sign(&key.card_id, input, deadline))
    }
}

fn leftmost(hash: &[u8]) -> [u8; 32] {
    let mut number = [0; 32];
    let taken = &hash[..hash.len().min(32)];
    number[32 - taken.len()..].copy_from_slice(taken);
    number
}

impl SignOperation {
    /// A signature with a private key.
    pub(crate) fn new(slot: &Slot, mechanism: &Mechanism, key: CK_OBJECT_HANDLE) -> Result<Self> {
        let signed = mechanism.ecdsa()?;
        let key = slot.object(key, CKR_KEY_HANDLE_INVALID)?;
        match &key.kind {
            Kind::PrivateKey(own) if own.sign => {}
            Kind::PrivateKey(_) => return fail(CKR_KEY_FUNCTION_NOT_PERMITTED),
            _ => return fail(CKR_KEY_TYPE_INCONSISTENT),
        }
        Ok(SignOperation { key, message: Message::new(signed, slot.card_hashes) })
    }

    pub(crate) fn finish(self, slot: &Slot) -> Result<Output> {
        self.message.check()?;
        // The user may have been logged out, by the loss of the card, since C_SignInit.
        if self.key.private && !slot.is_logged_in() {
            return fail(CKR_USER_NOT_LOGGED_IN);
        }
        let Kind::PrivateKey(key) = &self.key.kind else {
            return fail(CKR_KEY_TYPE_INCONSISTENT);
        };
        Ok(Output::bytes(self.message.sign(slot, key)?.to_vec()))
    }
}

impl VerifyOperation {
    /// A verification with a public key.
    pub(crate) fn new(slot: &Slot, mechanism: &Mechanism, key: CK_OBJECT_HANDLE) -> Result<Self> {
        let signed = mechanism.ecdsa()?;
        let key = slot.object(key, CKR_KEY_HANDLE_INVALID)?;
        let curve = match &key.kind {
            Kind::PublicKey(public) if public.verify => public.curve,
            Kind::PublicKey(_) => return fail(CKR_KEY_FUNCTION_NOT_PERMITTED),
            _ => return fail(CKR_KEY_TYPE_INCONSISTENT),
        };
        let point = slot.point_of(&key)?;
        Ok(VerifyOperation { curve, point, message: Message::new(signed, false) })
    }

    pub(crate) fn finish(self, signature: &[u8]) -> Result {
        let signature: &[u8; SIGNATURE_BYTES] =
            signature.try_into().map_err(|_| Rv(CKR_SIGNATURE_LEN_RANGE))?;
        self.message.check()?;
        let point = self.curve.point(&self.point).ok_or(Rv(CKR_PUBLIC_KEY_INVALID))?;
        let matches = point.verify(&self.message.leftmost(), signature);
        if matches { Ok(()) } else { fail(CKR_SIGNATURE_INVALID) }
    }
}
