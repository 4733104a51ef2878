// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When connections begin.

use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::config::Config;

/// The times between beginnings.
pub(super) struct Pauses {
    random: Xoshiro256PlusPlus,
    mean_s: f64,
    spread: f64,
}

impl Pauses {
    pub(super) fn new(config: &Config) -> Pauses {
        Pauses {
            random: Xoshiro256PlusPlus::seed_from_u64(config.seed),
            mean_s: 1.0 / config.rate_per_second,
            spread: config.spread,
        }
    }

    pub(super) fn next(&mut self) -> Duration {
        let uniform = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        Duration::from_secs_f64(self.mean_s * (1.0 + self.spread * (2.0 * uniform - 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pauses(rate_per_second: f64, spread: f64, seed: u64) -> Pauses {
        let text = format!(
            r#"{{"variant": null, "address": "127.0.0.1:80", "trials": 1, "timeout_s": 1,
                "rate_per_second": {rate_per_second}, "spread": {spread}, "seed": {seed}}}"#
        );
        Pauses::new(&Config::parse(&text).unwrap())
    }

    proptest! {
        #[test]
        fn pauses_replay_by_seed_within_bounds(
            rate in 0.1..10_000.0_f64, spread in 0.0..=1.0_f64, seed: u64,
        ) {
            let (mut one, mut other) = (pauses(rate, spread, seed), pauses(rate, spread, seed));
            for _ in 0..100 {
                let pause = one.next();
                prop_assert_eq!(pause, other.next());
                let share = pause.as_secs_f64() * rate;
                prop_assert!(share > 1.0 - spread - 1e-4 && share < 1.0 + spread + 1e-4);
            }
        }
    }

    #[test]
    fn mean_pause_is_inverse_of_rate() {
        let mut pauses = pauses(50.0, 1.0, 7);
        let sum: f64 = (0..10_000).map(|_| pauses.next().as_secs_f64()).sum();
        // Evenly from 0 to 40 ms: the mean of 10,000 has a deviation of 0.12 ms.
        assert!((sum / 10_000.0 - 0.02).abs() < 0.000_6, "{sum}");
    }
}
