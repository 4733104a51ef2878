// SPDX-License-Identifier: Apache-2.0 OR MIT
//! PINs: who gives one, how often the card sees it, how long it is held.

use std::time::Duration;

use serde_json::Value;
use warifu_agent::card::{Caller, PinStatus, Tries};
use warifu_agent::rights::{Right, Rights};
use warifu_card::PinScope;
use warifu_card::faults::{Fault, Plan};
use warifu_iotsafe_client::{PinState, Token, TokenError};
use warifu_model::Nanos;
use warifu_os::Clock;

use crate::common::{Bench, PIN, World, soon};
use crate::{bench, nothing_wrong, own_uid, sign};

#[test]
fn callers_need_no_pin_and_wrong_pin_counts_once() {
    let bench = bench(Some(PinScope::Signing), Some(PIN));
    bench.idle();
    let (mut token, mut other) = (bench.token(), bench.token());
    assert_eq!(token.pin_state(soon()), Ok(PinState::Absent));
    let before = bench.world().commands;
    token.verify_pin(PIN.as_bytes(), soon()).unwrap();
    assert_eq!(bench.world().commands, before, "the held PIN is compared, not sent");

    let wrong = token.verify_pin(b"9999", soon());
    assert_eq!(wrong, Err(TokenError::PinWrong { tries_left: Some(2) }));
    assert_eq!(bench.world().tries_left(), 2, "the card has counted it");
    assert!(sign(&mut other, 1).is_ok(), "the agent logs in again for the others");

    // The second wrong one in a row: who guesses must not have the count restored for ever.
    assert!(token.verify_pin(b"9998", soon()).is_err());
    assert_eq!(bench.world().tries_left(), 2);
    assert_eq!(sign(&mut other, 2), Err(TokenError::PinNeeded));
    assert_eq!(other.pin_state(soon()), Ok(PinState::Wanted(Some(2))));
    other.verify_pin(PIN.as_bytes(), soon()).unwrap();
    assert!(sign(&mut token, 3).is_ok());
    assert_eq!(bench.world().tries_left(), 3);
}

#[test]
fn unanswered_wrong_pin_counts() {
    let bench = bench(Some(PinScope::Signing), Some(PIN));
    bench.idle();
    let mut other = bench.token();
    sign(&mut other, 0).unwrap();
    // The caller would be gone before the answer is there; the card has an attempt's time for it.
    let late = Fault::LateAnswer { by: Nanos(1_000_000_000) };
    bench.world().card.replace_plan(Plan::Script([Some(late)].into_iter().collect()));
    let hasty = bench.clock.now() + Duration::from_millis(500);
    let wrong = bench.holder().verify_pin(&Caller::AGENT, b"9999", Tries::All, hasty);
    assert_eq!(wrong, Err(TokenError::PinWrong { tries_left: Some(2) }));
    sign(&mut other, 1).unwrap();
    other.verify_pin(PIN.as_bytes(), soon()).unwrap();

    for (guess, served) in [(b"9998", true), (b"9997", false)] {
        let lost = [Some(Fault::LostAnswer)].into_iter().collect();
        bench.world().card.replace_plan(Plan::Script(lost));
        let result = other.verify_pin(guess, soon());
        assert!(matches!(result, Err(TokenError::Transport(_))), "{result:?}");
        assert_eq!(bench.world().tries_left(), 2, "the card has counted it");
        assert_eq!(sign(&mut other, 2).is_ok(), served, "the held PIN is kept after one wrong PIN");
    }
}

#[test]
fn refused_pin_is_never_resent() {
    let bench = bench(Some(PinScope::Signing), Some("0000"));
    bench.idle();
    assert_eq!(bench.world().tries_left(), 2);
    let mut token = bench.token();
    for number in 0..3 {
        assert_eq!(sign(&mut token, number), Err(TokenError::PinNeeded));
        bench.idle();
    }
    assert_eq!(bench.world().tries_left(), 2);
}

#[test]
fn counted_pin_is_not_resent_after_lost_answer() {
    // MANAGE CHANNEL, SELECT, VERIFY without data; then the PIN itself.
    let plan = [None, None, None, Some(Fault::LostAnswer)].into_iter().collect();
    let world = World::new(Some(PinScope::Signing), Plan::Script(plan), 1);
    let bench = Bench::new(world, Some("0000"), Vec::new());
    assert!(matches!(sign(&mut bench.token(), 1), Err(TokenError::PinNeeded)));
    bench.idle();
    assert_eq!(bench.world().card.counts()["lost answer"], 1);
    assert_eq!(bench.world().tries_left(), 2);
    let timeouts = "warifu_agent_authentication_timeouts_total{card=\"card\"}";
    assert_eq!(bench.metric(timeouts), 1);
}

