// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Callers that mean the others no good, each with some right of its own.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use warifu_agent::card::{Caller, Tries};
use warifu_agent::rights::{Right, Rights};
use warifu_agent_protocol::message::{Call, JWT_MAX_BYTES, JwtRequest, RANDOM_MAX_BYTES};
use warifu_card::PinScope;
use warifu_card::faults::{Fault, Plan};
use warifu_iotsafe_client::{Hash, PinState, SignInput, Token, TokenError, TransportError};
use warifu_model::Nanos;
use warifu_os::Clock;

use crate::common::{Bench, PIN, World, ask, jwt, locked, soon};
use crate::{KEY, VOLATILE, bench, digest, nothing_wrong, own_uid, sign};

const LONG: Duration = Duration::from_secs(60);
/// A user other than the agent's.
const OTHER: Caller<'static> = Caller { id: 1000, uid: 33, has_gone: &|| false };
const CERTIFICATE: [u8; 1] = [2];

fn denied<T: std::fmt::Debug>(result: Result<T, TokenError>, says: &str) {
    match result {
        Err(TokenError::Denied(text)) => assert!(text.contains(says), "{text}"),
        other => panic!("{other:?}"),
    }
}

fn with_rights(may: &[Right]) -> Bench {
    let world = World::new(None, nothing_wrong(), 1);
    locked(&world).add_pair(0x20, "spare");
    let rights = Rights { uid: own_uid(), keys: None, may: may.to_vec() };
    Bench::new(world, None, vec![rights])
}

/// An answer that takes half a second, `count` times.
fn slow(count: usize) -> Plan {
    let late = Fault::LateAnswer { by: Nanos(500_000_000) };
    Plan::Script(vec![Some(late); count].into())
}

#[test]
fn file_size_of_a_caller_does_not_decide_what_others_get() {
    let world = World::new(None, nothing_wrong(), 1);
    let content: Vec<u8> = (0..600_u16).map(|at| at as u8).collect();
    locked(&world).write_file(CERTIFICATE[0], &content);
    let bench = Bench::new(world, None, Vec::new());
    let (mut liar, mut other) = (bench.token(), bench.token());
    let files = other.objects(soon()).unwrap().files;
    let file = files.iter().find(|file| file.id == CERTIFICATE).unwrap();
    // One READ FILE reads 256 bytes.
    let mut cut = file.clone();
    cut.size_bytes = Some(256);
    let _ = liar.read_file(&cut, soon());
    assert_eq!(other.read_file(file, soon()).unwrap(), content);
    let mut unknown = file.clone();
    unknown.id = vec![0x55];
    assert!(matches!(liar.read_file(&unknown, soon()), Err(TokenError::Status { .. })));
}

#[test]
fn random_and_verify_need_rights() {
    let bench = with_rights(&[Right::Sign]);
    let mut token = bench.token();
    denied(token.random(&mut [0; 8], soon()), "add \"random\" to its caller.may");
    let signature = sign(&mut token, 1).unwrap();
    let input = SignInput::Digest(Hash::Sha256, &[7; 32]);
    let verified = token.verify(&KEY, input, &signature, soon());
    denied(verified, "add \"verify\" to its caller.may");
}

#[test]
fn long_request_does_not_reset_the_card() {
    let bench = bench(None, None);
    let (mut token, mut other) = (bench.token(), bench.token());
    other.generate(&VOLATILE, soon()).unwrap();
    let resets = bench.world().resets;
    // Together longer than one attempt, each less.
    bench.world().card.replace_plan(slow(100));
    token.random(&mut [0; RANDOM_MAX_BYTES], soon()).unwrap();
    bench.world().card.replace_plan(nothing_wrong());
    assert_eq!(bench.world().resets, resets);
    let peer = *bench.world().card.card().export_public_key(&KEY).unwrap().bytes();
    other.derive(&VOLATILE, &peer, soon()).unwrap();
}

