// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A card behind a modem: a reset is the line's alone, the card goes on as it was.

mod common;

use std::collections::VecDeque;
use std::time::Duration;

use common::{Bench, PIN, World, soon};
use warifu_card::PinScope;
use warifu_card::faults::{Fault, Plan};
use warifu_iotsafe_client::{Hash, PinState, SignInput, Token, TokenError};
use warifu_os::Clock;

const KEY: [u8; 1] = [1];

fn bench() -> Bench {
    let world = World::new(Some(PinScope::Signing), Plan::Script(VecDeque::new()), 1);
    Bench::behind_a_modem(world, PIN, Duration::from_secs(60))
}

fn sign(token: &mut impl Token) -> Result<[u8; 64], TokenError> {
    token.sign(&KEY, SignInput::Digest(Hash::Sha256, &[7; 32]), soon())
}

#[test]
fn lost_answers_behind_a_modem_leak_no_channel() {
    let bench = bench();
    let mut token = bench.token();
    sign(&mut token).unwrap();
    for at in 0..8 {
        // The signature itself, or the opening after it as well.
        let script = [Some(Fault::LostAnswer), (at % 2 == 1).then_some(Fault::WrongStatus)];
        bench.world().card.replace_plan(Plan::Script(script.into_iter().collect()));
        sign(&mut token).unwrap();
    }
    assert!(bench.world().card.counts()["lost answer"] >= 8);
    assert_eq!(bench.world().open_channels(), 1);
    assert_eq!(bench.world().basic_selects, 0);
    bench.holder().close(bench.clock.now() + Duration::from_secs(10));
    assert_eq!(bench.world().open_channels(), 0);
}

#[test]
fn pin_lifetime_behind_a_modem() {
    let bench = bench();
    bench.idle();
    let mut token = bench.token();
    sign(&mut token).unwrap();
    bench.clock.advance(Duration::from_secs(61));
    assert_eq!(sign(&mut token), Err(TokenError::PinNeeded));
    bench.idle();
    assert_eq!(sign(&mut token), Err(TokenError::PinNeeded));
    assert!(matches!(token.pin_state(soon()), Ok(PinState::Wanted(_))));
    assert!(token.verify_pin(b"9999", soon()).is_err());
    assert_eq!(sign(&mut token), Err(TokenError::PinNeeded));
    token.verify_pin(PIN.as_bytes(), soon()).unwrap();
    sign(&mut token).unwrap();
}
