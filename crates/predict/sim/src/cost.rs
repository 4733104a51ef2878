// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samplers: distributions of a profile, prepared for drawing many times.

use warifu_model::{Distribution, Nanos};

use crate::random::Stream;

/// A law of durations, prepared for drawing.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    body: Law,
    /// The probability of the other law, and that law.
    tail: Option<(f64, Law)>,
    /// Added to each draw, ns.
    offset: u64,
}

#[derive(Clone, Debug)]
enum Law {
    Constant(u64),
    /// Between evenly spaced quantiles, one step at least.
    Quantiles {
        steps: Box<[Step]>,
        /// How many steps there are.
        count: f64,
    },
}

/// From one quantile to the next, ns.
#[derive(Clone, Copy, Debug)]
struct Step {
    low: u64,
    width: f64,
}

impl Sampler {
    /// Draws from `law` and adds `offset`.
    pub(crate) fn new(law: &Distribution, offset: Nanos) -> Sampler {
        let tail = law.tail().filter(|tail| tail.probability.0 > 0.0);
        Sampler {
            body: Law::new(law.body()),
            tail: tail.map(|tail| (tail.probability.0, Law::new(&tail.quantiles))),
            offset: offset.0,
        }
    }

    /// The value, if it is always the same.
    pub(crate) fn as_constant(&self) -> Option<u64> {
        match (&self.body, &self.tail) {
            (Law::Constant(value), None) => Some(value + self.offset),
            _ => None,
        }
    }

    /// One value, ns.
    #[inline]
    pub(crate) fn draw(&self, stream: &mut Stream) -> u64 {
        let law = match &self.tail {
            Some((probability, tail)) if stream.uniform() < *probability => tail,
            _ => &self.body,
        };
        self.offset + law.draw(stream)
    }
}

impl Law {
    fn new(quantiles: &[Nanos]) -> Law {
        match quantiles {
            [] => Law::Constant(0),
            [first, rest @ ..] if rest.iter().all(|value| value == first) => Law::Constant(first.0),
            _ => {
                let step = |pair: &[Nanos]| {
                    let [low, high] = [pair[0].0, pair[1].0];
                    Step { low, width: (high - low) as i64 as f64 }
                };
                let steps: Box<[Step]> = quantiles.windows(2).map(step).collect();
                let count = steps.len() as f64;
                Law::Quantiles { steps, count }
            }
        }
    }

    #[inline]
    fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            Law::Constant(value) => *value,
            Law::Quantiles { steps, count } => {
                // `uniform` is below 1, so there is such a step. Signed integers convert in one
                // instruction.
                let position = stream.uniform() * count;
                let index = position as i64;
                let Some(step) = steps.get(index as usize) else { return 0 };
                step.low + (step.width * (position - index as f64)) as i64 as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use warifu_model::Probability;

    use super::*;
    use crate::random::Purpose;

    fn mean(sampler: &Sampler, n: u32) -> f64 {
        let mut stream = Stream::new(5, Purpose::ClientCosts);
        (0..n).map(|_| sampler.draw(&mut stream) as f64).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn draws_follow_the_distribution() {
        let quantiles = vec![Nanos(100_000), Nanos(300_000), Nanos(350_000)];
        let tail = vec![Nanos(1_000_000), Nanos(2_000_000)];
        let law = Distribution::from_quantiles(quantiles).unwrap();
        let law = law.with_tail(Probability(0.1), tail).unwrap();
        let sampler = Sampler::new(&law, Nanos(7));
        assert_eq!(sampler.as_constant(), None);
        // Five standard errors: the standard deviation is below 500 us.
        let n = 200_000;
        let error = (mean(&sampler, n) - law.mean_ns() - 7.0).abs();
        assert!(error < 5.0 * 500_000.0 / f64::from(n).sqrt(), "{error}");
    }

    #[test]
    fn a_law_of_one_value_is_constant() {
        let law = Distribution::from_quantiles(vec![Nanos(5); 3]).unwrap();
        assert_eq!(Sampler::new(&law, Nanos(2)).as_constant(), Some(7));
    }
}
