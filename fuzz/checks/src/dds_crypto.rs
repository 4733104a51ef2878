// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any bytes arrive at the DDS plugin as a protected sample, submessage or RTPS message, on their
//! own or as changes of one that a peer has sent. What is read is what was sent, or nothing. The
//! same bytes are a peer's keys.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use warifu_dds_crypto::algorithm::Aead;
use warifu_dds_crypto::entity::Handle;
use warifu_dds_crypto::error::Result;
use warifu_dds_crypto::exchange::{PeerToken, Token};
use warifu_dds_crypto::factory::{Endpoint, Factory};
use warifu_dds_crypto::keys::{MasterKey, SharedSecret};
use warifu_dds_crypto::protection::Protection;
use warifu_dds_crypto::random::Random;
use warifu_dds_crypto::settings::Settings;
use warifu_dds_crypto::wire::{self, Protected};

const PROTECTIONS: [Protection; 4] = [
    Protection::new(true, false, false),
    Protection::new(true, true, false),
    Protection::new(true, false, true),
    Protection::new(true, true, true),
];

const RTPS: &[u8; 20] = b"RTPS\x02\x01\x01\x10ABCDEFGHIJKL";

/// Checks one input.
pub fn check(bytes: &[u8]) {
    let _ = MasterKey::from_token(bytes);
    let [choice, site, length, edits @ ..] = bytes else { return };
    let aead = Aead::ALL[usize::from(*choice) % Aead::ALL.len()];
    let protection = PROTECTIONS[usize::from(*choice) / Aead::ALL.len() % PROTECTIONS.len()];
    // New keys for each input: a fuzzer that sees how far a comparison of tags went would else find
    // the tag of a message of its own.
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let (alice, bob) = pair(aead, protection, hasher.finish());
    let plain = plain(*site, *length);
    let sent = alice.send(*site, &plain).expect("sent");
    bob.receive(*site, edits).expect_err("nobody can make a tag without the key");
    let changed = changed(&sent, edits);
    match bob.receive(*site, &changed) {
        // An RTPS message has its source's INFO_SRC in front; its header's other fields are
        // no part of what is protected.
        Ok(read) if site & 3 == 3 => assert_eq!(read[44..], plain[20..]),
        Ok(read) => assert_eq!(read, plain),
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1);
            assert_ne!(changed, sent, "refused as it was sent: {error}");
        }
    }
    // Keys that mean nothing are refused, and leave those that do.
    let class_id = aead.class_id();
    let key_material = edits;
    let _ = bob.factory.set_participant_tokens(
        bob.participant,
        bob.peer,
        &[PeerToken { class_id, key_material }],
    );
    bob.learn(&alice).expect("a peer's keys");
}

/// What became of packets that were changed on their way.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mutated {
    /// Refused.
    pub rejected: u64,
    /// Read as they were sent: the change was in padding, or in a field that says nothing.
    pub identical: u64,
}

/// Changes so many packets, of each AEAD, protection and place in turn, one to eight times each.
/// Panics if anything is read that was not sent, or under another tag than it was sent with.
pub fn mutate(packets: u64, seed: u64) -> Mutated {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut mutated = Mutated::default();
    let places: Vec<(Aead, Protection, u8)> = Aead::ALL
        .into_iter()
        .flat_map(|aead| PROTECTIONS.map(|protection| (aead, protection)))
        .flat_map(|(aead, protection)| [0, 1, 2, 3].map(|site| (aead, protection, site)))
        .collect();
    for (index, (aead, protection, site)) in places.iter().enumerate() {
        let (alice, bob) = pair(*aead, *protection, random.next_u64());
        let (index, count) = (index as u64, places.len() as u64);
        for _ in 0..packets / count + u64::from(index < packets % count) {
            let mut edits = [0; 25];
            random.fill_bytes(&mut edits);
            let plain = plain(*site, edits[24]);
            let sent = alice.send(*site, &plain).expect("sent");
            let changed = changed(&sent, &edits[..3 * (1 + usize::from(edits[23] & 7))]);
            let read = bob.receive(*site, &changed);
            if changed == sent {
                read.expect("it was not changed after all");
                mutated.identical += 1;
                continue;
            }
            let Ok(read) = read else {
                mutated.rejected += 1;
                continue;
            };
            let is_message = site & 3 == 3;
            assert!(if is_message { read[44..] == plain[20..] } else { read == plain });
            let (was, is) = (protected(*site, &sent), protected(*site, &changed));
            assert_eq!((was.tag, was.body, was.header), (is.tag, is.body, is.header));
            mutated.identical += 1;
        }
        // And whatever came before spoils nothing.
        let last = alice.send(*site, &plain(*site, 64)).expect("sent");
        bob.receive(*site, &last).expect("what nobody changed is read");
    }
    mutated
}

/// Something to send.
fn plain(site: u8, length: u8) -> Vec<u8> {
    if site & 3 == 3 {
        RTPS.iter().copied().chain(submessage(length)).collect()
    } else {
        submessage(length)
    }
}

