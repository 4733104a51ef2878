// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys: generating, reading, storing a peer's, Diffie-Hellman.

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::channel::{Job, Mode, Session};
use super::{Answer, Card, Handled, Request, private_key, public_key};
use crate::apdu::StatusWord;
use crate::crypto::{Hash, Point};
use crate::object::{Selector, access, find, function};
use crate::pin::PinScope;
use crate::tlv::{self, Fields, SignatureLength, tag};

impl Card {
    /// GENERATE KEY PAIR: 84 or 74 -> 84, 85, 34. The private key must be one that commands may
    /// update.
    pub(super) fn generate_key_pair(
        &mut self,
        request: &Request<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Handled {
        request.no_parameters()?;
        let tags = [tag::PRIVATE_KEY_ID, tag::PRIVATE_KEY_LABEL];
        let wanted = private_key(&self.fields(request.data, &tags)?)?;
        let at = self.find(&self.store.private_keys, wanted)?;
        let key = &self.store.private_keys[at];
        if key.name.access & access::UPDATE == 0 || !key.attributes.may(function::KEY_GENERATION) {
            return Err(StatusWord::CONDITIONS);
        }
        self.need_pin(PinScope::EveryKey)?;
        let point = self.generate_at(at, rng).ok_or(StatusWord::UNKNOWN)?;
        let key = &self.store.private_keys[at];
        let mut out = tlv::field(tag::PRIVATE_KEY_ID, &key.name.id);
        tlv::push(&mut out, tag::PUBLIC_KEY_ID, &key.public_id);
        out.extend(key_data(&point));
        Ok(Answer::of(out))
    }

    /// Puts a new pair into a private key's place and its public half's.
    pub(super) fn generate_at(&mut self, at: usize, rng: &mut dyn CryptoRng) -> Option<Point> {
        let key = &mut self.store.private_keys[at];
        let scalar = key.attributes.key_type.curve().generate(rng);
        let point = scalar.public()?;
        key.scalar = Some(scalar);
        let half = find(&self.store.public_keys, Selector::Id(&key.public_id), false);
        self.dirty |= !key.attributes.key_type.is_volatile();
        if let Some(half) = half.map(|half| &mut self.store.public_keys[half]) {
            half.point = Some(point);
            self.dirty |= !half.attributes.key_type.is_volatile();
        }
        Some(point)
    }

    /// READ PUBLIC KEY: 85 or 75 -> 34.
    pub(super) fn read_public_key(&self, request: &Request<'_>) -> Handled {
        request.no_parameters()?;
        let tags = [tag::PUBLIC_KEY_ID, tag::PUBLIC_KEY_LABEL];
        let wanted = public_key(&self.fields(request.data, &tags)?)?;
        let key = &self.store.public_keys[self.find(&self.store.public_keys, wanted)?];
        let point = key.point.filter(|_| key.name.access & access::READ != 0);
        Ok(Answer::read(key_data(&point.ok_or(StatusWord::CONDITIONS)?)))
    }

    /// PUT PUBLIC KEY - INIT: opens or closes a session; 85 or 75.
    pub(super) fn put_public_key_init(&mut self, request: &Request<'_>) -> Handled {
        if !self.opens_session(request, Job::PutPublicKey)? {
            return Ok(Answer::none());
        }
        let tags = [tag::PUBLIC_KEY_ID, tag::PUBLIC_KEY_LABEL];
        let wanted = public_key(&self.fields(request.data, &tags)?)?;
        let key = &self.store.public_keys[self.find(&self.store.public_keys, wanted)?];
        if key.name.access & access::UPDATE == 0 {
            return Err(StatusWord::CONDITIONS);
        }
        let session = Session {
            job: Job::PutPublicKey,
            number: request.p2,
            key: key.name.id.clone(),
            mode: Mode::FullText,
            hash: Hash::Sha256,
            buffer: Zeroizing::default(),
        };
        self.open_session(request, session)
    }

    /// PUT PUBLIC KEY - UPDATE: 34, in parts if need be. The key changes with the last part.
    pub(super) fn put_public_key_update(&mut self, request: &Request<'_>) -> Handled {
        let Some(session) = self.update_session(request, Job::PutPublicKey)? else {
            return Ok(Answer::none());
        };
        let at = find(&self.store.public_keys, Selector::Id(&session.key), false);
        let key = &mut self.store.public_keys[at.ok_or(StatusWord::NOT_FOUND)?];
        let fields = Fields::parse(&session.buffer, &[tag::PUBLIC_KEY_DATA], SignatureLength::Ber)?;
        let bytes = point_of(fields.need(tag::PUBLIC_KEY_DATA)?)?;
        let point = key.attributes.key_type.curve().point(bytes);
        let point = point.ok_or(StatusWord::INCORRECT_DATA)?;
        self.dirty |= key.point != Some(point) && !key.attributes.key_type.is_volatile();
        key.point = Some(point);
        Ok(Answer::none())
    }

    /// COMPUTE DH: 84 or 74, and 85 or 75 -> the shared x coordinate.
    pub(super) fn compute_dh(&self, request: &Request<'_>) -> Handled {
        request.no_parameters()?;
        let tags = [
            tag::PRIVATE_KEY_ID,
            tag::PRIVATE_KEY_LABEL,
            tag::PUBLIC_KEY_ID,
            tag::PUBLIC_KEY_LABEL,
        ];
        let fields = self.fields(request.data, &tags)?;
        let (own, peer) = (private_key(&fields)?, public_key(&fields)?);
        let own = &self.store.private_keys[self.find(&self.store.private_keys, own)?];
        let peer = &self.store.public_keys[self.find(&self.store.public_keys, peer)?];
        let may = own.attributes.may(function::KEY_AGREEMENT)
            && peer.attributes.may(function::KEY_AGREEMENT);
        let (Some(scalar), Some(point), true) = (&own.scalar, &peer.point, may) else {
            return Err(StatusWord::CONDITIONS);
        };
        self.need_pin(PinScope::EveryKey)?;
        let shared = scalar.shared_secret(point).ok_or(StatusWord::INCOMPATIBLE_OBJECT)?;
        Ok(Answer::of(shared.expose().to_vec()))
    }
}

/// `34 { 49 { 86 { 04 X Y } } }`.
fn key_data(point: &Point) -> Vec<u8> {
    let point = tlv::field(tag::EC_POINT, point.bytes());
    tlv::field(tag::PUBLIC_KEY_DATA, &tlv::field(tag::EC_KEY, &point))
}

/// The point within the value of a 34.
fn point_of(data: &[u8]) -> Result<&[u8], StatusWord> {
    let outer = Fields::parse(data, &[tag::EC_KEY], SignatureLength::Ber)?;
    let inner = Fields::parse(outer.need(tag::EC_KEY)?, &[tag::EC_POINT], SignatureLength::Ber)?;
    inner.need(tag::EC_POINT)
}
