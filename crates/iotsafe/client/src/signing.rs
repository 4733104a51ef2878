// SPDX-License-Identifier: Apache-2.0 OR MIT
//! COMPUTE SIGNATURE, VERIFY SIGNATURE and PUT PUBLIC KEY: the commands that have sessions.

use std::time::Instant;

use warifu_card::apdu::StatusWord;
use warifu_card::crypto::Hash;
use warifu_card::ins;
use warifu_card::object::SIGNATURE_ECDSA;
use warifu_card::tlv::{self, tag};

use crate::applet::{Applet, Call};
use crate::error::TokenError;
use crate::object::{fields, value};
use crate::token::SignInput;

/// P1 of a session's last update.
const LAST: u8 = 0x80;
/// P1 that closes a session.
const CLOSE: u8 = 0x01;
/// The most bytes of a message in one update, so that it fits into a short command.
const PART_MAX_BYTES: usize = 240;
/// Mode (tag A1): the card hashes the message.
const FULL_TEXT: u8 = 1;
/// Mode (tag A1): the command carries the hash.
const PAD_AND_SIGN: u8 = 3;

/// Distinct session numbers for the three kinds, for cards that count them together.
const SIGN_SESSION: u8 = 0;
const VERIFY_SESSION: u8 = 1;
const PUT_SESSION: u8 = 2;

/// The signature session that is open on the card. It stays open, so that the next signature with
/// the same key takes one command.
#[derive(Default)]
pub(crate) struct Signing {
    open: Option<(Vec<u8>, u8, Hash)>,
    /// The card closes sessions by itself: opening one for each signature saves an exchange.
    closes_itself: bool,
}

impl Signing {
    /// The channel was lost, and the session with it.
    pub(crate) fn forget(&mut self) {
        self.open = None;
    }

    pub(crate) fn sign(
        &mut self,
        applet: &mut Applet,
        key: &[u8],
        input: SignInput<'_>,
        deadline: Instant,
    ) -> Result<[u8; 64], TokenError> {
        let wanted = (key.to_vec(), mode_of(input), input.hash());
        let kept = !self.closes_itself && self.open.as_ref() == Some(&wanted);
        if kept {
            match update(applet, &SIGN, &[], input, deadline) {
                Err(error) if error.sw() == Some(StatusWord::CONDITIONS) => {
                    self.closes_itself = true;
                    self.open = None;
                }
                answer => return self.finish(wanted, answer),
            }
        }
        self.close_other(applet, deadline)?;
        init(applet, &SIGN, tag::PRIVATE_KEY_ID, key, input, deadline)?;
        let answer = update(applet, &SIGN, &[], input, deadline);
        self.finish(wanted, answer)
    }

    /// Remembers the session after a success, and returns the signature of the answer.
    fn finish(
        &mut self,
        wanted: (Vec<u8>, u8, Hash),
        answer: Result<Vec<u8>, TokenError>,
    ) -> Result<[u8; 64], TokenError> {
        self.open = answer.is_ok().then_some(wanted);
        signature(&answer?)
    }

    fn close_other(&mut self, applet: &mut Applet, deadline: Instant) -> Result<(), TokenError> {
        if self.open.take().is_some() && !self.closes_itself {
            close(applet, &SIGN, deadline)?;
        }
        Ok(())
    }
}

/// VERIFY SIGNATURE: Ok(false) for an invalid signature.
pub(crate) fn verify(
    applet: &mut Applet,
    key: &[u8],
    input: SignInput<'_>,
    signature: &[u8; 64],
    deadline: Instant,
) -> Result<bool, TokenError> {
    init(applet, &VERIFY, tag::PUBLIC_KEY_ID, key, input, deadline)?;
    let signature = tlv::field(tag::SIGNATURE_VALUE, signature);
    let answer = update(applet, &VERIFY, &signature, input, deadline);
    let matches = match answer {
        Ok(_) => true,
        Err(TokenError::Status { sw: StatusWord::BAD_SIGNATURE, .. }) => false,
        Err(error) => return Err(error),
    };
    close(applet, &VERIFY, deadline)?;
    Ok(matches)
}

/// PUT PUBLIC KEY: puts a point (04, X, Y) into a public key container.
pub(crate) fn put_public_key(
    applet: &mut Applet,
    key: &[u8],
    point: &[u8],
    deadline: Instant,
) -> Result<(), TokenError> {
    let data = tlv::field(tag::PUBLIC_KEY_ID, key);
    open(applet, &PUT, &data, deadline)?;
    let point = tlv::field(tag::EC_KEY, &tlv::field(tag::EC_POINT, point));
    let data = tlv::field(tag::PUBLIC_KEY_DATA, &point);
    PUT.update(applet, LAST, &data, deadline)?;
    close(applet, &PUT, deadline)
}

