// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A distribution of durations: evenly spaced quantiles, and a tail mixed in.

use crate::units::{Nanos, Probability};

/// A distribution of durations, given by its quantiles from 0 to 1 at even spacing, linearly
/// interpolated between. A rare second law (a card that stalls) may be mixed in as its tail.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    quantiles: Box<[Nanos]>,
    tail: Option<Tail>,
}

/// The second law of a mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// How often a value comes from the tail.
    pub probability: Probability,
    /// The tail's own quantiles, from 0 to 1 at even spacing.
    pub quantiles: Box<[Nanos]>,
}

impl Distribution {
    /// Always the same value.
    pub fn constant(value: Nanos) -> Distribution {
        Distribution { quantiles: Box::new([value]), tail: None }
    }

    /// From quantiles, ns; the error says what a list of quantiles must be.
    pub fn from_quantiles(quantiles: Vec<Nanos>) -> Result<Distribution, &'static str> {
        check(&quantiles)?;
        Ok(Distribution { quantiles: quantiles.into(), tail: None })
    }

    /// The same with a tail mixed in.
    pub fn with_tail(
        self,
        probability: Probability,
        quantiles: Vec<Nanos>,
    ) -> Result<Distribution, &'static str> {
        check(&quantiles)?;
        Ok(Distribution { tail: Some(Tail { probability, quantiles: quantiles.into() }), ..self })
    }

    /// The quantiles of the body (everything but the tail), at even spacing from 0 to 1.
    pub fn body(&self) -> &[Nanos] {
        &self.quantiles
    }

    /// The tail, if there is one.
    pub fn tail(&self) -> Option<&Tail> {
        self.tail.as_ref()
    }

    /// One value by two independent uniform numbers in [0, 1): `u` says where in its law,
    /// `v` whether body or tail.
    pub fn sample(&self, u: f64, v: f64) -> Nanos {
        match &self.tail {
            Some(tail) if v < tail.probability.0 => interpolate(&tail.quantiles, u),
            _ => interpolate(&self.quantiles, u),
        }
    }

    /// The exact mean, ns, not rounded.
    pub fn mean_ns(&self) -> f64 {
        let body = mean(&self.quantiles);
        match &self.tail {
            Some(tail) => body + tail.probability.0 * (mean(&tail.quantiles) - body),
            None => body,
        }
    }

    /// The mean, rounded to 1 ns.
    pub fn mean(&self) -> Nanos {
        Nanos(self.mean_ns().round() as u64)
    }

    /// The smallest value that a fraction `p` of all values does not exceed (rounded to 1 ns);
    /// `p` beyond 0 or 1 counts as 0 or 1.
    pub fn quantile(&self, p: f64) -> Nanos {
        let Some(tail) = &self.tail else { return interpolate(&self.quantiles, p) };
        let weight = tail.probability.0;
        let cdf = |x: f64| {
            (1.0 - weight) * below(&self.quantiles, x) + weight * below(&tail.quantiles, x)
        };
        let (mut low, mut high) = (self.min().0, self.max().0);
        // The CDF does not fall, so halving finds the edge within 64 steps.
        while low < high {
            let middle = low + (high - low) / 2;
            if cdf(middle as f64) >= p { high = middle } else { low = middle + 1 }
        }
        Nanos(low)
    }

    /// The smallest value.
    pub fn min(&self) -> Nanos {
        let laws = self.laws().filter_map(|(weight, law)| law.first().filter(|_| weight > 0.0));
        laws.copied().min().unwrap_or(Nanos::ZERO)
    }

    /// The largest value.
    pub fn max(&self) -> Nanos {
        let laws = self.laws().filter_map(|(weight, law)| law.last().filter(|_| weight > 0.0));
        laws.copied().max().unwrap_or(Nanos::ZERO)
    }

    fn laws(&self) -> impl Iterator<Item = (f64, &[Nanos])> {
        let weight = self.tail.as_ref().map_or(0.0, |tail| tail.probability.0);
        let tail = self.tail.iter().map(move |tail| (weight, &*tail.quantiles));
        std::iter::once((1.0 - weight, &*self.quantiles)).chain(tail)
    }
}

fn check(quantiles: &[Nanos]) -> Result<(), &'static str> {
    if quantiles.is_empty() {
        Err("expected at least one quantile")
    } else if !quantiles.is_sorted() {
        Err("expected quantiles in ascending order")
    } else {
        Ok(())
    }
}

/// The quantile function of a piecewise linear law; 0 for an empty list, which `check` refuses.
fn interpolate(quantiles: &[Nanos], p: f64) -> Nanos {
    let last = quantiles.len().saturating_sub(1);
    let position = p.clamp(0.0, 1.0) * last as f64;
    let index = (position as usize).min(last);
    let at = |index: usize| quantiles.get(index).map_or(0, |value| value.0);
    let (low, high) = (at(index), at((index + 1).min(last)));
    let fraction = position - index as f64;
    Nanos(low + ((high - low) as f64 * fraction).round() as u64)
}

