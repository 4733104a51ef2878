// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What callers can rely on: turns, logins, rights, volatile keys, a card that comes and goes.

mod common;

use std::collections::VecDeque;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use common::{Bench, PIN, World, ask, soon};
use warifu_agent::card::Caller;
use warifu_agent::clock::SystemClock;
use warifu_agent::metrics::Metrics;
use warifu_agent::rights::{Right, Rights};
use warifu_agent::server::{Agent, Socket};
use warifu_card::faults::{Fault, Plan};
use warifu_card::{PinScope, Reset};
use warifu_token::agent::AgentClient;
use warifu_token::agent::message::{Answer, Call, Input, JwtRequest, Request, encode};
use warifu_token::{Hash, PinState, SignInput, Token, TokenError, TransportError};

/// The client key of the usual slots, and the volatile pair.
const KEY: [u8; 1] = [1];
const VOLATILE: [u8; 1] = [4];

fn nothing_wrong() -> Plan {
    Plan::Script(VecDeque::new())
}

fn bench(pin: Option<PinScope>, held: Option<&str>) -> Bench {
    Bench::new(World::new(pin, nothing_wrong(), 1), held, Vec::new())
}

fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

fn digest(number: u32) -> [u8; 32] {
    let mut digest = [0; 32];
    digest[..4].copy_from_slice(&number.to_be_bytes());
    digest
}

fn sign(token: &mut impl Token, number: u32) -> Result<[u8; 64], TokenError> {
    token.sign(&KEY, SignInput::Digest(Hash::Sha256, &digest(number)), soon())
}

#[test]
fn callers_at_once_get_their_own_signatures() {
    let bench = bench(None, None);
    let point = bench.world().card.card().export_public_key(&KEY).unwrap();
    thread::scope(|scope| {
        for caller in 0..6 {
            let (bench, point) = (&bench, &point);
            scope.spawn(move || {
                let mut token = bench.token();
                for turn in 0..25 {
                    let number = caller * 1000 + turn;
                    let signature = sign(&mut token, number).unwrap();
                    assert!(point.verify(&digest(number), &signature), "{number}");
                }
            });
        }
    });
    assert_eq!(bench.metric("warifu_agent_sessions_opened_total{card=\"card\"}"), 1);
    let signatures = "warifu_agent_signatures_total{card=\"card\",kind=\"ok\"}";
    assert_eq!(bench.metric(signatures), 150);
}

#[test]
fn who_hung_up_while_waiting_costs_the_card_nothing() {
    let bench = bench(None, None);
    let mut token = bench.token();
    sign(&mut token, 0).unwrap();
    let before = bench.world().commands;
    // Nobody gets past this: the first caller waits at the card, the others for their turns.
    let card = bench.world.lock().unwrap();
    thread::scope(|scope| {
        let first = scope.spawn(|| sign(&mut token, 1));
        let waiting = |callers: usize| {
            while waiting_callers(&bench) < callers {
                thread::sleep(Duration::from_millis(1));
            }
        };
        waiting(1);
        let input = Input::from(SignInput::Digest(Hash::Sha256, &digest(2)));
        let call = Call::Sign { key: KEY.to_vec(), input };
        let within = Duration::from_secs(20);
        let request = Request { number: 1, card: String::new(), within, call };
        let mut killed = UnixStream::connect(&bench.path).unwrap();
        killed.write_all(&encode(&request).unwrap()).unwrap();
        waiting(2);
        drop(killed);
        let mut other = bench.token();
        let last = scope.spawn(move || sign(&mut other, 3));
        waiting(3);
        drop(card);
        assert!(first.join().unwrap().is_ok() && last.join().unwrap().is_ok());
    });
    assert_eq!(bench.world().commands - before, 2, "one for each caller that was still there");
}

/// How many have or await a turn, as the queue has it: the card's own state is locked just now.
fn waiting_callers(bench: &Bench) -> usize {
    bench.holder().waiting()
}

#[test]
fn a_deadline_is_kept_in_the_queue_as_well() {
    let bench = bench(None, None);
    let mut token = bench.token();
    sign(&mut token, 0).unwrap();
    let card = bench.world.lock().unwrap();
    thread::scope(|scope| {
        let first = scope.spawn(|| sign(&mut token, 1));
        while waiting_callers(&bench) < 1 {
            thread::sleep(Duration::from_millis(1));
        }
        let mut hasty = bench.token();
        let end = std::time::Instant::now() + Duration::from_millis(50);
        let input = SignInput::Digest(Hash::Sha256, &[1; 32]);
        let late = hasty.sign(&KEY, input, end);
        assert!(matches!(late, Err(TokenError::Transport(TransportError::Timeout(_)))), "{late:?}");
        drop(card);
        assert!(first.join().unwrap().is_ok());
        assert!(sign(&mut hasty, 2).is_ok(), "its next request is answered");
    });
    let failed = "warifu_agent_signatures_total{card=\"card\",kind=\"failed\"}";
    assert_eq!(bench.metric(failed), 1, "who waited in vain has no signature");
}