#[test]
fn file_longer_than_an_attempt_is_read_in_several_turns() {
    let world = World::new(None, nothing_wrong(), 1);
    let content: Vec<u8> = (0..6000_u16).map(|at| at as u8).collect();
    {
        let mut world = locked(&world);
        world.add_pair(0x20, "spare");
        world.write_file(CERTIFICATE[0], &content);
    }
    let bench = Bench::new(world, None, Vec::new());
    let (mut token, mut other) = (bench.token(), bench.token());
    let files = token.objects(soon()).unwrap().files;
    let file = files.iter().find(|file| file.id == CERTIFICATE).unwrap();
    other.generate(&VOLATILE, soon()).unwrap();
    let resets = bench.world().resets;
    // 24 parts of half a second, twice; one attempt has 3 s.
    bench.world().card.replace_plan(slow(48));
    assert_eq!(token.read_file(file, bench.clock.now() + LONG).unwrap(), content);
    assert_eq!(bench.world().resets, resets);
    bench.world().card.replace_plan(nothing_wrong());
    let peer = *bench.world().card.card().export_public_key(&KEY).unwrap().bytes();
    other.derive(&VOLATILE, &peer, soon()).unwrap();
}

#[test]
fn users_take_turns_at_the_card() {
    let bench = bench(None, None);
    let order = Mutex::new(Vec::new());
    let card = locked(&bench.world);
    thread::scope(|scope| {
        for (number, uid) in [33, 33, 33, 33, 33, 34].into_iter().enumerate() {
            let (bench, order) = (&bench, &order);
            scope.spawn(move || {
                // Asked when the caller has its turn.
                let has_gone = || {
                    order.lock().unwrap().push(uid);
                    false
                };
                let caller = Caller { id: number as u64, uid, has_gone: &has_gone };
                bench.holder().random(&caller, 8, bench.clock.now() + LONG).unwrap();
            });
            while bench.holder().waiting() <= number {
                thread::sleep(Duration::from_millis(1));
            }
        }
        drop(card);
    });
    assert_eq!(order.into_inner().unwrap(), [33, 33, 34, 33, 33, 33]);
}

#[test]
fn request_that_outlives_an_attempt_is_not_tried_again() {
    let bench = bench(None, None);
    let mut token = bench.token();
    let signature = sign(&mut token, 1).unwrap();
    let attempt = bench.holder().settings.retry.attempt;
    let message = vec![7; 8000];
    for signs in [true, false] {
        bench.world().card.replace_plan(slow(1000));
        let start = bench.clock.now();
        let input = SignInput::Message(Hash::Sha256, &message);
        let late = match signs {
            true => token.sign(&KEY, input, soon()).map(drop),
            false => token.verify(&KEY, input, &signature, soon()).map(drop),
        };
        assert!(matches!(late, Err(TokenError::Transport(TransportError::Timeout(_)))), "{late:?}");
        let took = bench.clock.now() - start;
        assert!(took < attempt * 2, "the card was held for {took:?}");
        bench.world().card.replace_plan(nothing_wrong());
        sign(&mut token, 2).unwrap();
    }
}

#[test]
fn others_wrong_pins_never_reach_the_card_while_one_is_held() {
    let bench = bench(Some(PinScope::Signing), Some(PIN));
    bench.idle();
    let mut token = bench.token();
    let give = |pin: &[u8]| bench.holder().verify_pin(&OTHER, pin, Tries::ButTwo, soon());
    give(PIN.as_bytes()).unwrap();
    let before = bench.world().commands;
    for _ in 0..3 {
        assert_eq!(give(b"9999"), Err(TokenError::PinWrong { tries_left: None }));
    }
    // No oracle for who tries all of them.
    denied(give(PIN.as_bytes()), "3 wrong PINs of user 33");
    bench.clock.advance(Duration::from_secs(3601));
    give(PIN.as_bytes()).unwrap();
    assert_eq!(bench.world().commands, before, "nothing was sent");
    assert_eq!(bench.world().tries_left(), 3);
    assert!(sign(&mut token, 1).is_ok(), "the others are still logged in");
    assert_eq!(token.pin_state(soon()), Ok(PinState::Absent));
}

