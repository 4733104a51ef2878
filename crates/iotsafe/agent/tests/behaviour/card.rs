// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A card that comes and goes, is reset, closed while idle.

use std::collections::VecDeque;

use warifu_agent::card::PinStatus;
use warifu_card::faults::{Fault, Plan};
use warifu_card::{PinScope, Reset};
use warifu_iotsafe_client::{TokenError, TransportError};

use crate::common::PIN;
use crate::{bench, nothing_wrong, sign};

#[test]
fn card_removed_and_inserted() {
    let bench = bench(Some(PinScope::Signing), Some(PIN));
    let mut token = bench.token();
    sign(&mut token, 0).unwrap();
    let gone = [Some(Fault::Removed { commands: 1000 })].into_iter().collect();
    bench.world().card.replace_plan(Plan::Script(gone));
    let error = sign(&mut token, 1).unwrap_err();
    assert!(matches!(error, TokenError::Transport(TransportError::Gone(_))), "{error}");
    let mut tries = 0;
    while sign(&mut token, 2).is_err() {
        tries += 1;
        assert!(tries < 300, "it is back after 1000 commands");
    }
    assert!(tries > 1);
    assert_eq!(bench.world().tries_left(), 3);
}

#[test]
fn panic_fails_only_one_request() {
    let bench = bench(Some(PinScope::Signing), Some(PIN));
    let mut token = bench.token();
    sign(&mut token, 0).unwrap();
    let resets = bench.world().resets;
    bench.world().panics = true;
    assert!(sign(&mut bench.token(), 1).is_err());
    // What it has left on the card is not known; and the status is not that of one at work.
    let (_, pin) = bench.holder().state().unwrap();
    assert_eq!(pin, PinStatus::Held);
    sign(&mut token, 2).unwrap();
    assert_eq!(bench.world().resets, resets + 1);
}

#[test]
fn reset_after_every_transient_error() {
    let bench = bench(Some(PinScope::Signing), Some(PIN));
    let mut token = bench.token();
    sign(&mut token, 0).unwrap();
    let mut disturbed = 0;
    for at in 0..12 {
        // The card forgets the channel, and with it the PIN: the login is done again on the way.
        let mut script = VecDeque::from(vec![None; at]);
        script.push_back(Some(Fault::WrongStatus));
        let before = {
            let mut world = bench.world();
            world.card.reset(Reset::Warm);
            world.card.replace_plan(Plan::Script(script));
            (world.resets, world.card.counts().get("wrong status").copied())
        };
        let result = sign(&mut token, 1);
        let mut world = bench.world();
        let wrong = world.card.counts().get("wrong status").copied() != before.1;
        // After SELECT, the third, the applet's next identifier is tried.
        if wrong && at != 2 {
            assert!(result.is_ok() && world.resets > before.0, "{at}: {result:?}");
            disturbed += 1;
        }
        world.card.replace_plan(nothing_wrong());
        drop(world);
        sign(&mut token, 2).unwrap();
    }
    assert!(disturbed > 6, "{disturbed}");
}

#[test]
fn hidden_card_reset_is_counted_once() {
    let bench = bench(Some(PinScope::Signing), Some(PIN));
    bench.idle();
    let mut token = bench.token();
    for resets in 1..4 {
        bench.world().card.reset(Reset::Warm);
        sign(&mut token, 1).unwrap();
        let counted = bench.metric("warifu_agent_card_errors_total{card=\"card\",kind=\"reset\"}");
        assert_eq!(counted, resets);
    }
}

#[test]
fn idle_card_is_closed_and_reopened() {
    let bench = bench(None, None);
    let mut token = bench.token();
    sign(&mut token, 1).unwrap();
    bench.idle();
    assert_eq!(bench.world().open_channels(), 1);
    bench.clock.advance(bench.holder().settings.idle_close);
    bench.holder().tick();
    assert_eq!(bench.world().open_channels(), 0);
    sign(&mut token, 2).unwrap();
    assert_eq!(bench.world().open_channels(), 1);
}
