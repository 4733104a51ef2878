// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any bytes are commands to a card, one behind a length byte each. Each gets an answer; one that
//! is refused changes nothing that survives a reset, but for the PIN's counter. The same bytes
//! are a stored state or one mistake.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use warifu_card::object::{KeyAttributes, KeyType, Name, access};
use warifu_card::{Card, KeySource, Pin, PinScope, Quirks, Settings, ins};

/// Checks one input.
pub fn check(bytes: &[u8]) {
    if let Err(error) = Card::from_bytes(bytes) {
        assert_eq!(error.to_string().lines().count(), 1);
    }
    let [profile, script @ ..] = bytes else { return };
    let (_, quirks) = Quirks::PROFILES[usize::from(*profile) % Quirks::PROFILES.len()];
    let pin = Pin::new("1234", PinScope::Nothing, 3);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let settings = Settings { quirks, pin, ..Settings::default() };
    let mut card = Card::new(settings);
    let name = Name::slot(1, "key", access::READ | access::UPDATE);
    let attributes = KeyAttributes::general(KeyType::Secp256r1Persistent);
    card.add_key_pair(name, attributes, KeySource::Scalar(&[1; 32]), &mut rng).expect("an id");
    card.add_file(Name::slot(2, "file", access::READ), 1, &[7; 300]).expect("an id");
    card.take_dirty();

    let mut stored = card.to_bytes();
    let mut rest = script;
    while let [length, tail @ ..] = rest {
        let (command, next) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = next;
        let answer = card.transmit(command, &mut rng);
        assert!(answer.data.len() <= 0x1_0000);
        let dirty = card.take_dirty();
        let now = card.to_bytes();
        if answer.sw.is_error() && command.get(1) != Some(&ins::VERIFY) {
            assert_eq!(now, stored, "{command:02x?} gave {}", answer.sw);
        }
        assert!(dirty || now == stored, "{command:02x?} changed the state and did not say so");
        stored = now;
    }
    let again = Card::from_bytes(&stored).expect("its own bytes");
    assert_eq!(again.to_bytes(), stored);
}
