// SPDX-License-Identifier: Apache-2.0 OR MIT
//! 100,000 requests leave no more memory in use than the first ones did. Alone in its process:
//! other tests allocate too.

mod common;

use std::collections::VecDeque;

use common::{Bench, PIN, World, ask, jwt, soon};
use warifu_agent_protocol::message::{Call, JwtRequest};
use warifu_card::PinScope;
use warifu_card::faults::{Fault, Plan};
use warifu_iotsafe_client::{Hash, PinState, SignInput, Token, TokenError};

const KEY: [u8; 1] = [1];
/// Requests of one round below, at least.
const REQUESTS: usize = 8;
const ROUNDS: usize = 13_000;
/// Rounds until every cache is as full as it gets.
const WARM_ROUNDS: usize = 500;
/// How often, in rounds, a caller is a new one, and how often the card has work.
const CALLERS: usize = 5;
const WORK: usize = 100;
/// The allocator's smallest piece, 32 bytes, lost once for every [`CALLERS`] rounds would be
/// 80,000. Threads that are about to end still hold some kilobytes.
const SLACK_BYTES: usize = 40_000;

/// Bytes in use on the heap, as the allocator counts them, over all threads.
fn in_use() -> usize {
    // SAFETY: it has no conditions.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

/// What callers ask for: mostly what needs no card; now and then a signature, a lost session, a
/// token that was not kept.
fn round(bench: &Bench, at: usize) {
    let (mut token, mut client) = (bench.token(), bench.client());
    for _ in 0..CALLERS {
        token.info(soon()).unwrap();
        assert_eq!(token.pin_state(soon()), Ok(PinState::Absent));
        token.verify_pin(PIN.as_bytes(), soon()).unwrap();
        assert!(!token.objects(soon()).unwrap().private_keys.is_empty());
        token.read_public_key(&KEY, soon()).unwrap();
        token.random(&mut [0; 8], soon()).unwrap();
        let request = JwtRequest { lifetime_s: 3600, ..JwtRequest::default() };
        jwt(ask(&mut client, Call::Jwt(request)));
        let denied = ask(&mut client, Call::Jwt(JwtRequest::default()));
        assert!(matches!(denied, Err(TokenError::Denied(_))), "a lifetime of 0 s");
    }
    if at.is_multiple_of(WORK) {
        let plan = Plan::Script([Some(Fault::Reset)].into_iter().collect());
        bench.world().card.replace_plan(plan);
        token.sign(&KEY, SignInput::Digest(Hash::Sha256, &[7; 32]), soon()).unwrap();
        let lifetime_s = 60;
        jwt(ask(&mut client, Call::Jwt(JwtRequest { lifetime_s, ..JwtRequest::default() })));
        bench.idle();
    }
}

/// Callers that have disconnected may still be ending.
fn alone(bench: &Bench) {
    while !bench.status().contains("\"callers\":1,") {
        std::thread::yield_now();
    }
}

#[test]
fn memory_after_100_000_requests() {
    const { assert!(REQUESTS * ROUNDS >= 100_000) };
    let world = World::new(Some(PinScope::Signing), Plan::Script(VecDeque::new()), 1);
    let bench = Bench::new(world, Some(PIN), Vec::new());
    bench.idle();
    let run = |rounds: std::ops::Range<usize>| {
        rounds.step_by(CALLERS).for_each(|at| round(&bench, at));
        alone(&bench);
        in_use()
    };
    let before = run(0..WARM_ROUNDS);
    let grown = run(WARM_ROUNDS..ROUNDS).saturating_sub(before);
    assert!(grown < SLACK_BYTES, "{grown} bytes more are in use");
}
