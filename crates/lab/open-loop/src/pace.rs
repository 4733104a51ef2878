// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many trials there are, and how far apart they begin.

use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// More trials than a run can need; a guard against typing mistakes.
const MOST_TRIALS: u32 = 10_000_000;
/// Above this one thread cannot keep the pace (a CoAP exchange takes about 0.1 ms, a TLS handshake
/// about a millisecond).
const MOST_PER_SECOND: f64 = 10_000.0;
/// A day, s: longer times are mistakes.
const MOST_S: f64 = 86_400.0;

/// The pace of a run, as the keys of its configuration give it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// How many trials.
    pub trials: u32,
    /// How many of them begin at the same moment.
    pub concurrent: u32,
    /// How many of them begin in a second, on average.
    pub rate_per_second: f64,
    /// Pauses between them vary evenly by this share of their mean, 0 to 1.
    pub spread: f64,
    /// When a trial without a response counts as failed, s.
    pub timeout_s: f64,
    /// Trials come one after the other: the next begins a pause after the one before has ended.
    pub alone: bool,
    /// Decides the pauses.
    pub seed: u64,
    /// When others are at work, of which a beginning keeps clear; `None` where that is not known.
    pub clear: Option<Clear>,
}

/// When trials that are under way compute. Each waits for an answer, computes, and waits again, so
/// that it is at work once in a round trip. Two whose work coincides wait for each other's
/// processor, which is a property of neither.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clear {
    /// The time between two spells of work, s: that of a round trip.
    pub round_trip_s: f64,
    /// For how long a trial is at work, at most, s: all that it computes, since each spell of it
    /// moves the next ones.
    pub work_s: f64,
}

impl Pace {
    /// Checks it; an error names the key and the fix.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=MOST_TRIALS).contains(&self.trials) {
            return Err(format!("trials is {}: expected 1 to {MOST_TRIALS}", self.trials));
        }
        if self.concurrent == 0 || !self.trials.is_multiple_of(self.concurrent) {
            return Err(format!(
                "concurrent is {}: expected a number that divides trials, {}",
                self.concurrent, self.trials
            ));
        }
        if !(self.rate_per_second > 0.0 && self.rate_per_second <= MOST_PER_SECOND) {
            return Err(format!(
                "rate_per_second is {}: expected more than 0 and at most {MOST_PER_SECOND}",
                self.rate_per_second
            ));
        }
        if !(0.0..=1.0).contains(&self.spread) {
            return Err(format!("spread is {}: expected 0 to 1", self.spread));
        }
        if let Some(Clear { round_trip_s, work_s }) = self.clear {
            for (key, value) in [("round_trip_s", round_trip_s), ("work_s", work_s)] {
                if !(0.0..=MOST_S).contains(&value) {
                    return Err(format!("{key} is {value}: expected 0 to {MOST_S}"));
                }
            }
        }
        if !(self.timeout_s > 0.0 && self.timeout_s <= MOST_S) {
            return Err(format!(
                "timeout_s is {}: expected more than 0 and at most {MOST_S}",
                self.timeout_s
            ));
        }
        Ok(())
    }

    /// When a trial without a response counts as failed.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s)
    }
}

/// The times between beginnings.
#[derive(Debug)]
pub(crate) struct Pauses {
    random: Xoshiro256PlusPlus,
    mean_s: f64,
    spread: f64,
}

impl Pauses {
    pub(crate) fn new(pace: &Pace) -> Pauses {
        Pauses {
            random: Xoshiro256PlusPlus::seed_from_u64(pace.seed),
            mean_s: f64::from(pace.concurrent) / pace.rate_per_second,
            spread: pace.spread,
        }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let uniform = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        Duration::from_secs_f64(self.mean_s * (1.0 + self.spread * (2.0 * uniform - 1.0)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) const PACE: Pace = Pace {
        trials: 4,
        concurrent: 1,
        rate_per_second: 50.0,
        spread: 1.0,
        timeout_s: 5.0,
        alone: false,
        seed: 7,
        clear: None,
    };

    pub(crate) fn clear(round_trip_s: f64, work_s: f64) -> Option<Clear> {
        Some(Clear { round_trip_s, work_s })
    }

    #[test]
    fn mistakes_name_the_key() {
        assert_eq!(PACE.check(), Ok(()));
        for (pace, words) in [
            (Pace { trials: 0, ..PACE }, "trials is 0"),
            (Pace { concurrent: 3, ..PACE }, "concurrent is 3: expected a number that divides"),
            (Pace { concurrent: 0, ..PACE }, "concurrent is 0"),
            (Pace { rate_per_second: 0.0, ..PACE }, "rate_per_second is 0"),
            (Pace { rate_per_second: f64::NAN, ..PACE }, "rate_per_second is NaN"),
            (Pace { spread: 1.1, ..PACE }, "spread is 1.1"),
            (Pace { timeout_s: 0.0, ..PACE }, "timeout_s is 0"),
            (Pace { clear: clear(-1.0, 0.0), ..PACE }, "round_trip_s is -1: expected 0 to 86400"),
            (Pace { clear: clear(0.1, f64::NAN), ..PACE }, "work_s is NaN"),
        ] {
            let message = pace.check().unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }

    proptest! {
        #[test]
        fn pauses_repeat_by_seed_within_bounds(
            rate_per_second in 0.1..10_000.0_f64, spread in 0.0..=1.0_f64, seed: u64,
        ) {
            let pace = Pace { rate_per_second, spread, seed, ..PACE };
            let (mut one, mut other) = (Pauses::new(&pace), Pauses::new(&pace));
            for _ in 0..100 {
                let pause = one.next();
                prop_assert_eq!(pause, other.next());
                let share = pause.as_secs_f64() * rate_per_second;
                prop_assert!(share > 1.0 - spread - 1e-4 && share < 1.0 + spread + 1e-4);
            }
        }
    }

    #[test]
    fn mean_pause_of_single_and_concurrent_trials() {
        for concurrent in [1, 4] {
            let mut pauses = Pauses::new(&Pace { concurrent, ..PACE });
            let sum: f64 = (0..10_000).map(|_| pauses.next().as_secs_f64()).sum();
            // Evenly from 0 to 40 ms for each: the mean of 10,000 has a deviation of 0.12 ms.
            let share = sum / 10_000.0 / f64::from(concurrent);
            assert!((share - 0.02).abs() < 0.000_6, "{share}");
        }
    }
}