#[test]
fn power_cut_after_pin_counts_it_once() {
    for (pin, fault, left) in [
        ("0000", Fault::PowerCutAfterWrite, 2),
        ("0000", Fault::PowerCutBeforeWrite, 2),
        (PIN, Fault::PowerCutAfterWrite, 3),
        (PIN, Fault::PowerCutBeforeWrite, 3),
    ] {
        let plan = [None, None, None, Some(fault)].into_iter().collect();
        let world = World::new(Some(PinScope::Signing), Plan::Script(plan), 1);
        let bench = Bench::new(world, Some(pin), Vec::new());
        assert_eq!(sign(&mut bench.token(), 1).is_ok(), pin == PIN, "{pin} {fault:?}");
        bench.idle();
        assert_eq!(bench.world().card.counts().len(), 1);
        assert_eq!(bench.world().tries_left(), left, "{pin} {fault:?}");
    }
}

#[test]
fn last_try_is_left_to_a_person() {
    let bench = bench(Some(PinScope::Signing), None);
    let mut token = bench.token();
    for _ in 0..2 {
        assert!(token.verify_pin(b"9999", soon()).is_err());
    }
    let bench = Bench::new(bench.world.clone(), Some(PIN), Vec::new());
    bench.idle();
    assert_eq!(sign(&mut bench.token(), 1), Err(TokenError::PinNeeded));
    assert_eq!(bench.world().tries_left(), 1, "it was not even given");

    // From then on it is as if none were held: no command goes for it.
    let made = "warifu_agent_ahead_total{card=\"card\",kind=\"made_random\"}";
    assert!(bench.metric(made) > 0, "the work ahead goes on without it");
    let without = Bench::new(bench.world.clone(), None, Vec::new());
    let [with, without] = [&bench, &without].map(|bench| {
        sign(&mut bench.token(), 2).unwrap_err();
        let before = bench.world().commands;
        sign(&mut bench.token(), 3).unwrap_err();
        bench.world().commands - before
    });
    assert_eq!(with, without);
}

#[test]
fn own_user_may_use_the_last_try() {
    let bench = bench(Some(PinScope::Signing), Some(PIN));
    bench.idle();
    let mut token = bench.token();
    sign(&mut token, 0).unwrap();
    // Another program errs twice, past the agent, and takes the card's power.
    bench.world().spend_tries(2);
    assert_eq!(sign(&mut token, 1), Err(TokenError::PinNeeded));
    assert_eq!(bench.holder().state().unwrap().1, PinStatus::LastTry);
    assert_eq!(token.pin_state(soon()), Ok(PinState::Wanted(Some(1))));
    assert_eq!(bench.world().tries_left(), 1);
    token.verify_pin(PIN.as_bytes(), soon()).unwrap();
    sign(&mut token, 2).unwrap();
    assert_eq!(bench.world().tries_left(), 3);
    assert_eq!(bench.holder().state().unwrap().1, PinStatus::Held);
}

#[test]
fn caller_without_key_rights_cannot_log_in() {
    let may = vec![Right::Token];
    let world = World::new(Some(PinScope::Signing), nothing_wrong(), 1);
    let bench = Bench::new(world, None, vec![Rights { uid: own_uid(), keys: None, may }]);
    let denied = bench.token().verify_pin(b"9999", soon());
    assert!(matches!(denied, Err(TokenError::Denied(_))), "{denied:?}");
    assert_eq!(bench.world().tries_left(), 3);

    let give = |pin: &[u8], tries| bench.holder().verify_pin(&Caller::AGENT, pin, tries, soon());
    let other = |pin: &[u8]| give(pin, Tries::ButTwo);
    assert!(other(b"9999").is_err());
    let denied = other(PIN.as_bytes());
    assert!(matches!(denied, Err(TokenError::Denied(_))), "{denied:?}");
    assert_eq!(bench.world().tries_left(), 2);
    give(PIN.as_bytes(), Tries::All).unwrap();
    assert_eq!(bench.world().tries_left(), 3);
    other(PIN.as_bytes()).unwrap();
}

