// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Another card in the place of the one that was held: of the same make, so that only its keys
//! tell.

mod common;

use std::collections::VecDeque;

use common::{Bench, PIN, World, ask, jwt, soon};
use warifu_agent_protocol::message::{Call, JwtRequest};
use warifu_card::faults::{Fault, Plan};
use warifu_card::{PinScope, Reset};
use warifu_iotsafe_client::{Hash, SignInput, Token, TokenError, TransportError};

const KEY: [u8; 1] = [1];
/// The other card's.
const OTHER_PIN: &str = "4321";

fn sign(token: &mut impl Token) -> Result<[u8; 64], TokenError> {
    token.sign(&KEY, SignInput::Digest(Hash::Sha256, &[7; 32]), soon())
}

/// Exchanges the card of a bench; what follows must be as with a new agent.
fn exchanged(prepare: impl Fn(&Bench), disturb: impl Fn(&Bench)) {
    let world = World::new(Some(PinScope::Signing), Plan::Script(VecDeque::new()), 1);
    let bench = Bench::new(world, Some(PIN), Vec::new());
    bench.idle();
    let mut token = bench.token();
    let request = JwtRequest { lifetime_s: 3600, ..JwtRequest::default() };
    let token_of_old = jwt(ask(&mut bench.client(), Call::Jwt(request.clone())));
    prepare(&bench);
    bench.world().exchange(OTHER_PIN);
    disturb(&bench);

    let error = sign(&mut token).unwrap_err();
    let told = matches!(&error, TokenError::Transport(TransportError::Gone(text))
        if text.contains("exchanged"));
    assert!(told, "{error}");
    assert_eq!(sign(&mut token), Err(TokenError::PinNeeded));
    let denied = ask(&mut bench.client(), Call::Jwt(request.clone()));
    assert_eq!(denied.err(), Some(TokenError::PinNeeded), "no token of the old card's");
    assert_eq!(bench.world().tries_left(), 3, "the held PIN is not sent to the new card");

    token.verify_pin(OTHER_PIN.as_bytes(), soon()).unwrap();
    let point = bench.world().card.card().export_public_key(&KEY).unwrap();
    assert!(point.verify(&[7; 32], &sign(&mut token).unwrap()));
    assert_eq!(token.read_public_key(&KEY, soon()).unwrap(), *point.bytes());
    assert_ne!(jwt(ask(&mut bench.client(), Call::Jwt(request))), token_of_old);
}

#[test]
fn card_exchanged_while_closed() {
    let close = |bench: &Bench| {
        bench.clock.advance(bench.holder().settings.idle_close);
        bench.holder().tick();
    };
    exchanged(close, |_| {});
}

#[test]
fn card_exchanged_during_session() {
    exchanged(|_| {}, |_| {});
}

#[test]
fn card_exchanged_with_a_gap() {
    let away = |bench: &Bench| {
        let script = [Some(Fault::Removed { commands: 3 })];
        bench.world().card.replace_plan(Plan::Script(script.into_iter().collect()));
    };
    exchanged(|_| {}, away);
}

#[test]
fn same_card_is_recognised_despite_line_faults() {
    let world = World::new(Some(PinScope::Signing), Plan::Script(VecDeque::new()), 1);
    let bench = Bench::new(world, Some(PIN), Vec::new());
    bench.idle();
    let mut token = bench.token();
    for at in 0..12 {
        let mut script = VecDeque::from(vec![None; at]);
        script.push_back(Some(Fault::FlippedBit));
        bench.world().card.reset(Reset::Warm);
        bench.world().card.replace_plan(Plan::Script(script));
        let result = sign(&mut token);
        // SELECT with a bit over is that of an applet that is not there.
        assert!(!matches!(result, Err(TokenError::PinNeeded)), "{at}");
        bench.world().card.replace_plan(Plan::Script(VecDeque::new()));
        sign(&mut token).unwrap();
    }
    assert_eq!(bench.world().tries_left(), 3);
}