/// Taken apart.
fn protected(site: u8, packet: &[u8]) -> Protected<'_> {
    match site & 3 {
        0 => wire::payload(packet).expect("a payload"),
        3 => wire::message(packet).expect("a message").1,
        _ => wire::submessage(packet).expect("a submessage"),
    }
}

/// A DATA submessage.
fn submessage(length: u8) -> Vec<u8> {
    let octets = usize::from(length) & !3;
    let header = [0x15, 1, length & !3, 0];
    header.into_iter().chain((0..octets).map(|index| index as u8)).collect()
}

/// Edits, three bytes each: where, and what is done there.
fn changed(sent: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut packet = sent.to_vec();
    let (edits, _) = edits.as_chunks::<3>();
    for [low, action, value] in edits.iter().take(8) {
        if packet.is_empty() {
            break;
        }
        let at = (usize::from(*low) + (usize::from(*action) >> 2 << 8)) % packet.len();
        match action & 3 {
            0 => packet[at] ^= value,
            1 => packet[at] = *value,
            2 => packet.truncate(at),
            _ => packet.insert(at, *value),
        }
    }
    packet
}

struct Side {
    factory: Factory,
    participant: Handle,
    peer: Handle,
    writer: Handle,
    reader: Handle,
    peer_writer: Handle,
    peer_reader: Handle,
}

impl Side {
    fn new(aead: Aead, protection: Protection, seed: u64) -> Self {
        let settings = Settings { aead, ..Settings::default() };
        let random = Mutex::new(ChaCha8Rng::seed_from_u64(seed));
        let factory = Factory::new(settings, Box::new(Seeded(random)));
        let participant = factory.register_local_participant(&settings, protection).expect("us");
        let shared = SharedSecret { secret: &[3; 32], challenge1: &[1; 32], challenge2: &[2; 32] };
        let peer = factory.register_remote_participant(participant, 7, &shared).expect("a peer");
        let payload = protection.mode;
        let endpoint = Endpoint { aead: None, protection, payload, is_volatile: false };
        let writer = factory.register_local_writer(participant, endpoint).expect("a writer");
        let reader = factory.register_local_reader(participant, endpoint).expect("a reader");
        let peer_writer = factory.register_remote_writer(reader, peer).expect("a peer's writer");
        let peer_reader = factory.register_remote_reader(writer, peer).expect("a peer's reader");
        Self { factory, participant, peer, writer, reader, peer_writer, peer_reader }
    }

    fn learn(&self, other: &Self) -> Result<()> {
        let tokens = other.factory.participant_tokens(other.participant, other.peer)?;
        self.factory.set_participant_tokens(self.participant, self.peer, &received(&tokens))?;
        let tokens = other.factory.writer_tokens(other.writer, other.peer_reader)?;
        self.factory.set_writer_tokens(self.reader, self.peer_writer, &received(&tokens))?;
        let tokens = other.factory.reader_tokens(other.reader, other.peer_writer)?;
        self.factory.set_reader_tokens(self.writer, self.peer_reader, &received(&tokens))
    }

    fn send(&self, site: u8, plain: &[u8]) -> Result<Vec<u8>> {
        let (factory, vec) = (&self.factory, |bytes| Ok(Vec::with_capacity(bytes)));
        match site & 3 {
            0 => factory.encode_payload(self.writer, plain, vec),
            1 => factory.encode_writer_submessage(self.writer, &[self.peer_reader], plain, vec),
            2 => factory.encode_reader_submessage(self.reader, &[self.peer_writer], plain, vec),
            _ => factory.encode_message(self.participant, &[self.peer], plain, vec),
        }
    }

    fn receive(&self, site: u8, packet: &[u8]) -> Result<Vec<u8>> {
        let (factory, vec) = (&self.factory, |bytes| Ok(Vec::with_capacity(bytes)));
        if site & 3 == 1 || site & 3 == 2 {
            factory.preprocess(self.participant, self.peer, packet)?;
        }
        match site & 3 {
            0 => factory.decode_payload(self.reader, self.peer_writer, packet, vec),
            1 => factory.decode_writer_submessage(self.reader, self.peer_writer, packet, vec),
            2 => factory.decode_reader_submessage(self.writer, self.peer_reader, packet, vec),
            _ => factory.decode_message(self.participant, self.peer, packet, vec),
        }
    }
}

fn pair(aead: Aead, protection: Protection, seed: u64) -> (Side, Side) {
    let alice = Side::new(aead, protection, seed);
    let bob = Side::new(aead, protection, !seed);
    alice.learn(&bob).expect("Bob's keys");
    bob.learn(&alice).expect("Alice's keys");
    (alice, bob)
}

fn received(tokens: &[Token]) -> Vec<PeerToken<'_>> {
    let peers = tokens.iter();
    peers
        .map(|token| PeerToken { class_id: token.class_id, key_material: &token.key_material })
        .collect()
}

struct Seeded(Mutex<ChaCha8Rng>);

impl Random for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        self.0.lock().expect("no panic").fill_bytes(bytes);
        Ok(())
    }
}
