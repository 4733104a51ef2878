// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two domains that have matched in memory, as Cyclone would bring them together.
#![allow(dead_code)] // No test file uses all of it.

use std::sync::atomic::{AtomicU64, Ordering};

use warifu_dds_crypto::algorithm::{Aead, Mode};
use warifu_dds_crypto::cipher::Tag;
use warifu_dds_crypto::entity::Handle;
use warifu_dds_crypto::error::Result;
use warifu_dds_crypto::exchange::{PeerToken, Token};
use warifu_dds_crypto::factory::{Endpoint, Factory};
use warifu_dds_crypto::keys::{MasterKey, SharedSecret};
use warifu_dds_crypto::protection::Protection;
use warifu_dds_crypto::random::Random;
use warifu_dds_crypto::settings::Settings;
use warifu_dds_crypto::wire::{self, Form, HeaderOctets};

/// SplitMix64, so that a failure returns with its seed.
pub struct Seeded(AtomicU64);

impl Seeded {
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Random for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        for chunk in bytes.chunks_mut(8) {
            let state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// How much is protected.
#[derive(Debug, Clone, Copy)]
pub struct Governance {
    pub data: Option<Mode>,
    pub metadata: Protection,
    pub rtps: Protection,
}

pub const ENCRYPT: Protection = Protection::new(true, true, false);
pub const SIGN: Protection = Protection::new(true, false, false);
pub const ENCRYPT_ORIGIN: Protection = Protection::new(true, true, true);
pub const SIGN_ORIGIN: Protection = Protection::new(true, false, true);
pub const NONE: Protection = Protection::new(false, false, false);

impl Governance {
    pub const fn of_all(protection: Protection) -> Self {
        Self { data: protection.mode, metadata: protection, rtps: protection }
    }
}

/// One side: a participant, and what it knows of the other.
pub struct Side {
    pub factory: Factory,
    pub participant: Handle,
    pub peer: Handle,
    /// A writer and a reader of its own.
    pub writer: Handle,
    pub reader: Handle,
    /// The peer's, as matched.
    pub peer_reader: Handle,
    pub peer_writer: Handle,
    pub volatile_writer: Handle,
    pub volatile_reader: Handle,
    pub peer_volatile_reader: Handle,
    pub peer_volatile_writer: Handle,
}

impl Side {
    pub fn new(settings: Settings, governance: Governance, seed: u64) -> Self {
        let factory = Factory::new(settings, Box::new(Seeded::new(seed)));
        let participant =
            factory.register_local_participant(&settings, governance.rtps).expect("a participant");
        let endpoint = |is_volatile| Endpoint {
            aead: None,
            protection: governance.metadata,
            payload: governance.data,
            is_volatile,
        };
        let shared = shared_secret();
        let peer = factory.register_remote_participant(participant, 7, &shared).expect("a peer");
        let writer = |is_volatile| {
            factory.register_local_writer(participant, endpoint(is_volatile)).expect("a writer")
        };
        let reader = |is_volatile| {
            factory.register_local_reader(participant, endpoint(is_volatile)).expect("a reader")
        };
        let (own_writer, own_reader) = (writer(false), reader(false));
        let (volatile_writer, volatile_reader) = (writer(true), reader(true));
        let peer_reader = |own| factory.register_remote_reader(own, peer).expect("a peer's reader");
        let peer_writer = |own| factory.register_remote_writer(own, peer).expect("a peer's writer");
        Self {
            participant,
            peer,
            writer: own_writer,
            reader: own_reader,
            peer_reader: peer_reader(own_writer),
            peer_writer: peer_writer(own_reader),
            volatile_writer,
            volatile_reader,
            peer_volatile_reader: peer_reader(volatile_writer),
            peer_volatile_writer: peer_writer(volatile_reader),
            factory,
        }
    }

    /// Takes the keys of the other.
    pub fn learn(&self, other: &Self) -> Result<()> {
        let tokens = other.factory.participant_tokens(other.participant, other.peer)?;
        self.factory.set_participant_tokens(self.participant, self.peer, &received(&tokens))?;
        let tokens = other.factory.writer_tokens(other.writer, other.peer_reader)?;
        self.factory.set_writer_tokens(self.reader, self.peer_writer, &received(&tokens))?;
        let tokens = other.factory.reader_tokens(other.reader, other.peer_writer)?;
        self.factory.set_reader_tokens(self.writer, self.peer_reader, &received(&tokens))
    }
}

/// Two that know each other's keys.
pub fn pair(aead: Aead, governance: Governance) -> (Side, Side) {
    pair_with(Settings { aead, ..Settings::default() }, governance)
}

pub fn pair_with(settings: Settings, governance: Governance) -> (Side, Side) {
    let alice = Side::new(settings, governance, 1);
    let bob = Side::new(settings, governance, 2);
    alice.learn(&bob).expect("the keys of Bob");
    bob.learn(&alice).expect("the keys of Alice");
    (alice, bob)
}

pub fn shared_secret() -> SharedSecret<'static> {
    SharedSecret { secret: &[3; 32], challenge1: &[1; 32], challenge2: &[2; 32] }
}

/// Tokens as the other side gets them.
pub fn received(tokens: &[Token]) -> Vec<PeerToken<'_>> {
    let class = |token: &Token| token.class_id;
    let tokens = tokens.iter();
    tokens.map(|t| PeerToken { class_id: class(t), key_material: &t.key_material }).collect()
}

