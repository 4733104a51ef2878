// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A PIN that a reset follows: the card counts it once, whatever other programs did before.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use warifu_card::{Card, Pin, PinScope, Reset, Settings, ins};
use warifu_iotsafe_client::{
    CardToken, Options, PinState, Token, TokenError, Transport, TransportError,
};

const WRONG: &[u8] = b"0000";
const RIGHT: &[u8] = b"1234";

struct World {
    card: Card,
    rng: ChaCha20Rng,
    /// Whether the card is reset before it answers the next PIN.
    resets: bool,
}

/// A program's way to the card.
struct Line(Arc<Mutex<World>>);

impl Transport for Line {
    fn exchange(&mut self, apdu: &[u8], _: Instant) -> Result<Vec<u8>, TransportError> {
        let world = &mut *self.0.lock().unwrap();
        let answer = world.card.transmit(apdu, &mut world.rng).to_bytes();
        if apdu[1] == ins::VERIFY && apdu.len() > 5 && std::mem::take(&mut world.resets) {
            world.card.reset(Reset::Cold);
            return Err(TransportError::CardReset);
        }
        Ok(answer)
    }

    fn reset(&mut self, _: Instant) -> Result<Vec<u8>, TransportError> {
        Ok(Vec::new())
    }

    fn shares_channels(&self) -> bool {
        false
    }

    fn name(&self) -> String {
        "a line".to_owned()
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn world() -> Arc<Mutex<World>> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let pin = Pin::new("1234", PinScope::Signing, 3);
    let card = Card::with_usual_slots(Settings { pin, ..Settings::default() }, &mut rng).unwrap();
    Arc::new(Mutex::new(World { card, rng, resets: false }))
}

fn token(world: &Arc<Mutex<World>>) -> CardToken {
    CardToken::new(Box::new(Line(Arc::clone(world))), Options::default())
}

#[test]
fn pin_is_not_resent_after_another_program_restored_the_tries() {
    let world = world();
    let (mut one, mut other) = (token(&world), token(&world));
    one.verify_pin(WRONG, soon()).unwrap_err();
    assert_eq!(one.pin_state(soon()), Ok(PinState::Wanted(Some(2))));
    other.verify_pin(RIGHT, soon()).unwrap();
    // As a person takes who is asked for the PIN.
    thread::sleep(Duration::from_millis(1100));
    world.lock().unwrap().card.reset(Reset::Cold);
    world.lock().unwrap().resets = true;
    let said = one.verify_pin(WRONG, soon());
    assert_eq!(said, Err(TokenError::Transport(TransportError::CardReset)));
    assert_eq!(one.pin_state(soon()), Ok(PinState::Wanted(Some(3))), "the card never got it");
}

#[test]
fn pin_is_resent_after_a_reset_that_lost_it() {
    let world = world();
    let mut one = token(&world);
    // As C_GetTokenInfo asks before a login.
    assert_eq!(one.pin_state(soon()), Ok(PinState::Wanted(Some(3))));
    world.lock().unwrap().resets = true;
    assert_eq!(one.verify_pin(RIGHT, soon()), Ok(()));
    assert_eq!(one.pin_state(soon()), Ok(PinState::Verified));
}