#[test]
fn others_pins_before_the_agent_has_logged_in() {
    let bench = bench(Some(PinScope::Signing), Some(PIN));
    let give = |pin: &[u8]| bench.holder().verify_pin(&OTHER, pin, Tries::None, soon());
    assert_eq!(give(b"9999"), Err(TokenError::PinWrong { tries_left: None }));
    assert_eq!(bench.world().tries_left(), 3);
    give(PIN.as_bytes()).unwrap();
}

#[test]
fn tries_of_a_pin_that_is_not_held() {
    let bench = bench(Some(PinScope::Signing), None);
    let give = |tries| bench.holder().verify_pin(&OTHER, b"9999", tries, soon());
    denied(give(Tries::None), "add \"login\"");
    assert_eq!(bench.world().tries_left(), 3);
    assert_eq!(give(Tries::ButTwo), Err(TokenError::PinWrong { tries_left: Some(2) }));
    denied(give(Tries::ButTwo), "few tries of the PIN are left");
    assert_eq!(bench.world().tries_left(), 2, "the last but one is left");
    bench.holder().verify_pin(&OTHER, PIN.as_bytes(), Tries::All, soon()).unwrap();
}

#[test]
fn replacing_a_key_is_a_right_of_its_own() {
    let may = |right: &Right| *right != Right::Replace;
    let bench = with_rights(&Right::ALL.into_iter().filter(may).collect::<Vec<_>>());
    let mut token = bench.token();
    let before = *bench.world().card.card().export_public_key(&[0x20]).unwrap().bytes();
    denied(token.generate(&[0x20], soon()), "add \"replace\" to its caller.may");
    assert_eq!(*bench.world().card.card().export_public_key(&[0x20]).unwrap().bytes(), before);
    // A volatile container has nothing to lose.
    token.generate(&VOLATILE, soon()).unwrap();
    let bench = with_rights(&Right::ALL);
    bench.token().generate(&[0x20], soon()).unwrap();
}

#[test]
fn point_off_the_curve_is_not_sent_to_the_card() {
    let bench = bench(None, None);
    let mut token = bench.token();
    let peer = *bench.world().card.card().export_public_key(&KEY).unwrap().bytes();
    token.derive(&KEY, &peer, soon()).unwrap();
    let before = bench.world().commands;
    let mut off = peer;
    off[64] ^= 1;
    assert_eq!(token.derive(&KEY, &off, soon()).err(), Some(TokenError::PeerNotOnCurve));
    let mut compressed = peer;
    compressed[0] = 2;
    assert_eq!(token.derive(&KEY, &compressed, soon()).err(), Some(TokenError::PeerNotOnCurve));
    assert_eq!(bench.world().commands, before);
}

fn request(audience: String) -> JwtRequest {
    JwtRequest { audience: vec![audience], lifetime_s: 3600, ..JwtRequest::default() }
}

#[test]
fn tokens_have_a_size_limit() {
    let bench = bench(None, None);
    let mut client = bench.client();
    let signed = "warifu_agent_signatures_total{card=\"card\",kind=\"ok\"}";
    let long = request("a".repeat(JWT_MAX_BYTES));
    denied(ask(&mut client, Call::Jwt(long)), "expected 8192 B at most");
    let mut many = request("a".to_owned());
    many.claims = (0..1000).map(|number| (number.to_string(), "1".to_owned())).collect();
    denied(ask(&mut client, Call::Jwt(many)), "expected 8192 B at most");
    // The request is short enough, the token is not: base64 has four characters for three bytes.
    let nearly = request("a".repeat(JWT_MAX_BYTES - 500));
    denied(ask(&mut client, Call::Jwt(nearly)), "the token has");
    assert_eq!(bench.metric(signed), 0, "no signature was spent on them");
    let fits = jwt(ask(&mut client, Call::Jwt(request("a".repeat(5000)))));
    assert!(fits.len() <= JWT_MAX_BYTES);
    // Longer than any request may be.
    denied(ask(&mut client, Call::Jwt(request("a".repeat(100_000)))), "too long for the agent");
}

