// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is made ahead, and the volatile keys that callers are lent.

use std::thread;
use std::time::Duration;

use warifu_card::faults::{Fault, Plan};
use warifu_iotsafe_client::{Token, TokenError};

use crate::common::soon;
use crate::{KEY, VOLATILE, bench};

#[test]
fn volatile_key_is_lent_until_disconnection() {
    let bench = bench(None, None);
    bench.idle();
    let (mut one, mut other) = (bench.token(), bench.token());
    let before = bench.world().commands;
    let pair = one.generate(&VOLATILE, soon()).unwrap();
    assert_eq!(bench.world().commands, before, "it was made ahead");
    let point = bench.world().card.card().export_public_key(&VOLATILE).unwrap();
    assert_eq!(*point.bytes(), pair.point);

    let peer = *bench.world().card.card().export_public_key(&KEY).unwrap().bytes();
    let secret = one.derive(&VOLATILE, &peer, soon()).unwrap();
    let shared = one.derive(&KEY, &pair.point, soon()).unwrap();
    assert_eq!(secret, shared);
    assert_eq!(other.generate(&VOLATILE, soon()), Err(TokenError::ContainerInUse));
    assert_eq!(other.derive(&VOLATILE, &peer, soon()), Err(TokenError::ContainerInUse));
    let has = |inventory: warifu_iotsafe_client::Inventory| {
        inventory.private_keys.iter().any(|key| key.id == VOLATILE)
    };
    assert!(has(one.objects(soon()).unwrap()) && !has(other.objects(soon()).unwrap()));

    one.release(soon());
    let mut tries = 0;
    while other.generate(&VOLATILE, soon()).is_err() {
        tries += 1;
        assert!(tries < 1000, "the container is free after its caller has disconnected");
        thread::sleep(Duration::from_millis(1));
    }
    assert!(one.derive(&VOLATILE, &peer, soon()).is_err(), "not its key any more");
}

#[test]
fn volatile_key_is_lost_at_card_reset() {
    let bench = bench(None, None);
    let mut token = bench.token();
    token.generate(&VOLATILE, soon()).unwrap();
    bench.world().card.replace_plan(Plan::Script([Some(Fault::Reset)].into_iter().collect()));
    let peer = *bench.world().card.card().export_public_key(&KEY).unwrap().bytes();
    assert_eq!(token.derive(&VOLATILE, &peer, soon()), Err(TokenError::KeyLost));
    bench.idle();
    assert_eq!(bench.metric("warifu_agent_ahead_total{card=\"card\",kind=\"made_pair\"}"), 1);
    assert_eq!(token.derive(&VOLATILE, &peer, soon()), Err(TokenError::KeyLost));
}

#[test]
fn random_bytes_made_ahead_are_used_once() {
    let bench = bench(None, None);
    bench.idle();
    let before = bench.world().commands;
    let mut token = bench.token();
    let mut rooms = [[0; 64]; 16];
    for room in &mut rooms {
        token.random(room, soon()).unwrap();
    }
    assert_eq!(bench.world().commands, before, "1024 bytes were there");
    let distinct: std::collections::BTreeSet<_> = rooms.iter().collect();
    assert_eq!(distinct.len(), rooms.len());
    token.random(&mut rooms[0], soon()).unwrap();
    assert!(bench.world().commands > before);
}