#[test]
fn hidden_tries_leave_one_to_other_users() {
    let bench = bench(Some(PinScope::Signing), None);
    bench.world().hides_tries = true;
    let give = |pin: &[u8], tries| bench.holder().verify_pin(&Caller::AGENT, pin, tries, soon());
    let other = |pin: &[u8]| give(pin, Tries::ButTwo);
    assert!(other(b"9999").is_err());
    for _ in 0..3 {
        let denied = other(b"9998");
        assert!(matches!(denied, Err(TokenError::Denied(_))), "{denied:?}");
    }
    assert_eq!(bench.world().tries_left(), 2);
    give(PIN.as_bytes(), Tries::All).unwrap();
    assert_eq!(bench.world().tries_left(), 3);
    // The card has taken one since: another user may err once more.
    let wrong = other(b"9999");
    assert!(!matches!(wrong, Ok(()) | Err(TokenError::Denied(_))), "{wrong:?}");
}

#[test]
fn pin_lifetime_ends_the_login_on_the_card() {
    let lifetime = Some(Duration::from_secs(60));
    let world = World::new(Some(PinScope::Signing), nothing_wrong(), 1);
    let bench = Bench::with(world, Some(PIN), lifetime, Vec::new());
    bench.idle();
    let mut token = bench.token();
    sign(&mut token, 1).unwrap();
    bench.clock.advance(Duration::from_secs(61));
    bench.holder().tick();
    assert_eq!(bench.world().open_channels(), 0, "the card was reset");
    assert_eq!(sign(&mut token, 2), Err(TokenError::PinNeeded));
    token.verify_pin(PIN.as_bytes(), soon()).unwrap();
    sign(&mut token, 3).unwrap();
}

#[test]
fn pin_lifetime_ends_under_load_and_wakes_the_worker() {
    let lifetime = Some(Duration::from_secs(60));
    let world = World::new(Some(PinScope::Signing), nothing_wrong(), 1);
    let bench = Bench::with(world, Some(PIN), lifetime, Vec::new());
    bench.idle();
    let mut token = bench.token();
    sign(&mut token, 1).unwrap();
    bench.idle();
    let rest = bench.holder().tick();
    assert!(rest > Duration::from_secs(50) && rest <= Duration::from_secs(60), "{rest:?}");
    // No tick: a caller that comes again and again leaves no time for any.
    bench.clock.advance(Duration::from_secs(61));
    assert_eq!(sign(&mut token, 2), Err(TokenError::PinNeeded));
    token.verify_pin(PIN.as_bytes(), soon()).unwrap();
    sign(&mut token, 3).unwrap();
}

/// What `warifu agent status` says of the PIN, and the tries.
fn told(bench: &Bench) -> (String, Option<u64>) {
    let status: Value = serde_json::from_str(&bench.status()).unwrap();
    let card = &status["cards"][0];
    (card["pin"].as_str().unwrap().to_owned(), card["pin_tries_left"].as_u64())
}

#[test]
fn status_of_the_pin() {
    let with = |pin: Option<&str>| {
        let bench = bench(Some(PinScope::Signing), pin);
        bench.idle();
        bench
    };
    assert_eq!(told(&with(None)), ("none".to_owned(), None));
    assert_eq!(told(&with(Some(PIN))), ("held".to_owned(), None));
    let refused = with(Some("0000"));
    assert_eq!(told(&refused), ("refused".to_owned(), Some(2)));

    let mut token = refused.token();
    assert!(token.verify_pin(b"9999", soon()).is_err());
    assert_eq!(told(&refused), ("refused".to_owned(), Some(1)));
    let careful = Bench::new(refused.world.clone(), Some(PIN), Vec::new());
    careful.idle();
    assert_eq!(told(&careful), ("held, not sent: only one try is left".to_owned(), Some(1)));
    token.verify_pin(PIN.as_bytes(), soon()).unwrap();
    assert_eq!(told(&refused), ("held".to_owned(), None));

    for _ in 0..3 {
        assert!(token.verify_pin(b"9999", soon()).is_err());
    }
    assert_eq!(told(&refused), ("locked".to_owned(), Some(0)));
    let late = Bench::new(refused.world.clone(), Some(PIN), Vec::new());
    late.idle();
    assert_eq!(told(&late), ("locked".to_owned(), Some(0)));
}

#[test]
fn status_after_pin_lifetime() {
    let lifetime = Some(Duration::from_secs(60));
    let world = World::new(Some(PinScope::Signing), nothing_wrong(), 1);
    let bench = Bench::with(world, Some(PIN), lifetime, Vec::new());
    bench.idle();
    bench.clock.advance(Duration::from_secs(61));
    bench.holder().tick();
    assert_eq!(told(&bench), ("expired".to_owned(), None));
}
