// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Our own module over a card of this process, whose time is what its timing model says.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use warifu_card::object::slot;
use warifu_card::timing::{CardProfile, Timing};
use warifu_card::{ATR, Card, Pin, PinScope, Reset, Response, Settings};
use warifu_iotsafe_client::transport::{Local, Transport};
use warifu_iotsafe_client::{CardToken, Options, Token};
use warifu_os::VirtualClock;
use warifu_pkcs11::ffi::C_GetFunctionList;
use warifu_pkcs11::functions::general_purpose::provide;
use warifu_pkcs11::slot::SlotConfig;
use warifu_pkcs11_client::Module;

use super::config::VirtualCard;
use crate::error::BenchError;

/// The PIN of the card, which is nobody's.
pub const PIN: &str = "1234";
/// Tries that the PIN has.
const TRIES: u8 = 3;
/// A certificate as the timing profile of papers/1's card has it; its content is not looked at.
const CERTIFICATE: [u8; 600] = [0x30; 600];
/// Draws of the card's own law, and what makes their seed another one.
const OWN_DRAWS: usize = 200_000;
const OTHER_SEED: u64 = 0x5eed;
/// Of the wall clock, which the card does not use.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Commands and their answers.
pub type Sent = Vec<(Vec<u8>, Response)>;

/// A card in this process, as the bench observes it from outside its module.
#[derive(Clone)]
pub struct CardObserver {
    /// The clock, which nothing but the card's work moves.
    pub clock: VirtualClock,
    profile: CardProfile,
    seed: u64,
    sent: Arc<Mutex<Sent>>,
}

impl CardObserver {
    /// Takes what was sent since the last time.
    #[must_use]
    pub fn take_sent(&self) -> Sent {
        std::mem::take(&mut self.sent.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the timing model gives by itself for these commands, under another seed: mean and
    /// quantiles at 0.5, 0.9 and 0.99, ns.
    #[must_use]
    pub fn own_law(&self, sent: &[(Vec<u8>, Response)]) -> [f64; 4] {
        let mut timing = Timing::new(self.profile.clone(), self.seed ^ OTHER_SEED);
        let mut draws: Vec<u64> = (0..OWN_DRAWS)
            .map(|_| sent.iter().map(|(apdu, answer)| timing.time(apdu, answer).0).sum())
            .collect();
        draws.sort_unstable();
        let mean = draws.iter().map(|ns| *ns as f64).sum::<f64>() / OWN_DRAWS as f64;
        let at = |p: f64| draws[(p * OWN_DRAWS as f64) as usize] as f64;
        [mean, at(0.5), at(0.9), at(0.99)]
    }
}

/// The module with a card of this timing, and what is seen of the card. Works once in a process.
///
/// # Errors
/// The profile cannot be read.
pub fn module(wanted: &VirtualCard) -> Result<(Module, CardObserver), BenchError> {
    let path = wanted.profile.display();
    let text = std::fs::read_to_string(&wanted.profile).map_err(|error| {
        BenchError::Config(format!("{path}: {error}: name a profile of profiles/cards"))
    })?;
    let name = wanted.profile.file_stem().unwrap_or_default().to_string_lossy();
    let profile = CardProfile::parse(&name, &text, &path.to_string())
        .map_err(|error| BenchError::Config(error.to_string()))?;
    let timing = Timing::new(profile.clone(), wanted.seed);
    let clock = VirtualClock::default();
    let seen = CardObserver { clock, profile, seed: wanted.seed, sent: Arc::default() };
    let card = shared(card(wanted.seed)?, timing, seen.clone());
    let provided = provide(Box::new(move || {
        let token: Box<dyn Token> = Box::new(CardToken::new(card(), Options::default()));
        vec![(slot_config(), token)]
    }));
    if !provided {
        return Err(BenchError::Config("virtual_card: one is in this process already".into()));
    }
    // SAFETY: the function is linked into this program, and so are those of its list.
    let module = unsafe { Module::linked(C_GetFunctionList) }?;
    Ok((module, seen))
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

/// Makes transports to one card, whose clock advances with each answer.
fn shared(
    card: (Card, ChaCha20Rng),
    timing: Timing,
    seen: CardObserver,
) -> impl Fn() -> Box<dyn Transport> + Send + Sync {
    let card = Arc::new(Mutex::new((card.0, card.1, timing)));
    move || {
        let (one, other, seen) = (Arc::clone(&card), Arc::clone(&card), seen.clone());
        let exchange = move |apdu: &[u8]| {
            let (card, rng, timing) = &mut *one.lock().unwrap_or_else(PoisonError::into_inner);
            let response = card.transmit(apdu, rng);
            seen.clock.advance(Duration::from_nanos(timing.time(apdu, &response).0));
            let bytes = response.to_bytes();
            let mut sent = seen.sent.lock().unwrap_or_else(PoisonError::into_inner);
            sent.push((apdu.to_vec(), response));
            bytes
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
        location: "virtual clock".to_owned(),
        label: None,
        card_hashes: false,
        replace_keys: false,
        timeout: TIMEOUT,
    }
}
