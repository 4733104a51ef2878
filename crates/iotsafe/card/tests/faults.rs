// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A card with faults of every kind: what it signs and what it stores.

mod common;

use chacha20::ChaCha20Rng;
use common::{Client, fields, init};
use proptest::prelude::*;
use warifu_card::faults::{Fault, FaultyCard, Outcome, Plan, Rates};
use warifu_card::object::{KeyAttributes, KeyType, Name, access};
use warifu_card::tlv::tag;
use warifu_card::{Card, KeySource, Quirks, Reset, Response, StatusWord};
use warifu_model::Nanos;

fn any_fault() -> impl Strategy<Value = Option<Fault>> {
    prop_oneof![
        2 => Just(None),
        1 => Just(Some(Fault::LostAnswer)),
        1 => (0..2_000_000_000_u64).prop_map(|by| Some(Fault::LateAnswer { by: Nanos(by) })),
        1 => Just(Some(Fault::FlippedBit)),
        1 => Just(Some(Fault::WrongStatus)),
        1 => (1..4_u32).prop_map(|commands| Some(Fault::Removed { commands })),
        1 => Just(Some(Fault::Reset)),
        1 => Just(Some(Fault::PowerCutBeforeWrite)),
        1 => Just(Some(Fault::PowerCutAfterWrite)),
    ]
}

/// A selected card that has a persistent pair 9 which commands may generate anew.
fn card() -> (Card, ChaCha20Rng) {
    let mut client = Client::selected(Quirks::STRICT);
    let name = Name::slot(9, "", access::READ | access::UPDATE);
    let attributes = KeyAttributes::general(KeyType::Secp256r1Persistent);
    let (card, rng) = (&mut client.card, &mut client.rng);
    card.add_key_pair(name, attributes, KeySource::Generate, rng).unwrap();
    card.take_dirty();
    (client.card, client.rng)
}

fn select() -> Vec<u8> {
    let aid = warifu_card::AIDS[0];
    [&[0, 0xa4, 4, 0x0c, aid.len() as u8], aid].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn stored_state_is_from_before_or_after_a_command(
        faults in prop::collection::vec(any_fault(), 1..30),
        seed: u64,
    ) {
        let (card, mut rng) = card();
        let plan = Plan::Script(faults.iter().copied().collect());
        let mut faulty = FaultyCard::new(card, plan, seed);
        let generate = [0x80, 0xb9, 0, 0, 3, 0x84, 1, 9, 0];
        for turn in 0..faults.len() {
            let before = faulty.stored().to_vec();
            let command = if turn % 2 == 0 { select() } else { generate.to_vec() };
            let outcome = faulty.transmit(&command, &mut rng);
            let after = faulty.stored().to_vec();
            prop_assert_eq!(faulty.take_dirty(), before != after);
            prop_assert_eq!(&**faulty.card().to_bytes(), &after[..]);
            prop_assert_eq!(&**Card::from_bytes(&after).unwrap().to_bytes(), &after[..]);
            let carried_out = |response: &Response| {
                command == generate && response.sw == StatusWord::OK && !response.data.is_empty()
            };
            match outcome {
                Outcome::Absent => prop_assert_eq!(before, after),
                Outcome::Answer(response) | Outcome::Late { response, .. } => {
                    prop_assert!(!carried_out(&response) || before != after);
                }
                Outcome::Lost | Outcome::Reset => {}
            }
        }
    }
}

/// A client that selects anew after each trouble and checks what it gets loses signatures and
/// never takes a wrong one.
#[test]
fn faulty_signature_fails_verification() {
    let (card, mut random) = card();
    let point = card.export_public_key(&[1]).unwrap();
    let rates = Rates {
        lost: 0.02,
        late: 0.02,
        late_by: Nanos(5_000_000_000),
        flipped: 0.05,
        wrong_status: 0.02,
        removed: 0.02,
        reset: 0.02,
        power_cut: 0.02,
    };
    let mut faulty = FaultyCard::new(card, Plan::Rates(rates), 5);
    let (mut right, mut wrong) = (0, 0);
    for turn in 0..400_u32 {
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(&turn.to_be_bytes());
        let hash = fields(&[(tag::FINAL_HASH, &digest)]);
        let open = init(tag::PRIVATE_KEY_ID, 1, 3, 1);
        let commands = [
            select(),
            [&[0x80, 0x2a, 0, 1, open.len() as u8], &open[..]].concat(),
            [&[0x80, 0x2b, 0x80, 1, hash.len() as u8], &hash[..], &[0]].concat(),
        ];
        let mut last = None;
        for command in commands {
            match faulty.transmit(&command, &mut random) {
                Outcome::Answer(response) if !response.sw.is_error() => last = Some(response),
                _ => {
                    last = None;
                    break;
                }
            }
        }
        let Some(response) = last else {
            faulty.reset(Reset::Warm);
            continue;
        };
        let signature: &[u8; 64] = response.data[2..].try_into().unwrap();
        if point.verify(&digest, signature) { right += 1 } else { wrong += 1 }
    }
    // Both happen; a flipped bit is the only way to a wrong signature, and it always is one.
    assert!(right > 200, "{right}");
    assert!((1..=faulty.counts()["flipped bit"]).contains(&wrong), "{wrong}");
}
