// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads that use a card that does not answer: their deadlines do not add up. And recovery after
//! one late answer.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use chacha20::ChaCha20Rng;
use cryptoki_sys::{CKA_CLASS, CKO_CERTIFICATE};
use rand_core::SeedableRng;
use warifu_card::object::slot::CLIENT_CERTIFICATE;
use warifu_card::{Card, Settings, ins};
use warifu_iotsafe_client::{CardToken, Options, Token, Transport, TransportError};
use warifu_pkcs11::slot::{Slot, SlotConfig};
use warifu_pkcs11::template::Template;

const TIMEOUT: Duration = Duration::from_secs(1);
const THREADS: u32 = 8;

/// A reader whose card does not answer.
struct Dead;

impl Transport for Dead {
    fn exchange(&mut self, _: &[u8], deadline: Instant) -> Result<Vec<u8>, TransportError> {
        self.reset(deadline)
    }

    fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError> {
        thread::sleep(deadline.saturating_duration_since(Instant::now()));
        Err(TransportError::Timeout(self.name()))
    }

    fn name(&self) -> String {
        "dead".to_owned()
    }
}

/// A card that does not answer the first command, and refuses to read its files.
struct LateOnce {
    card: Card,
    rng: ChaCha20Rng,
    was_late: bool,
}

impl LateOnce {
    fn new() -> LateOnce {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut card = Card::with_usual_slots(Settings::default(), &mut rng).unwrap();
        card.write_file(&[CLIENT_CERTIFICATE], b"not for everybody").unwrap();
        LateOnce { card, rng, was_late: false }
    }
}

impl Transport for LateOnce {
    fn exchange(&mut self, apdu: &[u8], deadline: Instant) -> Result<Vec<u8>, TransportError> {
        if !self.was_late {
            self.was_late = true;
            return Dead.exchange(apdu, deadline);
        }
        // Long enough for the other thread to come and wait.
        thread::sleep(Duration::from_millis(5));
        if apdu[1] == ins::READ_FILE {
            return Ok(vec![0x69, 0x82]);
        }
        Ok(self.card.transmit(apdu, &mut self.rng).to_bytes())
    }

    fn reset(&mut self, _: Instant) -> Result<Vec<u8>, TransportError> {
        Ok(Vec::new())
    }

    fn name(&self) -> String {
        "late once".to_owned()
    }
}

fn slot(transport: Box<dyn Transport>) -> Slot {
    let config = SlotConfig {
        location: transport.name(),
        label: None,
        card_hashes: false,
        replace_keys: false,
        timeout: TIMEOUT,
    };
    let token: Box<dyn Token> = Box::new(CardToken::new(transport, Options::default()));
    Slot::new(0, config, token, Arc::new(|_, _: &str| {}))
}

#[test]
fn dead_card_blocks_each_thread_for_one_timeout() {
    let slot = slot(Box::new(Dead));
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| assert!(slot.with_token(|token, end| token.pin_state(end)).is_err()));
        }
    });
    let took = start.elapsed();
    assert!(took < TIMEOUT * THREADS / 2, "{took:?}");
}

#[test]
fn late_answer_fails_only_waiting_calls() {
    let slot = slot(Box::new(LateOnce::new()));
    let failures =
        || (0..50).filter(|_| slot.with_token(|token, end| token.pin_state(end)).is_err());
    let (one, other) = thread::scope(|scope| {
        let one = scope.spawn(|| failures().count());
        let other = scope.spawn(|| failures().count());
        (one.join().unwrap(), other.join().unwrap())
    });
    // The call without an answer, one that timed out in the queue, and one that waited meanwhile.
    assert!((1..=3).contains(&(one + other)), "{one} and {other}");
}

#[test]
fn turn_leaves_time_for_the_card() {
    let slot = slot(Box::new(LateOnce::new()));
    let (began, begins) = mpsc::channel();
    let (asks, asked) = mpsc::channel::<Instant>();
    thread::scope(|scope| {
        scope.spawn(|| {
            let asked = asked;
            let _ = slot.with_token(|_, _| {
                began.send(()).unwrap();
                let end = asked.recv().unwrap() + TIMEOUT * 9 / 10;
                thread::sleep(end.saturating_duration_since(Instant::now()));
                Ok(())
            });
        });
        begins.recv().unwrap();
        asks.send(Instant::now()).unwrap();
        let mut left = None;
        let answer = slot.with_token(|_, end| {
            left = Some(end.saturating_duration_since(Instant::now()));
            Ok(())
        });
        assert_eq!(answer.is_ok(), left.is_some());
        assert!(left.is_none_or(|left| left > TIMEOUT / 5), "{left:?}");
    });
}

#[test]
fn unreadable_file_after_a_late_answer() {
    let slot = slot(Box::new(LateOnce::new()));
    let class = CKO_CERTIFICATE.to_ne_bytes().to_vec();
    let certificates = Template::new(vec![(CKA_CLASS, class)]).unwrap();
    assert!(slot.find(&certificates).is_err(), "the card was late");
    assert_eq!(slot.find(&certificates), Ok(Vec::new()));
}
