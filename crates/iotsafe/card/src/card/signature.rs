// SPDX-License-Identifier: Apache-2.0 OR MIT
//! COMPUTE SIGNATURE and VERIFY SIGNATURE.

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::channel::{Job, Mode, Session};
use super::{Answer, Card, Handled, Nonce, Request, private_key, public_key};
use crate::apdu::StatusWord;
use crate::crypto::Hash;
use crate::object::{KeyAttributes, SIGNATURE_ECDSA, Selector, find, function};
use crate::pin::PinScope;
use crate::quirks::{DigestLength, SignatureHeader};
use crate::tlv::{self, Fields, tag};

/// The tags that carry a text, whole, in part, or hashed.
const TEXT: [u8; 5] =
    [tag::FINAL_HASH, tag::FULL_TEXT, tag::LAST_BLOCK, tag::INTERMEDIATE_HASH, tag::BYTES_HASHED];
/// What else an INIT carries.
const ALGORITHM: [u8; 3] = [tag::MODE, tag::HASH, tag::SIGNATURE];

impl Card {
    /// COMPUTE SIGNATURE - INIT: opens or closes a session; 84 or 74, A1, 91, 92.
    pub(super) fn compute_signature_init(&mut self, request: &Request<'_>) -> Handled {
        if !self.opens_session(request, Job::ComputeSignature)? {
            return Ok(Answer::none());
        }
        let tags = [&[tag::PRIVATE_KEY_ID, tag::PRIVATE_KEY_LABEL][..], &ALGORITHM].concat();
        let fields = self.fields(request.data, &tags)?;
        let wanted = private_key(&fields)?;
        let (mode, hash) = algorithm(&fields)?;
        let key = &self.store.private_keys[self.find(&self.store.private_keys, wanted)?];
        if key.scalar.is_none() || !key.attributes.signs_with(hash) {
            return Err(StatusWord::CONDITIONS);
        }
        self.need_pin(PinScope::Signing)?;
        let session = session(request, Job::ComputeSignature, key.name.id.clone(), mode, hash);
        self.open_session(request, session)
    }