#[test]
fn one_user_cannot_take_all_places_of_tokens() {
    let bench = bench(None, None);
    let card = &bench.agent.cards()[0];
    let rights = Rights::all(33);
    let get = |uid, name: String| {
        let caller = Caller { id: 1, uid, has_gone: &|| false };
        card.jwts.get(&card.holder, &caller, &rights, &request(name), soon()).unwrap().0
    };
    (0..300).for_each(|number| drop(get(33, number.to_string())));
    assert_eq!(card.jwts.count(), 256);
    let first = get(34, "mine".to_owned());
    (300..400).for_each(|number| drop(get(33, number.to_string())));
    assert_eq!(get(34, "mine".to_owned()), first, "it has kept its place");
    assert_eq!(card.jwts.count(), 256);
}

#[test]
fn clock_that_goes_back_drops_tokens() {
    let bench = bench(None, None);
    let get = || {
        let wanted = request("a".to_owned());
        jwt(ask(&mut bench.client(), Call::Jwt(wanted)))
    };
    let first = get();
    assert_eq!(get(), first);
    bench.clock.set_unix_time(bench.clock.unix_time() - Duration::from_secs(4 * 3600));
    let second = get();
    assert_ne!(second, first, "its iat lies four hours in the future");
    assert_eq!(get(), second);
    // Nor is such a token renewed, or waited for.
    bench.clock.set_unix_time(bench.clock.unix_time() - Duration::from_secs(4 * 3600));
    let card = &bench.agent.cards()[0];
    assert_eq!(card.jwts.tick(&card.holder), None);
}

#[test]
fn callers_of_a_cold_agent_read_the_card_once() {
    let read = |callers: usize| {
        let world = World::new(None, nothing_wrong(), 1);
        locked(&world).write_file(CERTIFICATE[0], &[7; 600]);
        let bench = Bench::new(world, None, Vec::new());
        let card = locked(&bench.world);
        thread::scope(|scope| {
            let all: Vec<_> = (0..callers)
                .map(|_| {
                    scope.spawn(|| {
                        let mut token = bench.token();
                        token.info(soon()).unwrap();
                        let files = token.objects(soon()).unwrap().files;
                        token.read_public_key(&KEY, soon()).unwrap();
                        token.read_file(&files[0], soon()).unwrap().len()
                    })
                })
                .collect();
            while bench.holder().waiting() < callers {
                thread::sleep(Duration::from_millis(1));
            }
            drop(card);
            all.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), 600));
        });
        bench.world().commands
    };
    assert_eq!(read(20), read(1));
}

#[test]
fn what_is_known_does_not_wait_for_a_signature() {
    for pin in [None, Some(PIN)] {
        let bench = bench(pin.map(|_| PinScope::Signing), pin);
        bench.idle();
        let mut token = bench.token();
        assert_eq!(token.pin_state(soon()), Ok(PinState::Absent));
        let card = locked(&bench.world);
        thread::scope(|scope| {
            let signature = scope.spawn(|| {
                let input = digest(1);
                bench.token().sign(&KEY, SignInput::Digest(Hash::Sha256, &input), soon())
            });
            while bench.holder().waiting() == 0 {
                thread::sleep(Duration::from_millis(1));
            }
            // C_GetTokenInfo and C_FindObjectsInit, while the card is busy for as long as we are.
            token.info(soon()).unwrap();
            assert_eq!(token.pin_state(soon()), Ok(PinState::Absent));
            assert!(!token.objects(soon()).unwrap().private_keys.is_empty());
            assert!(!signature.is_finished());
            drop(card);
            signature.join().unwrap().unwrap();
        });
    }
}