/// The area under a piecewise linear quantile function: the trapezium rule is exact.
fn mean(quantiles: &[Nanos]) -> f64 {
    let (Some(first), Some(last)) = (quantiles.first(), quantiles.last()) else { return 0.0 };
    if quantiles.len() == 1 {
        return first.0 as f64;
    }
    let sum: f64 = quantiles.iter().map(|value| value.0 as f64).sum();
    (sum - (first.0 as f64 + last.0 as f64) / 2.0) / (quantiles.len() - 1) as f64
}

/// The fraction of a piecewise linear law that does not exceed `x`.
fn below(quantiles: &[Nanos], x: f64) -> f64 {
    let count = quantiles.partition_point(|value| value.0 as f64 <= x);
    let steps = quantiles.len() - 1;
    if count == 0 {
        0.0
    } else if count > steps {
        1.0
    } else {
        let (low, high) = (quantiles[count - 1].0 as f64, quantiles[count].0 as f64);
        ((count - 1) as f64 + (x - low) / (high - low)) / steps as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_quantiles() -> impl Strategy<Value = Vec<Nanos>> {
        prop::collection::vec(0_u64..2_000_000_000, 1..25).prop_map(|mut values| {
            values.sort_unstable();
            values.into_iter().map(Nanos).collect()
        })
    }

    fn any_distribution() -> impl Strategy<Value = Distribution> {
        (any_quantiles(), prop::option::of((0.0..=1.0, any_quantiles()))).prop_map(
            |(body, tail)| {
                let body = Distribution::from_quantiles(body).unwrap();
                match tail {
                    Some((weight, tail)) => body.with_tail(Probability(weight), tail).unwrap(),
                    None => body,
                }
            },
        )
    }

    #[test]
    fn invalid_quantiles() {
        assert!(Distribution::from_quantiles(vec![]).is_err());
        assert!(Distribution::from_quantiles(vec![Nanos(2), Nanos(1)]).is_err());
        assert!(Distribution::constant(Nanos(1)).with_tail(Probability(0.1), vec![]).is_err());
    }

    #[test]
    fn mean_and_quantiles_of_known_distributions() {
        let uniform = Distribution::from_quantiles(vec![Nanos(0), Nanos(1000)]).unwrap();
        assert_eq!(uniform.mean(), Nanos(500));
        assert_eq!(uniform.quantile(0.25), Nanos(250));
        let mixed = uniform.with_tail(Probability(0.1), vec![Nanos(9000), Nanos(10_000)]).unwrap();
        assert_eq!(mixed.mean_ns(), 0.9 * 500.0 + 0.1 * 9500.0);
        assert_eq!(mixed.quantile(0.45), Nanos(500));
        assert_eq!(mixed.quantile(0.95), Nanos(9500));
        assert_eq!(mixed.sample(0.5, 0.05), Nanos(9500));
        assert_eq!(mixed.sample(0.5, 0.5), Nanos(500));
        assert_eq!(Distribution::constant(Nanos(7)).quantile(0.3), Nanos(7));
    }

    proptest! {
        #[test]
        fn quantiles_are_monotonic(law in any_distribution(), mut p in [0.0..=1.0, 0.0..=1.0_f64]) {
            p.sort_by(f64::total_cmp);
            prop_assert!(law.quantile(p[0]) <= law.quantile(p[1]));
        }

        #[test]
        fn mean_and_samples_lie_within_bounds(
            law in any_distribution(),
            u in 0.0..1.0,
            v in 0.0..1.0,
        ) {
            let (min, max) = (law.min().0 as f64, law.max().0 as f64);
            prop_assert!((min - 1e-6..=max + 1e-6).contains(&law.mean_ns()));
            let value = law.sample(u, v).0 as f64;
            prop_assert!((min..=max).contains(&value));
        }

        /// The law that `sample` draws from is the one that `quantile` inverts: over an even
        /// grid of both uniforms, a fraction of about `p` lies at or below `quantile(p)`.
        #[test]
        fn samples_follow_the_quantiles(law in any_distribution(), p in 0.05..0.95) {
            let edge = law.quantile(p);
            let (mut at_most, mut less) = (0, 0);
            const GRID: u32 = 100;
            for (i, j) in (0..GRID).flat_map(|i| (0..GRID).map(move |j| (i, j))) {
                let at = |k: u32| (f64::from(k) + 0.5) / f64::from(GRID);
                let value = law.sample(at(i), at(j));
                at_most += u32::from(value.0 <= edge.0 + 1);
                less += u32::from(value.0 + 1 < edge.0);
            }
            let all = f64::from(GRID * GRID);
            prop_assert!(f64::from(at_most) / all >= p - 0.03, "{at_most}");
            prop_assert!(f64::from(less) / all <= p + 0.03, "{less}");
        }

        /// The mean is the average of the quantile function.
        #[test]
        fn mean_is_the_average_quantile(law in any_distribution()) {
            const STEPS: u32 = 2000;
            let sum: f64 = (0..STEPS)
                .map(|k| law.quantile((f64::from(k) + 0.5) / f64::from(STEPS)).0 as f64)
                .sum();
            let width = (law.max().0 - law.min().0) as f64;
            let average = sum / f64::from(STEPS);
            prop_assert!((average - law.mean_ns()).abs() <= width / f64::from(STEPS) + 2.0);
        }
    }
}
