// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samplers: distributions of a profile, prepared for drawing many times.

use warifu_model::{Band, Cost, Distribution, Nanos};

use crate::random::Stream;

/// Both laws of one cost.
#[derive(Clone, Debug)]
pub(crate) struct CostPair {
    /// What varies, with warm caches and with cold ones.
    varying: [Sampler; 2],
    bands: Box<[BandLaw]>,
}

/// What an assumed figure takes, by where in its band the trial's board is.
#[derive(Clone, Debug)]
struct BandLaw {
    /// Its number among the bands of all costs.
    number: u32,
    /// With warm caches and with cold ones.
    laws: [Law; 2],
}

/// A law of durations, prepared for drawing.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    body: Law,
    /// The probability of the other law, in parts of 2^64, and that law.
    tail: Option<(u64, Law)>,
    /// Added to each draw, ns.
    offset: u64,
}

#[derive(Clone, Debug)]
enum Law {
    Constant(u64),
    /// Between evenly spaced quantiles, one step at least.
    Quantiles(Box<[Step]>),
}

/// From one quantile to the next, ns.
#[derive(Clone, Copy, Debug)]
struct Step {
    low: u64,
    width: u64,
}

impl CostPair {
    /// Prepares a cost; `number` gives each band its number.
    pub(crate) fn new(cost: &Cost<'_>, mut number: impl FnMut(&Band) -> u32) -> CostPair {
        let cipher = cost.cipher.map_or([Nanos::ZERO; 2], |of| [of.warm, of.cold]);
        let [warm, cold] = cipher.map(|Nanos(ns)| Nanos(cost.bytes_cost.0 + ns));
        let band = |band: &Band| BandLaw {
            number: number(band),
            laws: [Law::new(band.warm.body()), Law::new(band.cold.body())],
        };
        CostPair {
            varying: [Sampler::new(&cost.warm, warm), Sampler::new(&cost.cold, cold)],
            bands: cost.bands.iter().map(band).collect(),
        }
    }

    /// The same whose caches are always warm.
    pub(crate) fn warm(&self) -> CostPair {
        let warm = |BandLaw { number, laws: [warm, _] }: &BandLaw| BandLaw {
            number: *number,
            laws: [warm.clone(), warm.clone()],
        };
        let [varying, _] = &self.varying;
        CostPair {
            varying: [varying.clone(), varying.clone()],
            bands: self.bands.iter().map(warm).collect(),
        }
    }

    /// Warm and cold, if both are always the same.
    pub(crate) fn as_constant(&self) -> Option<[u64; 2]> {
        let [warm, cold] = &self.varying;
        let both = [warm.as_constant()?, cold.as_constant()?];
        self.bands.is_empty().then_some(both)
    }

    /// One value, ns; `places` says of each band where in it the board is, from 0 to 1.
    #[inline(always)]
    pub(crate) fn draw(&self, cold: bool, stream: &mut Stream, places: &[f64]) -> u64 {
        let varying = self.varying[usize::from(cold)].draw(stream);
        if self.bands.is_empty() { varying } else { varying + self.in_bands(cold, places) }
    }

    fn in_bands(&self, cold: bool, places: &[f64]) -> u64 {
        let law = |band: &BandLaw| {
            let place = places.get(band.number as usize).copied().unwrap_or(0.5);
            band.laws[usize::from(cold)].at(place)
        };
        self.bands.iter().map(law).sum()
    }
}

impl Sampler {
    /// Draws from `law` and adds `offset`.
    pub(crate) fn new(law: &Distribution, offset: Nanos) -> Sampler {
        let tail = law.tail().filter(|tail| tail.probability.0 > 0.0);
        Sampler {
            body: Law::new(law.body()),
            // The cast saturates.
            tail: tail.map(|tail| {
                ((tail.probability.0 * 2_f64.powi(64)) as u64, Law::new(&tail.quantiles))
            }),
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

    /// One value, ns. A law of one value draws nothing.
    #[inline(always)]
    pub(crate) fn draw(&self, stream: &mut Stream) -> u64 {
        match (&self.body, &self.tail) {
            (Law::Quantiles(steps), None) => self.offset + at(steps, stream.bits()),
            _ => self.draw_other(stream),
        }
    }

    fn draw_other(&self, stream: &mut Stream) -> u64 {
        let law = match &self.tail {
            Some((probability, tail)) if stream.bits() < *probability => tail,
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
                let step = |pair: &[Nanos]| Step { low: pair[0].0, width: pair[1].0 - pair[0].0 };
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
