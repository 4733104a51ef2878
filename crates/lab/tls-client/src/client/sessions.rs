// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sessions that resuming connections take up, and the lengths of signatures.

use std::sync::{Mutex, PoisonError};

use openssl::ssl::SslSession;

use crate::ffi::{Content, Watch};
use crate::record::{message_name, signature_bytes};

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

/// Remembers the lengths of the signatures that pass.
#[derive(Default)]
pub(super) struct Signatures {
    seen: Mutex<Vec<u16>>,
}

impl Signatures {
    pub(super) fn seen(&self) -> Vec<u16> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Watch for Signatures {
    fn message(&self, _sent: bool, content: Content, bytes: &[u8]) {
        if content != Content::Handshake {
            return;
        }
        if let Some(length) = signature_bytes(message_name(bytes), bytes) {
            let length = u16::try_from(length).unwrap_or(u16::MAX);
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(length);
        }
    }
}
