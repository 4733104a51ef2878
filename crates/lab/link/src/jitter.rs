// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Jitter drawn from measured quantiles, so that a real link's distribution can be replayed without
//! naming it.

use crate::random::Stream;
use warifu_model::Nanos;

/// Extra one-way delay, given by its quantiles at evenly spaced probabilities from 0 to 1
/// inclusive, with straight lines between.
#[derive(Clone, Debug)]
pub struct Jitter {
    quantiles: Vec<Nanos>,
}

impl Jitter {
    /// `quantiles` ascending; empty for none, one value for a constant.
    #[must_use]
    pub fn new(quantiles: &[Nanos]) -> Jitter {
        Jitter { quantiles: quantiles.to_vec() }
    }

    /// The extra delay at probability `u` in [0, 1).
    #[must_use]
    pub fn at(&self, u: f64) -> Nanos {
        let Some(last) = self.quantiles.len().checked_sub(1) else { return Nanos::ZERO };
        let position = u * last as f64;
        let below = (position as usize).min(last);
        let above = (below + 1).min(last);
        let (low, high) = (self.quantiles[below], self.quantiles[above]);
        low + Nanos(((high - low).0 as f64 * (position - below as f64)) as u64)
    }

    /// Draws the next packet's extra delay: one number a packet, none when there is no jitter.
    pub fn draw(&self, stream: &mut Stream) -> Nanos {
        if self.quantiles.is_empty() { Nanos::ZERO } else { self.at(stream.uniform()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Direction, Streams};
    use proptest::prelude::*;

    fn jitter(quantiles_ns: &[u64]) -> Jitter {
        Jitter { quantiles: quantiles_ns.iter().copied().map(Nanos).collect() }
    }

    #[test]
    fn none_one_and_two_quantiles() {
        assert_eq!(Jitter::new(&[]).at(0.7), Nanos(0));
        assert_eq!(jitter(&[5]).at(0.7), Nanos(5));
        assert_eq!(jitter(&[0, 100]).at(0.25), Nanos(25));
        assert_eq!(jitter(&[0, 100, 1000]).at(0.75), Nanos(550));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn draws_follow_the_quantiles(
            seed: u64, mut quantiles in prop::collection::vec(0..1_000_000_000_u64, 1..12),
        ) {
            quantiles.sort_unstable();
            let jitter = self::jitter(&quantiles);
            let mut stream = Streams::new(seed, Direction::AToB).jitter;
            let n = 10_000;
            let mut draws: Vec<u64> = (0..n).map(|_| jitter.draw(&mut stream).0).collect();
            draws.sort_unstable();
            for step in 0..=10 {
                let p = f64::from(step) / 10.0;
                // Dvoretzky-Kiefer-Wolfowitz: the empirical CDF is off by more than 0.03 once in 30
                // million tries of 10,000.
                let [low, high] = [p - 0.03, p + 0.03].map(|p| jitter.at(p.clamp(0.0, 1.0)).0);
                let seen = draws[((p * n as f64) as usize).min(n - 1)];
                let inside = (low..=high).contains(&seen);
                prop_assert!(inside, "quantile {p}: {seen} outside {low}..={high}");
            }
        }

        #[test]
        fn draws_lie_between_first_and_last_quantile(
            u in 0.0..1.0_f64, mut quantiles in prop::collection::vec(any::<u64>(), 1..12),
        ) {
            quantiles.sort_unstable();
            let draw = jitter(&quantiles).at(u).0;
            // A double holds 53 bits: above 2^53 ns (104 days) the line between two quantiles is
            // rounded.
            let slack = quantiles[quantiles.len() - 1] >> 52;
            prop_assert!(draw >= quantiles[0]);
            prop_assert!(draw <= quantiles[quantiles.len() - 1].saturating_add(slack));
        }
    }
}
