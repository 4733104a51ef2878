// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Our own module over a card of this process, whose time is what its timing model says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use warifu_caller::{Clock, Module};
use warifu_card::object::slot;
use warifu_card::timing::{CardProfile, Timing};
use warifu_card::{ATR, Card, Pin, PinScope, Reset, Settings};
use warifu_model::Nanos;
use warifu_pkcs11::ffi::C_GetFunctionList;
use warifu_pkcs11::library::provide;
use warifu_pkcs11::slot::SlotConfig;
use warifu_token::transport::{Local, Transport};
use warifu_token::{CardToken, Options, Token};

use crate::config::VirtualCard;
use crate::error::BenchError;

/// The PIN of the card, which is nobody's.
pub const PIN: &str = "1234";
/// Tries that the PIN has.
const TRIES: u8 = 3;
/// A certificate as the timing profile of papers/1's card has it; its content is not looked at.
const CERTIFICATE: [u8; 600] = [0x30; 600];
/// Of the wall clock, which the card does not use.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The clock that the card's work moves on, and nothing else.
#[derive(Clone, Debug, Default)]
pub struct CardClock(Arc<AtomicU64>);

impl Clock for CardClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl CardClock {
    fn advance(&self, by: Nanos) {
        self.0.fetch_add(by.0, Ordering::Relaxed);
    }
}

/// The module with a card of this timing, and the card's clock. Works once in a process.
///
/// # Errors
/// The profile cannot be read.
pub fn module(wanted: &VirtualCard) -> Result<(Module, CardClock), BenchError> {
    let path = wanted.profile.display();
    let text = std::fs::read_to_string(&wanted.profile).map_err(|error| {
        BenchError::Config(format!("{path}: {error}: name a profile of profiles/cards"))
    })?;
    let name = wanted.profile.file_stem().unwrap_or_default().to_string_lossy();
    let profile = CardProfile::parse(&name, &text, &path.to_string())
        .map_err(|error| BenchError::Config(error.to_string()))?;
    let clock = CardClock::default();
    let card = shared(card(wanted.seed)?, Timing::new(profile, wanted.seed), clock.clone());
    let provided = provide(Box::new(move || {
        let token: Box<dyn Token> = Box::new(CardToken::new(card(), Options::default()));
        vec![(slot_config(), token)]
    }));
    if !provided {
        return Err(BenchError::Config("virtual_card: one is in this process already".into()));
    }
    // SAFETY: the function is linked into this program, and so are those of its list.
    let module = unsafe { Module::linked(C_GetFunctionList) }?;
    Ok((module, clock))
}

/// A card with the usual slots, a PIN for signatures and a certificate.
fn card(seed: u64) -> Result<(Card, ChaCha20Rng), BenchError> {
    let failed = |why: &dyn std::fmt::Display| BenchError::Config(format!("virtual_card: {why}"));
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let pin = Pin::new(PIN, PinScope::Signing, TRIES);
    let settings = Settings { pin, ..Settings::default() };
    let mut card = Card::with_usual_slots(settings, &mut rng).map_err(|error| failed(&error))?;
    card.write_file(&[slot::CLIENT_CERTIFICATE], &CERTIFICATE).map_err(|error| failed(&error))?;
    Ok((card, rng))
}

/// Gives ways to one card, whose clock goes on with each answer.
fn shared(
    card: (Card, ChaCha20Rng),
    timing: Timing,
    clock: CardClock,
) -> impl Fn() -> Box<dyn Transport> + Send + Sync {
    let card = Arc::new(Mutex::new((card.0, card.1, timing)));
    move || {
        let (one, other, clock) = (Arc::clone(&card), Arc::clone(&card), clock.clone());
        let exchange = move |apdu: &[u8]| {
            let (card, rng, timing) = &mut *one.lock().unwrap_or_else(PoisonError::into_inner);
            let response = card.transmit(apdu, rng);
            clock.advance(timing.time(apdu, &response));
            response.to_bytes()
        };
        let reset = move || {
            other.lock().unwrap_or_else(PoisonError::into_inner).0.reset(Reset::Cold);
            ATR.to_vec()
        };
        Box::new(Local::new(exchange, reset))
    }
}

fn slot_config() -> SlotConfig {
    SlotConfig {
        place: "virtual clock".to_owned(),
        label: None,
        card_hashes: false,
        replace_keys: false,
        timeout: TIMEOUT,
    }
}
