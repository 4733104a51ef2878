// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C_Sign and C_Verify (PKCS#11 2.40 sections 5.11 and 5.12).

use std::sync::Arc;

use cryptoki_sys::*;
use warifu_iotsafe_client::{Curve, Hash, SignInput};
use zeroize::Zeroizing;

use crate::digest::Digest;
use crate::library::Library;
use crate::mechanism::{Mechanism, Signed};
use crate::object::{Kind, Object, PrivateKey};
use crate::output::{Output, Room};
use crate::rv::{Result, Rv, fail};
use crate::session::{self, Of};
use crate::slot::Slot;

/// The length of r and s together.
const SIGNATURE_BYTES: usize = 64;
/// Of a hash longer than the order only its leftmost bits count (FIPS 186-4 section 6.4), so the
/// rest need not be kept. 64 bytes are the longest hash that a card takes as it is.
const HASH_MAX_BYTES: usize = 64;

const SIGN: Of<SignOperation> = |active| &mut active.sign;
const VERIFY: Of<VerifyOperation> = |active| &mut active.verify;

/// A signature under way.
pub struct SignOperation {
    /// The private key.
    pub(crate) key: Arc<Object>,
    text: Text,
}

/// A verification under way.
pub struct VerifyOperation {
    curve: Curve,
    point: [u8; 65],
    text: Text,
}

/// What is signed, as far as it has come.
struct Text {
    input: Input,
    /// C_SignUpdate or C_VerifyUpdate was called.
    in_parts: bool,
}

enum Input {
    /// CKM_ECDSA: a hash as it is, and how long it was.
    Raw(Vec<u8>, usize),
    /// Hashed here, with a hash that cards know or another.
    Hashed(Option<Hash>, Digest),
    /// Hashed by the card.
    Whole(Hash, Zeroizing<Vec<u8>>),
}

impl Text {
    fn new(signed: Signed, card_hashes: bool) -> Text {
        let input = match signed {
            Signed::Hash => Input::Raw(Vec::new(), 0),
            Signed::Sha1 => Input::Hashed(None, Digest::sha1()),
            Signed::Text(hash) if card_hashes => Input::Whole(hash, Zeroizing::default()),
            Signed::Text(hash) => Input::Hashed(Some(hash), Digest::new(hash)),
        };
        Text { input, in_parts: false }
    }

    fn update(&mut self, data: &[u8]) {
        match &mut self.input {
            Input::Raw(kept, length) => {
                let room = HASH_MAX_BYTES - kept.len();
                kept.extend_from_slice(&data[..data.len().min(room)]);
                *length += data.len();
            }
            Input::Hashed(_, digest) => digest.update(data),
            Input::Whole(_, text) => text.extend_from_slice(data),
        }
    }

    /// Nothing is no hash.
    fn check(&self) -> Result {
        match &self.input {
            Input::Raw(_, 0) => fail(CKR_DATA_LEN_RANGE),
            _ => Ok(()),
        }
    }

    /// The 32 leftmost bytes of the hash, with zeros before a shorter one: the number that ECDSA
    /// on a curve of 256 bits works with.
    fn leftmost(&self) -> [u8; 32] {
        match &self.input {
            Input::Raw(hash, _) => leftmost(hash),
            Input::Hashed(_, digest) => leftmost(&digest.value()),
            Input::Whole(hash, text) => {
                let mut digest = Digest::new(*hash);
                digest.update(text);
                leftmost(&digest.value())
            }
        }
    }