#[test]
fn a_card_that_goes_away_and_comes_back() {
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
fn callers_need_no_pin_and_a_wrong_one_counts_once() {
    let bench = bench(Some(PinScope::Signing), Some(PIN));
    bench.idle();
    let (mut token, mut other) = (bench.token(), bench.token());
    assert_eq!(token.pin_state(soon()), Ok(PinState::Absent));
    let before = bench.world().commands;
    token.verify_pin(PIN.as_bytes(), soon()).unwrap();
    assert_eq!(bench.world().commands, before, "the held one is compared, not sent");

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
fn a_refused_pin_is_never_given_again() {
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
fn a_pin_whose_answer_was_lost_is_not_given_again_if_it_was_counted() {
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
fn a_pin_that_a_power_cut_follows_is_not_counted_twice() {
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
fn every_error_that_passes_is_followed_by_a_reset() {
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
fn the_last_try_is_left_to_a_person() {
    let bench = bench(Some(PinScope::Signing), None);
    let mut token = bench.token();
    for _ in 0..2 {
        assert!(token.verify_pin(b"9999", soon()).is_err());
    }
    let bench = Bench::new(bench.world.clone(), Some(PIN), Vec::new());
    bench.idle();
    assert_eq!(sign(&mut bench.token(), 1), Err(TokenError::PinNeeded));
    assert_eq!(bench.world().tries_left(), 1, "it was not even given");
}

#[test]
fn who_cannot_use_a_key_cannot_lock_the_pin() {
    let may = vec![Right::Token];
    let world = World::new(Some(PinScope::Signing), nothing_wrong(), 1);
    let bench = Bench::new(world, None, vec![Rights { uid: own_uid(), keys: None, may }]);
    let denied = bench.token().verify_pin(b"9999", soon());
    assert!(matches!(denied, Err(TokenError::Denied(_))), "{denied:?}");
    assert_eq!(bench.world().tries_left(), 3);

    let other = |pin: &[u8]| bench.holder().verify_pin(&Caller::AGENT, pin, false, soon());
    assert!(other(b"9999").is_err() && other(b"9999").is_err());
    let denied = other(PIN.as_bytes());
    assert!(matches!(denied, Err(TokenError::Denied(_))), "{denied:?}");
    assert_eq!(bench.world().tries_left(), 1);
    bench.holder().verify_pin(&Caller::AGENT, PIN.as_bytes(), true, soon()).unwrap();
    assert_eq!(bench.world().tries_left(), 3);
    other(PIN.as_bytes()).unwrap();
}

#[test]
fn a_request_that_panics_frees_its_callers_place() {
    let stop = Box::new(|| panic!("a mistake of ours"));
    let metrics = Arc::new(Metrics::default());
    let agent = Agent::new(Vec::new(), Vec::new(), metrics, Arc::new(SystemClock), stop);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    let socket = Socket::open(&path, false).unwrap();
    socket.start(&agent).unwrap();
    let ask = |call| AgentClient::new(&path, None).ask(call, soon());
    assert!(matches!(ask(Call::Stop), Ok(Answer::Done)));
    let callers = || match ask(Call::Status) {
        Ok(Answer::Text(text)) => text.contains("\"callers\":1,"),
        other => panic!("{other:?}"),
    };
    let mut tries = 0;
    while !callers() {
        tries += 1;
        assert!(tries < 1000, "only the one who asks is there");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_pins_lifetime_ends_the_login_on_the_card_too() {
    let lifetime = Some(Duration::from_secs(60));
    let world = World::new(Some(PinScope::Signing), nothing_wrong(), 1);
    let bench = Bench::with(world, Some(PIN), lifetime, Vec::new());
    bench.idle();
    let mut token = bench.token();
    sign(&mut token, 1).unwrap();
    bench.clock.pass(Duration::from_secs(61));
    bench.holder().tick();
    assert_eq!(bench.world().open_channels(), 0, "the card was reset");
    assert_eq!(sign(&mut token, 2), Err(TokenError::PinNeeded));
    token.verify_pin(PIN.as_bytes(), soon()).unwrap();
    sign(&mut token, 3).unwrap();
}

#[test]
fn a_pins_lifetime_ends_under_load_and_wakes_who_rests() {
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
    bench.clock.pass(Duration::from_secs(61));
    assert_eq!(sign(&mut token, 2), Err(TokenError::PinNeeded));
    token.verify_pin(PIN.as_bytes(), soon()).unwrap();
    sign(&mut token, 3).unwrap();
}

#[test]
fn an_idle_card_is_closed_and_opened_again() {
    let bench = bench(None, None);
    let mut token = bench.token();
    sign(&mut token, 1).unwrap();
    bench.idle();
    assert_eq!(bench.world().open_channels(), 1);
    bench.clock.pass(bench.holder().holding.idle_close);
    bench.holder().tick();
    assert_eq!(bench.world().open_channels(), 0);
    sign(&mut token, 2).unwrap();
    assert_eq!(bench.world().open_channels(), 1);
}

#[test]
fn rights_are_by_user_key_and_use() {
    let with = |rights| Bench::new(World::new(None, nothing_wrong(), 1), None, vec![rights]);
    let denied = |result: Result<_, TokenError>, says: &str| match result {
        Err(TokenError::Denied(text)) => assert!(text.contains(says), "{text}"),
        _ => panic!("not denied"),
    };
    let stranger = with(Rights::all(own_uid() + 1));
    denied(sign(&mut stranger.token(), 1).map(drop), "add a [[caller]]");
    let mut client = stranger.client();
    denied(ask(&mut client, Call::Metrics).map(drop), "add a [[caller]]");

    let keys = Some(vec!["other".to_owned()]);
    let keyless = with(Rights { keys, ..Rights::all(own_uid()) });
    let shown = keyless.token().objects(soon()).unwrap();
    assert!(shown.private_keys.is_empty() && !shown.files.is_empty());
    denied(sign(&mut keyless.token(), 1).map(drop), "may not use the key 01");

    let labelled = Some(vec!["client".to_owned()]);
    let may = vec![Right::Sign];
    let signer = with(Rights { keys: labelled, may, uid: own_uid() });
    assert!(sign(&mut signer.token(), 1).is_ok());
    denied(signer.token().derive(&KEY, &[4; 65], soon()).map(drop), "may not derive");
    denied(signer.token().generate(&VOLATILE, soon()).map(drop), "may not generate");
    let request = JwtRequest { lifetime_s: 60, ..JwtRequest::default() };
    denied(ask(&mut signer.client(), Call::Jwt(request)).map(drop), "may not token");
}

#[test]
fn a_volatile_key_is_its_callers_until_it_hangs_up() {
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
    assert_eq!(other.generate(&VOLATILE, soon()), Err(TokenError::PlaceTaken));
    assert_eq!(other.derive(&VOLATILE, &peer, soon()), Err(TokenError::PlaceTaken));
    let has = |inventory: warifu_token::Inventory| {
        inventory.private_keys.iter().any(|key| key.id == VOLATILE)
    };
    assert!(has(one.objects(soon()).unwrap()) && !has(other.objects(soon()).unwrap()));

    one.release(soon());
    let mut tries = 0;
    while other.generate(&VOLATILE, soon()).is_err() {
        tries += 1;
        assert!(tries < 1000, "the place is free when its caller has hung up");
        thread::sleep(Duration::from_millis(1));
    }
    assert!(one.derive(&VOLATILE, &peer, soon()).is_err(), "not its key any more");
}

#[test]
fn a_reset_card_has_lost_the_key_and_no_other_takes_its_place() {
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
fn random_bytes_are_made_ahead_and_given_once() {
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

#[test]
fn what_is_no_request_ends_the_connection_and_nothing_else() {
    use std::io::Read;
    let bench = bench(None, None);
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 0, 0, 2, 1, 0xff], &[0, 0, 0, 1, 9]] {
        let mut stream = UnixStream::connect(&bench.path).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // A reset is an end as well.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
    assert!(sign(&mut bench.token(), 1).is_ok());
}

#[test]
fn who_asks_for_the_end_is_told_of_it_first() {
    let (tell, told) = mpsc::channel();
    let told = Mutex::new(told);
    let (report, reported) = mpsc::channel();
    // The end waits for the caller to have its answer, as it would not if it came before that.
    let stop = Box::new(move || {
        let in_time = told.lock().unwrap().recv_timeout(Duration::from_secs(10)).is_ok();
        report.send(in_time).unwrap();
    });
    let metrics = Arc::new(Metrics::default());
    let agent = Agent::new(Vec::new(), Vec::new(), metrics, Arc::new(SystemClock), stop);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    let socket = Socket::open(&path, false).unwrap();
    socket.start(&agent).unwrap();
    let answer = AgentClient::new(&path, None).ask(Call::Stop, soon());
    tell.send(()).unwrap();
    assert!(reported.recv().unwrap() && matches!(answer, Ok(Answer::Done)));
}
