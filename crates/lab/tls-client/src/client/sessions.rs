// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sessions that resuming connections take up, and the lengths of messages.

use std::sync::{Mutex, PoisonError};

use openssl::ssl::SslSession;
use warifu_model::CipherSuite;

use super::outcome::Sizes;
use crate::ffi::{Content, Watch};
use crate::record::{Messages, message_name, signature_bytes};

/// Sessions, taken by turns.
#[derive(Default)]
pub(super) struct Sessions {
    all: Vec<SslSession>,
    next: usize,
}

impl Sessions {
    pub(super) fn add(&mut self, session: SslSession) {
        self.all.push(session);
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn take(&mut self) -> Option<SslSession> {
        let session = self.all.get(self.next)?.clone();
        self.next = (self.next + 1) % self.all.len();
        Some(session)
    }
}

/// Remembers the lengths of the messages that pass up to the first response, and of their
/// signatures.
pub(super) struct Seen {
    state: Mutex<State>,
}

struct State {
    signatures: Vec<u16>,
    sent: Messages,
    received: Messages,
}

/// More than a handshake, its tickets and a short request and response have, so that no memory is
/// asked for while a connection is timed.
const USUAL_MESSAGES: usize = 32;
/// Application data of a long request or response is not told beyond this.
const MOST_MESSAGES: usize = 128;

impl Seen {
    pub(super) fn new(suite: CipherSuite) -> Seen {
        let messages = || Messages::new(suite, USUAL_MESSAGES);
        let state =
            State { signatures: Vec::with_capacity(2), sent: messages(), received: messages() };
        Seen { state: Mutex::new(state) }
    }

    /// The lengths of signatures in order of their messages, B, and the messages of each direction.
    pub(super) fn told(&self) -> (Vec<u16>, Sizes) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let lengths = |messages: &Messages| {
            messages.all.iter().map(|message| (message.name, message.wire_bytes)).collect()
        };
        let sizes = Sizes { client: lengths(&state.sent), server: lengths(&state.received) };
        (state.signatures.clone(), sizes)
    }
}

impl Watch for Seen {
    fn message(&self, sent: bool, content: Content, bytes: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if content == Content::Handshake
            && let Some(length) = signature_bytes(message_name(bytes), bytes)
        {
            state.signatures.push(u16::try_from(length).unwrap_or(u16::MAX));
        }
        let direction = if sent { &mut state.sent } else { &mut state.received };
        if direction.all.len() < MOST_MESSAGES {
            direction.note(content, bytes);
        }
    }
}
