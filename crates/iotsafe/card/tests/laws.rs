// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws that hold for any commands.

mod common;

use common::{Client, fields, init};
use proptest::prelude::*;
use warifu_card::object::{KeyAttributes, KeyType, Name, access};
use warifu_card::{Card, KeySource, Pin, PinScope, Quirks, Reset, StateError, ins};

/// A card where commands can change what is stored: persistent keys that may be updated, a PIN.
fn changeable(quirks: Quirks) -> Client {
    let mut client = Client::selected(quirks);
    let both = access::READ | access::UPDATE;
    let attributes = KeyAttributes::general(KeyType::BrainpoolP256r1Persistent);
    let name = Name::slot(9, "pair", both);
    let (card, rng) = (&mut client.card, &mut client.rng);
    card.add_key_pair(name, attributes, KeySource::Generate, rng).unwrap();
    card.set_pin(Pin::new("1234", PinScope::Nothing, 15));
    card.take_dirty();
    client
}

fn any_instruction() -> impl Strategy<Value = u8> {
    let known = vec![
        ins::PUT_PUBLIC_KEY_INIT,
        ins::PUT_PUBLIC_KEY_UPDATE,
        ins::COMPUTE_SIGNATURE_INIT,
        ins::COMPUTE_SIGNATURE_UPDATE,
        ins::VERIFY_SIGNATURE_INIT,
        ins::VERIFY_SIGNATURE_UPDATE,
        ins::COMPUTE_DH,
        ins::COMPUTE_PRF,
        ins::HKDF_EXTRACT,
        ins::GENERATE_KEY_PAIR,
        ins::GET_DATA,
        ins::READ_PUBLIC_KEY,
        ins::GET_RANDOM,
        ins::READ_FILE,
        ins::MANAGE_CHANNEL,
        ins::SELECT,
        ins::GET_RESPONSE,
    ];
    prop_oneof![9 => prop::sample::select(known), 1 => any::<u8>()]
}

/// Data that often mean something: fields with right tags, now and then cut.
fn any_data() -> impl Strategy<Value = Vec<u8>> {
    let tag = prop::sample::select(vec![
        0x33, 0x34, 0x73, 0x74, 0x75, 0x76, 0x83, 0x84, 0x85, 0x86, 0x91, 0x92, 0x9a, 0x9b, 0x9c,
        0x9d, 0x9e, 0xa1, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5,
    ]);
    let value = prop_oneof![
        4 => (0..12_u8).prop_map(|byte| vec![byte]),
        1 => prop::collection::vec(any::<u8>(), 0..70),
        1 => (0..8_u8).prop_map(|byte| vec![0, byte]),
        1 => Just(vec![7; 32]),
    ];
    let parts = prop::collection::vec((tag, value), 0..5);
    (parts, any::<prop::sample::Index>(), 0..10).prop_map(|(parts, cut, whole)| {
        let parts: Vec<(u8, &[u8])> = parts.iter().map(|(tag, value)| (*tag, &value[..])).collect();
        let mut data = fields(&parts);
        if whole == 0 && !data.is_empty() {
            data.truncate(cut.index(data.len()));
        }
        data
    })
}

fn any_command() -> impl Strategy<Value = Vec<u8>> {
    let cla = prop::sample::select(vec![0x00, 0x80, 0x80, 0x80, 0x81, 0x90, 0x84, 0xff]);
    let p1 = prop::sample::select(vec![0, 0, 0, 1, 0x80, 0x80, 4, 0xc1, 0xc3, 2]);
    let p2 = prop::sample::select(vec![0, 0, 0, 1, 2, 0x80]);
    let built = (cla, any_instruction(), p1, p2, any_data(), prop::option::of(any::<u8>()))
        .prop_map(|(cla, ins, p1, p2, data, le)| {
            let mut command = vec![cla, ins, p1, p2];
            if !data.is_empty() {
                command.push(data.len() as u8); // too long data make a malformed command
                command.extend(data);
            }
            command.extend(le);
            command
        });
    prop_oneof![9 => built, 1 => prop::collection::vec(any::<u8>(), 0..40)]
}