/// A buffer as the safe functions take it.
pub fn vec(capacity: usize) -> Result<Vec<u8>> {
    Ok(Vec::with_capacity(capacity))
}

/// A DATA submessage of so many octets, a multiple of 4.
pub fn submessage(octets: usize) -> Vec<u8> {
    let body = u16::try_from(octets - 4).expect("a length of 16 bit").to_le_bytes();
    let mut submessage = vec![0x15, 0x05, body[0], body[1]];
    submessage.extend((4..octets).map(|index| (index % 251) as u8));
    submessage
}

/// An RTPS message with one of them.
pub fn message(octets: usize) -> Vec<u8> {
    let mut message = b"RTPS\x02\x01\x01\x10".to_vec();
    message.extend_from_slice(&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 11, 12]);
    message.extend_from_slice(&submessage(octets));
    message
}

/// Something protected as whoever has a key can: in any session, under any nonce.
pub struct Forge<'a> {
    pub master: &'a MasterKey,
    pub form: Form,
    pub session_id: u32,
    pub count: u64,
    /// Receivers' key ids and tags.
    pub tags: &'a [(u32, Tag)],
}

impl Forge<'_> {
    /// An encrypted message, without an RTPS header.
    pub fn make(&self, plain: &[u8]) -> Vec<u8> {
        let kind = self.master.kind;
        let mut nonce = vec![0; kind.aead.nonce_bytes()];
        nonce[..4].copy_from_slice(&self.session_id.to_be_bytes());
        let end = nonce.len();
        nonce[end - 8..].copy_from_slice(&self.count.to_be_bytes());
        let cipher = self.master.session(self.session_id).expect("a session");
        let mut content = plain.to_vec();
        let tag = cipher.seal(&nonce, &[], &mut content).expect("sealed");
        self.wrap(&HeaderOctets::new(kind, self.master.id, &nonce), &content, &tag)
    }

    /// The same from parts that were sealed by somebody else.
    pub fn wrap(&self, header: &HeaderOctets, content: &[u8], tag: &Tag) -> Vec<u8> {
        let (kind, length) = (self.master.kind, content.len());
        let mut out = Vec::new();
        self.form.begin(&mut out, kind, header, length).expect("short enough");
        out.extend_from_slice(content);
        self.form.end(&mut out, kind, length, tag, self.tags.len()).expect("short enough");
        for (id, tag) in self.tags {
            wire::put_receiver_tag(&mut out, *id, tag);
        }
        out
    }
}

/// The key in a token.
pub fn key(token: &Token) -> MasterKey {
    MasterKey::from_token(&token.key_material).expect("a token").expect("of a key")
}
