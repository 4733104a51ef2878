// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose turn it is at the card: order, deadlines, callers that hang up.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use warifu_agent_protocol::message::{Call, Input, Request, encode};
use warifu_iotsafe_client::{Hash, SignInput, Token, TokenError, TransportError};

use crate::common::Bench;
use crate::{KEY, bench, digest, sign};

#[test]
fn concurrent_callers_get_their_own_signatures() {
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
    assert_eq!(signatures(&bench, "ok"), 150);
}

/// A request to sign on a separate connection, which can be closed at any time.
fn asked(bench: &Bench, number: u32) -> UnixStream {
    let input = Input::from(SignInput::Digest(Hash::Sha256, &digest(number)));
    let call = Call::Sign { key: KEY.to_vec(), input };
    let timeout = Duration::from_secs(20);
    let request = Request { number: 1, card: String::new(), timeout, call };
    let mut stream = UnixStream::connect(&bench.path).unwrap();
    stream.write_all(&encode(&request).unwrap()).unwrap();
    stream
}

fn wait_until(mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "it never comes");
        thread::sleep(Duration::from_millis(1));
    }
}

fn signatures(bench: &Bench, kind: &str) -> u64 {
    bench.metric(&format!("warifu_agent_signatures_total{{card=\"card\",kind=\"{kind}\"}}"))
}

/// How many callers have a place, the one who asks among them.
fn places(bench: &Bench) -> u64 {
    let text = bench.status();
    let (_, rest) = text.split_once("\"callers\":").unwrap();
    rest.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn disconnected_waiting_caller_sends_no_command() {
    let bench = bench(None, None);
    let mut token = bench.token();
    sign(&mut token, 0).unwrap();
    let before = bench.world().commands;
    // Nobody gets past this: the first caller waits at the card, the others for their turns.
    let card = bench.world.lock().unwrap();
    thread::scope(|scope| {
        let first = scope.spawn(|| sign(&mut token, 1));
        wait_until(|| waiting_callers(&bench) == 1);
        let killed = asked(&bench, 2);
        wait_until(|| waiting_callers(&bench) == 2);
        drop(killed);
        let mut other = bench.token();
        let last = scope.spawn(move || sign(&mut other, 3));
        wait_until(|| waiting_callers(&bench) == 3);
        drop(card);
        assert!(first.join().unwrap().is_ok() && last.join().unwrap().is_ok());
    });
    assert_eq!(bench.world().commands - before, 2, "one for each caller that was still there");
    drop(token);
    wait_until(|| places(&bench) == 1);
    assert_eq!((signatures(&bench, "ok"), signatures(&bench, "failed")), (3, 1));
}

#[test]
fn signature_for_disconnected_caller_is_discarded() {
    let bench = bench(None, None);
    let point = bench.world().card.card().export_public_key(&KEY).unwrap();
    let mut token = bench.token();
    sign(&mut token, 0).unwrap();
    let before = bench.world().commands;
    let card = bench.world.lock().unwrap();
    thread::scope(|scope| {
        let killed = asked(&bench, 1);
        wait_until(|| waiting_callers(&bench) == 1);
        // It is past the queue when the card's state is taken, and stands at the card.
        wait_until(|| bench.holder().state().is_none());
        drop(killed);
        let next = scope.spawn(|| sign(&mut token, 2));
        wait_until(|| waiting_callers(&bench) == 2);
        drop(card);
        let signature = next.join().unwrap().unwrap();
        assert!(point.verify(&digest(2), &signature));
    });
    assert_eq!(bench.world().commands - before, 2, "the card had begun with it");
    drop(token);
    wait_until(|| places(&bench) == 1);
    assert_eq!((signatures(&bench, "ok"), signatures(&bench, "failed")), (2, 1));
    assert_eq!(bench.holder().waiting(), 0);
}

/// How many have or await a turn, as the queue has it: the card's own state is locked just now.
fn waiting_callers(bench: &Bench) -> usize {
    bench.holder().waiting()
}

#[test]
fn deadline_while_queued() {
    let bench = bench(None, None);
    let mut token = bench.token();
    sign(&mut token, 0).unwrap();
    let card = bench.world.lock().unwrap();
    thread::scope(|scope| {
        let first = scope.spawn(|| sign(&mut token, 1));
        wait_until(|| waiting_callers(&bench) == 1);
        let mut hasty = bench.token();
        let end = Instant::now() + Duration::from_millis(50);
        let input = SignInput::Digest(Hash::Sha256, &[1; 32]);
        let late = hasty.sign(&KEY, input, end);
        assert!(matches!(late, Err(TokenError::Transport(TransportError::Timeout(_)))), "{late:?}");
        drop(card);
        assert!(first.join().unwrap().is_ok());
        assert!(sign(&mut hasty, 2).is_ok(), "its next request is answered");
    });
    // Who waited in vain has no signature.
    wait_until(|| signatures(&bench, "failed") == 1);
}
