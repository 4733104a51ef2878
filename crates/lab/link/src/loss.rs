// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which packets the wire loses: independently, or in bursts.

use crate::random::Stream;
use serde::{Deserialize, Serialize};

/// A loss model, the same for both directions, each with its own state and stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// Nothing is lost. (With braces: serde lets a unit variant with a tag ignore stray keys.)
    None {},
    /// Each packet is lost with the same probability, whatever befell the others.
    Independent {
        /// From 0 to 1.
        probability: f64,
    },
    /// A two-state Markov chain that steps once a packet (Gilbert, "Capacity of a Burst-Noise Channel", 1960; Elliott, "Estimates of
    /// Error Rates for Codes on Burst-Noise Channels", 1963): the loss is drawn in the present state, then the state may change.
    GilbertElliott {
        /// Probability of leaving the good state after a packet.
        p_good_to_bad: f64,
        /// Probability of leaving the bad state after a packet.
        p_bad_to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
}

impl Default for Loss {
    fn default() -> Loss {
        Loss::None {}
    }
}

impl Loss {
    /// The share of packets lost in the long run, from 0 to 1.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Loss::None {} => 0.0,
            Loss::Independent { probability } => probability,
            Loss::GilbertElliott { loss_good, loss_bad, .. } => {
                let bad = self.bad_share();
                loss_good * (1.0 - bad) + loss_bad * bad
            }
        }
    }

    /// The share of packets that meet the bad state in the long run; 0 when the chain never moves, because it starts good.
    fn bad_share(&self) -> f64 {
        match *self {
            Loss::GilbertElliott { p_good_to_bad, p_bad_to_good, .. } if p_good_to_bad > 0.0 => {
                p_good_to_bad / (p_good_to_bad + p_bad_to_good)
            }
            _ => 0.0,
        }
    }
}

/// A loss model in motion.
#[derive(Clone, Debug)]
pub struct LossState {
    model: Loss,
    /// `None` until the first packet, whose state is drawn from the long-run shares: short runs then have the right mean too.
    bad: Option<bool>,
}

impl LossState {
    /// The model before its first packet.
    #[must_use]
    pub fn new(model: Loss) -> LossState {
        LossState { model, bad: None }
    }

    /// Whether the next packet is lost. Draws a fixed count of numbers for each packet: none, one, or two (three for the first).
    pub fn next_is_lost(&mut self, stream: &mut Stream) -> bool {
        match self.model {
            Loss::None {} => false,
            Loss::Independent { probability } => stream.uniform() < probability,
            Loss::GilbertElliott { p_good_to_bad, p_bad_to_good, loss_good, loss_bad } => {
                let bad = match self.bad {
                    Some(bad) => bad,
                    None => stream.uniform() < self.model.bad_share(),
                };
                let (loss, leave) =
                    if bad { (loss_bad, p_bad_to_good) } else { (loss_good, p_good_to_bad) };
                let lost = stream.uniform() < loss;
                self.bad = Some(bad ^ (stream.uniform() < leave));
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Direction, Streams};
    use proptest::prelude::*;

    fn losses(model: &Loss, seed: u64, n: usize) -> Vec<bool> {
        let mut stream = Streams::new(seed, Direction::AToB).loss;
        let mut state = LossState::new(model.clone());
        (0..n).map(|_| state.next_is_lost(&mut stream)).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn independent_loss_has_its_frequency(seed: u64, probability in 0.0..=1.0_f64) {
            let n = 20_000;
            let seen = share(&losses(&Loss::Independent { probability }, seed, n));
            // Five standard deviations: one false alarm in 1.7 million.
            let bound = 5.0 * (probability * (1.0 - probability) / n as f64).sqrt();
            prop_assert!((seen - probability).abs() <= bound + 1e-9, "{seen} against {probability}");
        }

        #[test]
        fn certain_and_impossible_loss_are_exact(seed: u64) {
            prop_assert_eq!(share(&losses(&Loss::Independent { probability: 1.0 }, seed, 1000)), 1.0);
            prop_assert_eq!(share(&losses(&Loss::Independent { probability: 0.0 }, seed, 1000)), 0.0);
            prop_assert_eq!(share(&losses(&Loss::None {}, seed, 1000)), 0.0);
        }
    }

    #[test]
    fn gilbert_elliott_has_its_mean_and_its_burst_length() {
        let model = Loss::GilbertElliott {
            p_good_to_bad: 0.01,
            p_bad_to_good: 0.2,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let lost = losses(&model, 3, 1_000_000);
        // The chain's memory (1 - 0.01 - 0.2 = 0.79) widens the error of the mean by sqrt(1.79 / 0.21): 0.0006.
        assert!(
            (share(&lost) - model.mean()).abs() < 0.003,
            "{} against {}",
            share(&lost),
            model.mean()
        );
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let length = lost.iter().filter(|&&lost| lost).count() as f64 / bursts as f64;
        assert!((length - 5.0).abs() < 0.2, "bursts of {length} packets, 1 / 0.2 expected");
    }

    #[test]
    fn gilbert_elliott_has_its_mean_from_the_first_packet() {
        let model = Loss::GilbertElliott {
            p_good_to_bad: 0.001,
            p_bad_to_good: 0.004,
            loss_good: 0.0,
            loss_bad: 0.5,
        };
        let firsts: Vec<bool> = (0..50_000).map(|seed| losses(&model, seed, 1)[0]).collect();
        assert!(
            (share(&firsts) - model.mean()).abs() < 0.007,
            "{} against {}",
            share(&firsts),
            model.mean()
        );
    }

    #[test]
    fn a_chain_that_never_moves_stays_good() {
        let model = Loss::GilbertElliott {
            p_good_to_bad: 0.0,
            p_bad_to_good: 0.0,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        assert!(losses(&model, 1, 1000).iter().all(|lost| !lost));
    }
}
