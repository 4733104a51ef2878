// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which packets the wire loses: independently, or in bursts.

use crate::random::Stream;
use warifu_model::Loss;

/// The share of packets that meet the bad state in the long run; 0 when the chain never moves,
/// because it starts good.
fn bad_share(loss: &Loss) -> f64 {
    match *loss {
        Loss::GilbertElliott { good_to_bad, bad_to_good, .. } if good_to_bad.0 > 0.0 => {
            good_to_bad.0 / (good_to_bad.0 + bad_to_good.0)
        }
        _ => 0.0,
    }
}

/// A loss model in motion.
#[derive(Clone, Debug)]
pub struct LossState {
    model: Loss,
    /// `None` until the first packet, whose state is drawn from the long-run shares: short runs
    /// then have the right mean too.
    bad: Option<bool>,
}

impl LossState {
    /// The model before its first packet.
    #[must_use]
    pub fn new(model: Loss) -> LossState {
        LossState { model, bad: None }
    }

    /// Whether the next packet is lost. Draws a fixed count of numbers for each packet: none, one,
    /// or two (three for the first). A chain draws the loss in the present state, then whether to
    /// leave it (Gilbert 1960, Elliott 1963).
    pub fn next_is_lost(&mut self, stream: &mut Stream) -> bool {
        match self.model {
            Loss::None => false,
            Loss::Independent { probability } => stream.uniform() < probability.0,
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let bad = match self.bad {
                    Some(bad) => bad,
                    None => stream.uniform() < bad_share(&self.model),
                };
                let (loss, leave) =
                    if bad { (loss_bad, bad_to_good) } else { (loss_good, good_to_bad) };
                let lost = stream.uniform() < loss.0;
                self.bad = Some(bad ^ (stream.uniform() < leave.0));
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
    use warifu_model::Probability;

    fn independent(probability: f64) -> Loss {
        Loss::Independent { probability: Probability(probability) }
    }

    /// Into the bad state, out of it, loss in the good one, loss in the bad one.
    fn chain(probabilities: [f64; 4]) -> Loss {
        let [good_to_bad, bad_to_good, loss_good, loss_bad] = probabilities.map(Probability);
        Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad }
    }

    fn losses(model: &Loss, seed: u64, n: usize) -> Vec<bool> {
        let mut stream = Streams::new(seed, Direction::AToB).loss;
        let mut state = LossState::new(*model);
        (0..n).map(|_| state.next_is_lost(&mut stream)).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn independent_loss_frequency(seed: u64, probability in 0.0..=1.0_f64) {
            let n = 20_000;
            let seen = share(&losses(&independent(probability), seed, n));
            // Five standard deviations: one false alarm in 1.7 million.
            let bound = 5.0 * (probability * (1.0 - probability) / n as f64).sqrt();
            let near = (seen - probability).abs() <= bound + 1e-9;
            prop_assert!(near, "{seen} against {probability}");
        }

        #[test]
        fn certain_and_impossible_loss_are_exact(seed: u64) {
            prop_assert_eq!(share(&losses(&independent(1.0), seed, 1000)), 1.0);
            prop_assert_eq!(share(&losses(&independent(0.0), seed, 1000)), 0.0);
            prop_assert_eq!(share(&losses(&Loss::None, seed, 1000)), 0.0);
        }
    }

    #[test]
    fn gilbert_elliott_mean_and_burst_length() {
        let model = chain([0.01, 0.2, 0.0, 1.0]);
        let lost = losses(&model, 3, 1_000_000);
        // The chain's memory (1 - 0.01 - 0.2 = 0.79) widens the error of the mean by sqrt(1.79 /
        // 0.21): 0.0006.
        assert!(
            (share(&lost) - model.mean().0).abs() < 0.003,
            "{} against {}",
            share(&lost),
            model.mean().0
        );
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let length = lost.iter().filter(|&&lost| lost).count() as f64 / bursts as f64;
        assert!((length - 5.0).abs() < 0.2, "bursts of {length} packets, 1 / 0.2 expected");
    }

    #[test]
    fn gilbert_elliott_mean_of_first_packets() {
        let model = chain([0.001, 0.004, 0.0, 0.5]);
        let firsts: Vec<bool> = (0..50_000).map(|seed| losses(&model, seed, 1)[0]).collect();
        assert!(
            (share(&firsts) - model.mean().0).abs() < 0.007,
            "{} against {}",
            share(&firsts),
            model.mean().0
        );
    }

    #[test]
    fn chain_without_transitions_stays_good() {
        let model = chain([0.0, 0.0, 0.0, 1.0]);
        assert!(losses(&model, 1, 1000).iter().all(|lost| !lost));
    }
}