    /// COMPUTE SIGNATURE - UPDATE: 9B, or 9A 9C 9D, or 9E -> 33 with r and s.
    pub(super) fn compute_signature_update(
        &mut self,
        request: &Request<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Handled {
        self.need_pin(PinScope::Signing)?;
        let Some(session) = self.update_session(request, Job::ComputeSignature)? else {
            return Ok(Answer::none());
        };
        let digest = self.digest(&session, &self.fields(&session.buffer, &TEXT)?)?;
        let at = find(&self.store.private_keys, Selector::Id(&session.key), false);
        let key = &self.store.private_keys[at.ok_or(StatusWord::NOT_FOUND)?];
        let scalar = key.scalar.as_ref().ok_or(StatusWord::CONDITIONS)?;
        let mut extra = Zeroizing::new([0; 32]);
        let extra: &[u8] = match self.settings.nonce {
            Nonce::Deterministic => &[],
            Nonce::Hedged => {
                rng.fill_bytes(&mut *extra);
                &*extra
            }
        };
        let signature = scalar.sign(session.hash, &digest, extra).ok_or(StatusWord::UNKNOWN)?;
        let out = match self.settings.quirks.signature_header {
            SignatureHeader::Ber => tlv::field(tag::SIGNATURE_VALUE, &signature),
            SignatureHeader::Length16 => {
                let [high, low] = (signature.len() as u16).to_be_bytes();
                [&[tag::SIGNATURE_VALUE, high, low], &signature[..]].concat()
            }
        };
        Ok(Answer::of(out))
    }

    /// VERIFY SIGNATURE - INIT: opens or closes a session; 85 or 75, A1, 91, 92.
    pub(super) fn verify_signature_init(&mut self, request: &Request<'_>) -> Handled {
        if !self.opens_session(request, Job::VerifySignature)? {
            return Ok(Answer::none());
        }
        let tags = [&[tag::PUBLIC_KEY_ID, tag::PUBLIC_KEY_LABEL][..], &ALGORITHM].concat();
        let fields = self.fields(request.data, &tags)?;
        let wanted = public_key(&fields)?;
        let (mode, hash) = algorithm(&fields)?;
        let key = &self.store.public_keys[self.find(&self.store.public_keys, wanted)?];
        if key.point.is_none() || !key.attributes.signs_with(hash) {
            return Err(StatusWord::CONDITIONS);
        }
        let session = session(request, Job::VerifySignature, key.name.id.clone(), mode, hash);
        self.open_session(request, session)
    }

    /// VERIFY SIGNATURE - UPDATE: a text as for COMPUTE SIGNATURE, and 33.
    pub(super) fn verify_signature_update(&mut self, request: &Request<'_>) -> Handled {
        let Some(session) = self.update_session(request, Job::VerifySignature)? else {
            return Ok(Answer::none());
        };
        let tags = [&TEXT[..], &[tag::SIGNATURE_VALUE]].concat();
        let fields = self.fields(&session.buffer, &tags)?;
        let signature: &[u8; 64] = fields
            .need(tag::SIGNATURE_VALUE)?
            .try_into()
            .map_err(|_| StatusWord::INCORRECT_DATA)?;
        let digest = self.digest(&session, &fields)?;
        let at = find(&self.store.public_keys, Selector::Id(&session.key), false);
        let key = &self.store.public_keys[at.ok_or(StatusWord::NOT_FOUND)?];
        let point = key.point.ok_or(StatusWord::CONDITIONS)?;
        if point.verify(&digest, signature) {
            Ok(Answer::none())
        } else {
            Err(StatusWord::BAD_SIGNATURE)
        }
    }

    /// The hash of the text that a session was given.
    fn digest(&self, session: &Session, fields: &Fields<'_>) -> Result<Vec<u8>, StatusWord> {
        let only = |used: &[u8]| {
            let other =
                TEXT.iter().any(|tag| !used.contains(tag) && fields.all(*tag).next().is_some());
            if other { Err(StatusWord::INCORRECT_DATA) } else { Ok(()) }
        };
        match session.mode {
            Mode::FullText => {
                only(&[tag::FULL_TEXT])?;
                let parts: Vec<&[u8]> = fields.all(tag::FULL_TEXT).collect();
                if parts.is_empty() {
                    return Err(StatusWord::INCORRECT_DATA);
                }
                Ok(session.hash.digest(&parts.concat()))
            }
            Mode::LastBlock => {
                only(&[tag::LAST_BLOCK, tag::INTERMEDIATE_HASH, tag::BYTES_HASHED])?;
                let hashed: &[u8; 4] = fields
                    .need(tag::BYTES_HASHED)?
                    .try_into()
                    .map_err(|_| StatusWord::INCORRECT_DATA)?;
                let state = fields.need(tag::INTERMEDIATE_HASH)?;
                let last = fields.need(tag::LAST_BLOCK)?;
                let hashed = u64::from(u32::from_be_bytes(*hashed));
                session.hash.finish(state, hashed, last).ok_or(StatusWord::INCORRECT_DATA)
            }
            Mode::PadAndSign => {
                only(&[tag::FINAL_HASH])?;
                let digest = fields.need(tag::FINAL_HASH)?;
                let fits = match self.settings.quirks.digest_length {
                    DigestLength::AsDeclared => digest.len() == session.hash.length_bytes(),
                    DigestLength::AnyHash => {
                        Hash::ALL.iter().any(|hash| hash.length_bytes() == digest.len())
                    }
                };
                if fits { Ok(digest.to_vec()) } else { Err(StatusWord::INCORRECT_DATA) }
            }
        }
    }
}

impl KeyAttributes {
    /// Whether the key may make or verify signatures over this hash.
    fn signs_with(&self, hash: Hash) -> bool {
        self.may(function::SIGNATURE) && self.hashes & hash.bit() != 0
    }
}

/// Mode and hash of an INIT. The signature algorithm must be ECDSA: the card has no RSA.
fn algorithm(fields: &Fields<'_>) -> Result<(Mode, Hash), StatusWord> {
    let mode = Mode::from_byte(fields.need_byte(tag::MODE)?);
    let hash = Hash::from_bytes(fields.need(tag::HASH)?);
    let signature = fields.need_byte(tag::SIGNATURE)?;
    match (mode, hash) {
        (Some(mode), Some(hash)) if signature == SIGNATURE_ECDSA => Ok((mode, hash)),
        _ => Err(StatusWord::INCORRECT_DATA),
    }
}

fn session(request: &Request<'_>, job: Job, key: Vec<u8>, mode: Mode, hash: Hash) -> Session {
    Session { job, number: request.p2, key, mode, hash, buffer: Zeroizing::default() }
}