    /// Has the card sign it. A key that does not take this hash is given the number that counts
    /// under the name of one that it takes.
    fn sign(&self, slot: &Slot, key: &PrivateKey) -> Result<[u8; SIGNATURE_BYTES]> {
        let taken = |hash: Hash| key.hashes.contains(&hash);
        if let Input::Whole(hash, text) = &self.input
            && taken(*hash)
        {
            let input = SignInput::Text(*hash, text);
            return slot.ask(|token, deadline| token.sign(&key.card_id, input, deadline));
        }
        let whole = match &self.input {
            Input::Hashed(Some(hash), digest) if taken(*hash) => Some((*hash, digest.value())),
            Input::Raw(hash, length) if hash.len() == *length => {
                let named = Hash::ALL.into_iter().find(|named| named.length_bytes() == *length);
                named.filter(|named| taken(*named)).map(|named| (named, hash.clone()))
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
        slot.ask(|token, deadline| token.sign(&key.card_id, input, deadline))
    }
}

fn leftmost(hash: &[u8]) -> [u8; 32] {
    let mut number = [0; 32];
    let taken = &hash[..hash.len().min(32)];
    number[32 - taken.len()..].copy_from_slice(taken);
    number
}

/// C_SignInit.
pub fn sign_init(
    library: &Library,
    session: CK_SESSION_HANDLE,
    mechanism: Option<&Mechanism>,
    key: CK_OBJECT_HANDLE,
) -> Result {
    session::begin(library, session, mechanism, SIGN, |slot, mechanism| {
        let signed = mechanism.ecdsa()?;
        let key = slot.object(key, CKR_KEY_HANDLE_INVALID)?;
        match &key.kind {
            Kind::PrivateKey(own) if own.sign => {}
            Kind::PrivateKey(_) => return fail(CKR_KEY_FUNCTION_NOT_PERMITTED),
            _ => return fail(CKR_KEY_TYPE_INCONSISTENT),
        }
        Ok(SignOperation { key, text: Text::new(signed, slot.card_hashes) })
    })
}

/// C_Sign. Ends the operation, but for a question after the length and too little room.
pub fn sign(
    library: &Library,
    session: CK_SESSION_HANDLE,
    data: &[u8],
    room: Room,
) -> Result<Output> {
    let session = library.session(session)?;
    let mut active = session.active();
    let operation = active.sign.as_ref().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    if operation.text.in_parts {
        // C_Sign cannot end what C_SignUpdate began.
        active.sign = None;
        return fail(CKR_OPERATION_NOT_INITIALIZED);
    }
    if let Some(answer) = room.unless_fits(SIGNATURE_BYTES) {
        return Ok(answer);
    }
    let mut operation = active.sign.take().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    operation.text.update(data);
    operation.finish(&session.slot)
}

/// C_SignUpdate.
pub fn sign_update(library: &Library, session: CK_SESSION_HANDLE, data: &[u8]) -> Result {
    let session = library.session(session)?;
    let mut active = session.active();
    let operation = active.sign.as_mut().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    operation.text.in_parts = true;
    operation.text.update(data);
    Ok(())
}

/// C_SignFinal.
pub fn sign_final(library: &Library, session: CK_SESSION_HANDLE, room: Room) -> Result<Output> {
    let session = library.session(session)?;
    let mut active = session.active();
    if active.sign.is_none() {
        return fail(CKR_OPERATION_NOT_INITIALIZED);
    }
    if let Some(answer) = room.unless_fits(SIGNATURE_BYTES) {
        return Ok(answer);
    }
    let operation = active.sign.take().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    operation.finish(&session.slot)
}

/// Ends a signature whose caller gave bad arguments.
pub fn sign_abort(library: &Library, session: CK_SESSION_HANDLE) -> Result {
    session::abandon(library, session, SIGN)
}

impl SignOperation {
    fn finish(self, slot: &Slot) -> Result<Output> {
        self.text.check()?;
        // The user may have been logged out, by the loss of the card, since C_SignInit.
        if self.key.private && !slot.is_logged_in() {
            return fail(CKR_USER_NOT_LOGGED_IN);
        }
        let Kind::PrivateKey(key) = &self.key.kind else {
            return fail(CKR_KEY_TYPE_INCONSISTENT);
        };
        Ok(Output::bytes(self.text.sign(slot, key)?.to_vec()))
    }
}

/// C_VerifyInit.
pub fn verify_init(
    library: &Library,
    session: CK_SESSION_HANDLE,
    mechanism: Option<&Mechanism>,
    key: CK_OBJECT_HANDLE,
) -> Result {
    session::begin(library, session, mechanism, VERIFY, |slot, mechanism| {
        let signed = mechanism.ecdsa()?;
        let key = slot.object(key, CKR_KEY_HANDLE_INVALID)?;
        let curve = match &key.kind {
            Kind::PublicKey(public) if public.verify => public.curve,
            Kind::PublicKey(_) => return fail(CKR_KEY_FUNCTION_NOT_PERMITTED),
            _ => return fail(CKR_KEY_TYPE_INCONSISTENT),
        };
        let point = slot.point_of(&key)?;
        Ok(VerifyOperation { curve, point, text: Text::new(signed, false) })
    })
}

/// C_Verify.
pub fn verify(
    library: &Library,
    session: CK_SESSION_HANDLE,
    data: &[u8],
    signature: &[u8],
) -> Result {
    let session = library.session(session)?;
    let mut operation = session.active().verify.take().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    if operation.text.in_parts {
        return fail(CKR_OPERATION_NOT_INITIALIZED);
    }
    operation.text.update(data);
    operation.finish(signature)
}

/// C_VerifyUpdate.
pub fn verify_update(library: &Library, session: CK_SESSION_HANDLE, data: &[u8]) -> Result {
    let session = library.session(session)?;
    let mut active = session.active();
    let operation = active.verify.as_mut().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    operation.text.in_parts = true;
    operation.text.update(data);
    Ok(())
}

/// C_VerifyFinal.
pub fn verify_final(library: &Library, session: CK_SESSION_HANDLE, signature: &[u8]) -> Result {
    let session = library.session(session)?;
    let operation = session.active().verify.take();
    operation.ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?.finish(signature)
}

/// Ends a verification whose caller gave bad arguments.
pub fn verify_abort(library: &Library, session: CK_SESSION_HANDLE) -> Result {
    session::abandon(library, session, VERIFY)
}

impl VerifyOperation {
    fn finish(self, signature: &[u8]) -> Result {
        let signature: &[u8; SIGNATURE_BYTES] =
            signature.try_into().map_err(|_| Rv(CKR_SIGNATURE_LEN_RANGE))?;
        self.text.check()?;
        let point = self.curve.point(&self.point).ok_or(Rv(CKR_PUBLIC_KEY_INVALID))?;
        let matches = point.verify(&self.text.leftmost(), signature);
        if matches { Ok(()) } else { fail(CKR_SIGNATURE_INVALID) }
    }
}
