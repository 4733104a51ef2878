// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads that ask a card which does not answer: each has its deadline, not one after the other.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use warifu_pkcs11::slot::{Slot, SlotConfig};
use warifu_token::{CardToken, Options, Token, Transport, TransportError};

const TIMEOUT: Duration = Duration::from_secs(1);
const THREADS: u32 = 8;

/// A reader whose card has died.
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

#[test]
fn no_thread_waits_for_the_deadlines_of_others() {
    let config = SlotConfig {
        place: "dead".to_owned(),
        label: None,
        card_hashes: false,
        replace_keys: false,
        timeout: TIMEOUT,
    };
    let token: Box<dyn Token> = Box::new(CardToken::new(Box::new(Dead), Options::default()));
    let slot = Slot::new(0, config, token, Arc::new(|_: &str| {}));
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| assert!(slot.ask(|token, end| token.pin_state(end)).is_err()));
        }
    });
    let took = start.elapsed();
    assert!(took < TIMEOUT * THREADS / 2, "{took:?}");
}