fn any_quirks() -> impl Strategy<Value = Quirks> {
    prop::sample::select(Quirks::PROFILES.map(|(_, quirks)| quirks).to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn refused_command_changes_nothing(
        quirks in any_quirks(),
        commands in prop::collection::vec(any_command(), 1..24),
    ) {
        let mut client = changeable(quirks);
        let mut stored = client.card.to_bytes();
        for command in commands {
            let answer = client.card.transmit(&command, &mut client.rng);
            let now = client.card.to_bytes();
            let dirty = client.card.take_dirty();
            let is_verify = command.get(1) == Some(&ins::VERIFY);
            if answer.sw.is_error() && !is_verify {
                prop_assert_eq!(&now, &stored, "{:02x?} gave {}", command, answer.sw);
            }
            prop_assert!(dirty || now == stored, "changed, and did not say so: {:02x?}", command);
            stored = now;
        }
    }

    #[test]
    fn state_round_trip_and_corruption(
        commands in prop::collection::vec(any_command(), 0..8),
        at: prop::sample::Index,
        bit in 0..8_u32,
    ) {
        let mut client = changeable(Quirks::WOLFSSL);
        for command in commands {
            client.card.transmit(&command, &mut client.rng);
        }
        let bytes = client.card.to_bytes();
        prop_assert_eq!(&Card::from_bytes(&bytes).unwrap().to_bytes(), &bytes);
        let mut damaged = bytes.to_vec();
        let at = at.index(damaged.len());
        damaged[at] ^= 1 << bit;
        prop_assert!(Card::from_bytes(&damaged).is_err());
        prop_assert!(Card::from_bytes(&bytes[..at]).is_err());
    }

    #[test]
    fn arbitrary_states_do_not_panic(bytes: Vec<u8>) {
        prop_assert!(Card::from_bytes(&bytes).is_err());
    }

    #[test]
    fn chained_command_equals_single_command(
        text in prop::collection::vec(any::<u8>(), 0..180),
        cut: prop::sample::Index,
    ) {
        let mut client = Client::selected(Quirks::STRICT);
        client.get(0x2a, 0, 1, &init(0x84, 1, 1, 1));
        let data = fields(&[(0x9b, &text)]);
        let (head, tail) = data.split_at(cut.index(data.len()));
        let mut first = vec![0x90, 0x2b, 0x80, 1];
        if !head.is_empty() {
            first.push(head.len() as u8);
            first.extend_from_slice(head);
        }
        prop_assert_eq!(client.raw(&first).sw.0, 0x9000);
        let signature = client.get(0x2b, 0x80, 1, tail);
        let digest = warifu_card::crypto::Hash::Sha256.digest(&text);
        let point = client.card.export_public_key(&[1]).unwrap();
        prop_assert!(point.verify(&digest, signature[2..].try_into().unwrap()));
    }
}

#[test]
fn corrupt_state_errors() {
    let bytes = Client::selected(Quirks::STRICT).card.to_bytes();
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.to_vec();
        change(&mut bytes);
        Card::from_bytes(&bytes).unwrap_err()
    };
    assert_eq!(refused(&|bytes| bytes[0] = b'X'), StateError::Magic);
    assert_eq!(refused(&|bytes| bytes.clear()), StateError::Magic);
    assert_eq!(refused(&|bytes| bytes[9] = 9), StateError::Version { found: 9 });
    let (found_bytes, expected_bytes) = (bytes.len() - 1, bytes.len());
    let cut = StateError::Length { found_bytes, expected_bytes };
    assert_eq!(refused(&|bytes| bytes.truncate(found_bytes)), cut);
    assert_eq!(refused(&|bytes| bytes[40] ^= 1), StateError::Checksum);
    assert!(StateError::Checksum.to_string().contains("restore a copy"));
}

#[test]
fn reset_keeps_persistent_state_only() {
    let mut client = Client::selected(Quirks::STRICT);
    client.get(0xb9, 0, 0, &[0x84, 1, 4]);
    client.get(0xcd, 0, 0, &[0x85, 1, 4]);
    let stored = client.card.to_bytes();
    client.card.reset(Reset::Warm);
    assert_eq!(client.card.to_bytes(), stored);
    assert_eq!(client.ask(0xcd, 0, 0, &[0x85, 1, 1]).sw.0, 0x6985, "nothing is selected");
    client.select();
    client.get(0xcd, 0, 0, &[0x85, 1, 1]);
    assert_eq!(client.ask(0xcd, 0, 0, &[0x85, 1, 4]).sw.0, 0x6985, "the pair is gone");
}
