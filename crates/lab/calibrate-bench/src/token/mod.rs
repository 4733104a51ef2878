// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long the calls of a signature take in any PKCS#11 module (papers/1, Table 2).
//!
//! The modes take turns, a block of trials each, so that whatever drifts meets all alike.

mod config;
mod software;
mod virtual_card;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use p256::ecdsa::signature::hazmat::PrehashVerifier;
use p256::ecdsa::{Signature, VerifyingKey};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Serialize;
use warifu_os::{Clock, SystemClock};
use warifu_pkcs11_client::{CallTimes, Caller, CallerError, Module};
use zeroize::Zeroizing;

pub use config::{Config, Mode, VirtualCard};

use crate::error::BenchError;
use virtual_card::{CardObserver, Sent};

/// What is signed: the paper's 32 bytes (papers/1, section 3.3).
pub const MESSAGE: [u8; 32] = *b"12345678901234567890123456789012";
/// Trials of a mode before the next mode's turn. `sign_only` opens its session once a block.
const BLOCK: u32 = 10;
/// What our own module says of its maker (crates/iotsafe/pkcs11/src/info.rs).
const OURS: &str = "Warifu";

/// A line of the output.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// What is timed; before the first trial.
    Token {
        /// The module's maker, description and version.
        module: [String; 3],
        /// The token's label.
        label: String,
        /// Who made it.
        manufacturer: String,
        /// What it is.
        model: String,
        /// Its number.
        serial: String,
        /// Its slot.
        slot: String,
        /// The key's label.
        key: String,
        /// Whether a signature was verified with the public key.
        verified: bool,
    },
    /// What the card on the virtual clock takes by itself for the commands of a mode's last trial,
    /// under another seed; at the end.
    Card {
        /// The mode.
        mode: Mode,
        /// Commands in a trial.
        commands: usize,
        /// The mean, ns.
        mean_ns: f64,
        /// The quantile at 0.5, ns.
        p50_ns: f64,
        /// The quantile at 0.9, ns.
        p90_ns: f64,
        /// The quantile at 0.99, ns.
        p99_ns: f64,
    },
    /// One trial.
    Trial {
        /// Its mode.
        mode: Mode,
        /// Its number within the mode, from 0.
        trial: u32,
        /// What each call took, ns, in their order.
        times_ns: Vec<(String, u64)>,
    },
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With its last trial.
    Done,
    /// It was asked to stop.
    Stopped,
}

/// Times all trials; each is told as it ends.
///
/// # Errors
/// [`BenchError`], in one line.
pub fn run(
    config: &Config,
    tell: &mut dyn FnMut(&Event) -> Result<(), BenchError>,
    stop: &AtomicBool,
) -> Result<Ended, BenchError> {
    let mut bench = Bench::prepare(config)?;
    tell(&bench.introduce()?)?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(config.seed);
    let mut modes = config.modes.clone();
    let mut done = 0;
    while done < config.trials {
        let block = BLOCK.min(config.trials - done);
        shuffle(&mut modes, &mut rng);
        for &mode in &modes {
            bench.begin(mode)?;
            for trial in done..done + block {
                if stop.load(Ordering::Relaxed) {
                    return Ok(Ended::Stopped);
                }
                let times_ns = bench.trial(mode)?;
                tell(&Event::Trial { mode, trial, times_ns })?;
            }
            bench.caller.close()?;
        }
        done += block;
    }
    if let Some(seen) = &bench.seen {
        for (mode, sent) in &bench.last_sent {
            let [mean_ns, p50_ns, p90_ns, p99_ns] = seen.own_law(sent);
            let (mode, commands) = (*mode, sent.len());
            tell(&Event::Card { mode, commands, mean_ns, p50_ns, p90_ns, p99_ns })?;
        }
    }
    Ok(Ended::Done)
}