/// The two commands of one kind of session.
struct Kind {
    name: &'static str,
    init: u8,
    update: u8,
    session: u8,
}

const SIGN: Kind = Kind {
    name: "COMPUTE SIGNATURE",
    init: ins::COMPUTE_SIGNATURE_INIT,
    update: ins::COMPUTE_SIGNATURE_UPDATE,
    session: SIGN_SESSION,
};
const VERIFY: Kind = Kind {
    name: "VERIFY SIGNATURE",
    init: ins::VERIFY_SIGNATURE_INIT,
    update: ins::VERIFY_SIGNATURE_UPDATE,
    session: VERIFY_SESSION,
};
const PUT: Kind = Kind {
    name: "PUT PUBLIC KEY",
    init: ins::PUT_PUBLIC_KEY_INIT,
    update: ins::PUT_PUBLIC_KEY_UPDATE,
    session: PUT_SESSION,
};

impl Kind {
    fn init(
        &self,
        applet: &mut Applet,
        p1: u8,
        data: &[u8],
        deadline: Instant,
    ) -> Result<Vec<u8>, TokenError> {
        let (name, ins, p2) = (self.name, self.init, self.session);
        applet.call(&Call { name, ins, p1, p2, data, answers: false }, deadline)
    }

    fn update(
        &self,
        applet: &mut Applet,
        p1: u8,
        data: &[u8],
        deadline: Instant,
    ) -> Result<Vec<u8>, TokenError> {
        let (name, ins, p2) = (self.name, self.update, self.session);
        let answers = ins == ins::COMPUTE_SIGNATURE_UPDATE && p1 == LAST;
        applet.call(&Call { name, ins, p1, p2, data, answers }, deadline)
    }
}

/// Opens a session, after closing one of the same number that a killed program has left open.
fn open(
    applet: &mut Applet,
    kind: &Kind,
    data: &[u8],
    deadline: Instant,
) -> Result<(), TokenError> {
    match kind.init(applet, 0, data, deadline) {
        Err(error) if error.sw() == Some(StatusWord::CONDITIONS) => {
            // If there was none to close, the first error was the reason.
            kind.init(applet, CLOSE, &[], deadline).map_err(|_| error)?;
            kind.init(applet, 0, data, deadline).map(drop)
        }
        other => other.map(drop),
    }
}

fn close(applet: &mut Applet, kind: &Kind, deadline: Instant) -> Result<(), TokenError> {
    match kind.init(applet, CLOSE, &[], deadline) {
        // Already closed.
        Err(TokenError::Status { .. }) => Ok(()),
        other => other.map(drop),
    }
}

fn init(
    applet: &mut Applet,
    kind: &Kind,
    id_tag: u8,
    key: &[u8],
    input: SignInput<'_>,
    deadline: Instant,
) -> Result<(), TokenError> {
    let mut data = tlv::field(id_tag, key);
    tlv::push(&mut data, tag::MODE, &[mode_of(input)]);
    tlv::push(&mut data, tag::HASH, &[0, input.hash().bit()]);
    tlv::push(&mut data, tag::SIGNATURE, &[SIGNATURE_ECDSA]);
    open(applet, kind, &data, deadline)
}

/// Sends the message or its digest; `suffix` follows in the last update.
fn update(
    applet: &mut Applet,
    kind: &Kind,
    suffix: &[u8],
    input: SignInput<'_>,
    deadline: Instant,
) -> Result<Vec<u8>, TokenError> {
    let (mut rest, field) = match input {
        SignInput::Digest(_, digest) => (digest, tag::FINAL_HASH),
        SignInput::Message(_, text) => (text, tag::FULL_TEXT),
    };
    // Each update is a complete field, so that it does not matter whether a card concatenates
    // fields or bytes.
    while rest.len() > PART_MAX_BYTES {
        let (part, others) = rest.split_at(PART_MAX_BYTES);
        kind.update(applet, 0, &tlv::field(field, part), deadline)?;
        rest = others;
    }
    let mut data = tlv::field(field, rest);
    if !suffix.is_empty() && data.len() + suffix.len() > 255 {
        kind.update(applet, 0, &data, deadline)?;
        data.clear();
    }
    data.extend_from_slice(suffix);
    kind.update(applet, LAST, &data, deadline)
}

fn mode_of(input: SignInput<'_>) -> u8 {
    match input {
        SignInput::Digest(..) => PAD_AND_SIGN,
        SignInput::Message(..) => FULL_TEXT,
    }
}

/// The 64 bytes of r and s in `33 40` or `33 00 40`.
fn signature(answer: &[u8]) -> Result<[u8; 64], TokenError> {
    let found =
        fields(answer).and_then(|fields| value(&fields, tag::SIGNATURE_VALUE)?.try_into().ok());
    found.ok_or(TokenError::answer("COMPUTE SIGNATURE", "contains no signature of 64 B"))
}
