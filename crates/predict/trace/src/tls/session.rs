// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What outlives a connection and changes the next one.

use warifu_model::{CipherSuite, TlsVersion};

use crate::trace::Bytes;

/// What a device remembers between connections.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionState {
    /// Whether the key store's session is open and the key found, so that a signature needs
    /// C_SignInit and C_Sign alone. A connection leaves this as it was: a program that opens
    /// a session for a connection closes it with the connection.
    pub key_store_session_open: bool,
    /// The tickets in store, oldest first. A connection offers the youngest that fits, and
    /// may use one any number of times, as OpenSSL lets it.
    pub tickets: Vec<Ticket>,
}

/// A session ticket (RFC 5077; RFC 8446 section 4.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The version that it resumes.
    pub tls: TlsVersion,
    /// The suite that it resumes.
    pub cipher_suite: CipherSuite,
    /// Its length.
    pub bytes: Bytes,
    /// How much early data it allows (RFC 8446 section 4.2.10), B; 0 for none.
    pub max_early_data: u32,
}