/// One trial of a process that has just begun: what it took up to its first signature.
///
/// # Errors
/// [`BenchError`], in one line.
pub fn one_fresh(config: &Config) -> Result<Event, BenchError> {
    let clock = SystemClock;
    let begin = clock.now();
    let path =
        config.module.as_ref().ok_or_else(|| BenchError::Config("module is missing".into()))?;
    let module = Module::load(path)?;
    let initialised = clock.now();
    let mut caller = Caller::known(module, &config.wanted())?;
    let found = clock.now();
    let mut times = vec![
        ("C_Initialize".to_owned(), nanos(initialised - begin)),
        ("C_GetSlotList".to_owned(), nanos(found - initialised)),
    ];
    times.extend(named(caller.open(&clock)?));
    times.extend(named(caller.sign(&MESSAGE, &clock)?.1));
    Ok(Event::Trial { mode: Mode::Fresh, trial: 0, times_ns: times })
}

struct Bench<'a> {
    config: &'a Config,
    caller: Caller,
    clock: Box<dyn Clock>,
    /// Of a virtual card.
    seen: Option<CardObserver>,
    last_sent: Vec<(Mode, Sent)>,
}

impl<'a> Bench<'a> {
    fn prepare(config: &'a Config) -> Result<Bench<'a>, BenchError> {
        let mut wanted = config.wanted();
        let (module, seen) = match (&config.virtual_card, &config.module) {
            (Some(card), _) => {
                wanted.pin = Some(Zeroizing::new(virtual_card::PIN.to_owned()));
                wanted.key = Some("client".to_owned());
                let (module, seen) = virtual_card::module(card)?;
                (module, Some(seen))
            }
            (None, Some(path)) => (Module::load(path)?, None),
            (None, None) => return Err(BenchError::Config("module is missing".into())),
        };
        let clock: Box<dyn Clock> = match &seen {
            Some(seen) => Box::new(seen.clock.clone()),
            None => Box::new(SystemClock),
        };
        let ours = module.info()?.manufacturer == OURS;
        let caller = Caller::prepare(module, &wanted).map_err(|error| match error {
            CallerError::NoToken if ours => BenchError::NoCard(place()),
            other => BenchError::Caller(other),
        })?;
        Ok(Bench { config, caller, clock, seen, last_sent: Vec::new() })
    }

    /// Signs once, which warms what is to be warmed, and verifies that.
    fn introduce(&mut self) -> Result<Event, BenchError> {
        self.caller.open(&*self.clock)?;
        let (signature, _) = self.caller.sign(&MESSAGE, &*self.clock)?;
        self.caller.close()?;
        let (token, key) = (&self.caller.token().info, self.caller.key());
        let verified = match &key.point {
            None => false,
            Some(point) if verifies(point, &signature) => true,
            Some(_) => return Err(BenchError::Signature(token.label.clone())),
        };
        let library = self.caller.module().info()?;
        Ok(Event::Token {
            module: [library.manufacturer, library.description, library.version],
            label: token.label.clone(),
            manufacturer: token.manufacturer.clone(),
            model: token.model.clone(),
            serial: token.serial.clone(),
            slot: token.slot.clone(),
            key: key.label.clone(),
            verified,
        })
    }

    fn begin(&mut self, mode: Mode) -> Result<(), BenchError> {
        if mode == Mode::SignOnly {
            self.caller.open(&*self.clock)?;
        }
        Ok(())
    }

    fn trial(&mut self, mode: Mode) -> Result<Vec<(String, u64)>, BenchError> {
        if mode == Mode::Total {
            // What it takes to close the session before is nobody's time.
            self.caller.close()?;
        }
        let _ = self.seen.as_ref().map(CardObserver::take_sent);
        let times = self.timed(mode)?;
        if let Some(sent) = self.seen.as_ref().map(CardObserver::take_sent) {
            self.last_sent.retain(|(known, _)| *known != mode);
            self.last_sent.push((mode, sent));
        }
        Ok(times)
    }

    fn timed(&mut self, mode: Mode) -> Result<Vec<(String, u64)>, BenchError> {
        let clock = &*self.clock;
        Ok(match mode {
            Mode::LocalSw => {
                vec![("command".to_owned(), software::command(&self.config.software, clock)?)]
            }
            Mode::SignOnly => named(self.caller.sign(&MESSAGE, clock)?.1),
            Mode::Total => {
                let mut times = named(self.caller.open(clock)?);
                times.extend(named(self.caller.sign(&MESSAGE, clock)?.1));
                times
            }
            Mode::Fresh => software::fresh(self.config, &self.caller)?,
        })
    }
}

/// Where our module has looked for a card (docs/how-to/iot-safe.md, "Which SIM").
fn place() -> String {
    match std::env::var("WARIFU_CARD") {
        Ok(place) => format!("WARIFU_CARD={place}"),
        Err(_) => "with WARIFU_CARD not set".to_owned(),
    }
}

fn named(times: CallTimes) -> Vec<(String, u64)> {
    times.into_iter().map(|(call, took)| (call.name().to_owned(), nanos(took))).collect()
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn verifies(point: &[u8], signature: &[u8]) -> bool {
    let Ok(key) = VerifyingKey::from_sec1_bytes(point) else { return false };
    Signature::from_slice(signature)
        .is_ok_and(|signature| key.verify_prehash(&MESSAGE, &signature).is_ok())
}

/// Fisher-Yates.
fn shuffle(modes: &mut [Mode], rng: &mut Xoshiro256PlusPlus) {
    for last in (1..modes.len()).rev() {
        let other = (rng.next_u64() % (last as u64 + 1)) as usize;
        modes.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drives the module over the card: what it is told of each call is what the timing model
    /// gave, and a seed replays it. Works once in a process, so all is in one test.
    #[test]
    fn module_calls_take_the_times_of_the_timing_model() {
        let profile =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../../profiles/cards/iot-safe-sakomoto.toml");
        let config = Config {
            module: None,
            virtual_card: Some(VirtualCard { profile: profile.into(), seed: 7 }),
            token: None,
            key: None,
            pin: None,
            modes: vec![Mode::SignOnly, Mode::Total],
            trials: 30,
            seed: 1,
            software: Vec::new(),
        };
        let mut events = Vec::new();
        let mut tell = |event: &Event| {
            events.push(event.clone());
            Ok(())
        };
        assert_eq!(run(&config, &mut tell, &AtomicBool::new(false)).unwrap(), Ended::Done);
        assert!(matches!(&events[0], Event::Token { verified: true, key, .. } if key == "client"));
        let sums = |wanted: Mode| -> Vec<f64> {
            let of_mode = events.iter().filter_map(|event| match event {
                Event::Trial { mode, times_ns, .. } if *mode == wanted => Some(times_ns),
                _ => None,
            });
            of_mode.map(|times| times.iter().map(|(_, ns)| *ns as f64 / 1e6).sum()).collect()
        };
        let (sign_only, total) = (sums(Mode::SignOnly), sums(Mode::Total));
        assert_eq!((sign_only.len(), total.len()), (30, 30));
        // The body of the profile's laws: 459 to 479 ms with 5 ms of exchanges and bytes.
        assert!(sign_only.iter().all(|ms| (460.0..600.0).contains(ms)), "{sign_only:?}");
        assert!(total.iter().all(|ms| (600.0..2500.0).contains(ms)), "{total:?}");
    }

    #[test]
    fn shuffle_keeps_every_mode() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut first = [0; 3];
        for _ in 0..300 {
            let mut modes = [Mode::LocalSw, Mode::SignOnly, Mode::Total];
            shuffle(&mut modes, &mut rng);
            first[modes.iter().position(|mode| *mode == Mode::Total).unwrap()] += 1;
        }
        assert!(first.iter().all(|count| (70..130).contains(count)), "{first:?}");
    }
}
