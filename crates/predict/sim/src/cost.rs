// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samplers: distributions of a profile, prepared for drawing many times.

use warifu_model::{Band, Cost, Distribution, Nanos};

use crate::random::Stream;

/// Both laws of one cost, with warm caches and with cold ones.
#[derive(Clone, Debug)]
pub(crate) struct CostPair([Sampler; 2]);

/// A law of durations, prepared for drawing. The commonest is found at once.
#[derive(Clone, Debug)]
pub(crate) enum Sampler {
    /// Always so long, ns.
    Constant(u64),
    /// Between evenly spaced quantiles, one step at least.
    Quantiles(Box<[Step]>),
    /// A sum, or a mixture.
    Other(Box<Other>),
}

/// A law with a tail, or with bands.
#[derive(Clone, Debug)]
pub(crate) struct Other {
    body: Law,
    /// The probability of the other law, in parts of 2^64, and that law.
    tail: Option<(u64, Law)>,
    bands: Box<[BandLaw]>,
}

/// What an assumed figure takes, by where in its band the trial's board is.
#[derive(Clone, Debug)]
struct BandLaw {
    /// Its number among the bands of all costs.
    number: u32,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Constant(u64),
    /// Between evenly spaced quantiles, one step at least.
    Quantiles(Box<[Step]>),
}

/// From one quantile to the next, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    low: u64,
    width: u64,
}

impl CostPair {
    /// Prepares a cost; `number` gives each band its number.
    pub(crate) fn new(cost: &Cost<'_>, number: impl FnMut(&Band) -> u32) -> CostPair {
        let cipher = cost.cipher.map_or([Nanos::ZERO; 2], |of| [of.warm, of.cold]);
        let [warm, cold] = cipher.map(|Nanos(ns)| Nanos(cost.bytes_cost.0 + ns));
        let numbers: Vec<u32> = cost.bands.iter().map(number).collect();
        let bands = |law: fn(&Band) -> &Distribution| {
            let laws = cost.bands.iter().map(|band| Law::new(law(band).body(), 0));
            numbers.iter().zip(laws).map(|(&number, law)| BandLaw { number, law }).collect()
        };
        CostPair([
            Sampler::with_bands(&cost.warm, warm, bands(|band| &band.warm)),
            Sampler::with_bands(&cost.cold, cold, bands(|band| &band.cold)),
        ])
    }

    /// The same whose caches are always warm.
    pub(crate) fn warm(&self) -> CostPair {
        CostPair([self.0[0].clone(), self.0[0].clone()])
    }

    /// Warm and cold, if both are always the same.
    pub(crate) fn as_constant(&self) -> Option<[u64; 2]> {
        Some([self.0[0].as_constant()?, self.0[1].as_constant()?])
    }

    /// One value, ns; `places` says of each band where in it the board is, from 0 to 1.
    #[inline(always)]
    pub(crate) fn draw(&self, cold: bool, stream: &mut Stream, places: &[f64]) -> u64 {
        match &self.0[usize::from(cold)] {
            Sampler::Quantiles(steps) => at(steps, stream.bits()),
            other => other.draw_other(stream, places),
        }
    }
}

impl Sampler {
    /// Draws from `law` and adds `offset`.
    pub(crate) fn new(law: &Distribution, offset: Nanos) -> Sampler {
        Sampler::with_bands(law, offset, Box::default())
    }

    fn with_bands(law: &Distribution, offset: Nanos, bands: Box<[BandLaw]>) -> Sampler {
        let tail = law.tail().filter(|tail| tail.probability.0 > 0.0).map(|tail| {
            // The cast saturates.
            let probability = (tail.probability.0 * 2_f64.powi(64)) as u64;
            (probability, Law::new(&tail.quantiles, offset.0))
        });
        match (Law::new(law.body(), offset.0), tail) {
            (Law::Constant(value), None) if bands.is_empty() => Sampler::Constant(value),
            (Law::Quantiles(steps), None) if bands.is_empty() => Sampler::Quantiles(steps),
            (body, tail) => Sampler::Other(Box::new(Other { body, tail, bands })),
        }
    }

    /// The value, if it is always the same.
    pub(crate) fn as_constant(&self) -> Option<u64> {
        if let Sampler::Constant(value) = self { Some(*value) } else { None }
    }

    /// One value, ns. A law of one value draws nothing.
    #[inline(always)]
    pub(crate) fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            Sampler::Quantiles(steps) => at(steps, stream.bits()),
            other => other.draw_other(stream, &[]),
        }
    }

    fn draw_other(&self, stream: &mut Stream, places: &[f64]) -> u64 {
        match self {
            Sampler::Constant(value) => *value,
            Sampler::Quantiles(steps) => at(steps, stream.bits()),
            Sampler::Other(other) => other.draw(stream, places),
        }
    }
}

impl Other {
    fn draw(&self, stream: &mut Stream, places: &[f64]) -> u64 {
        let law = match &self.tail {
            Some((probability, tail)) if stream.bits() < *probability => tail,
            _ => &self.body,
        };
        let in_band = |band: &BandLaw| {
            let place = places.get(band.number as usize).copied().unwrap_or(0.5);
            band.law.at(place)
        };
        law.draw(stream) + self.bands.iter().map(in_band).sum::<u64>()
    }
}

impl Law {
    /// Of these quantiles, each so much later.
    fn new(quantiles: &[Nanos], offset: u64) -> Law {
        match quantiles {
            [] => Law::Constant(offset),
            [first, rest @ ..] if rest.iter().all(|value| value == first) => {
                Law::Constant(first.0 + offset)
            }
            _ => {
                let step =
                    |pair: &[Nanos]| Step { low: pair[0].0 + offset, width: pair[1].0 - pair[0].0 };
                Law::Quantiles(quantiles.windows(2).map(step).collect())
            }
        }
    }

    #[inline]
    fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            Law::Constant(value) => *value,
            Law::Quantiles(steps) => at(steps, stream.bits()),
        }
    }

    /// The value that a fraction `p` of all values do not exceed, from 0 to 1.
    fn at(&self, p: f64) -> u64 {
        match self {
            Law::Constant(value) => *value,
            // The cast saturates.
            Law::Quantiles(steps) => at(steps, (p * 2_f64.powi(64)) as u64),
        }
    }
}

/// The value that `part` of 2^64 of all values do not exceed. The product of both is a whole number
/// of steps and a fraction of one, in integers, which takes a third of what it takes in floating
/// point.
#[inline(always)]
fn at(steps: &[Step], part: u64) -> u64 {
    let position = u128::from(part) * steps.len() as u128;
    let (index, fraction) = ((position >> 64) as usize, position as u64);
    // There is such a step, since the part is below one.
    let Some(step) = steps.get(index) else { return 0 };
    step.low + ((u128::from(step.width) * u128::from(fraction)) >> 64) as u64
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
