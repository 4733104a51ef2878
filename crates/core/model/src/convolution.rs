// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The law of a sum of independent durations.
//!
//! A profile's distribution is what one call takes, and the simulator draws each call anew; so a
//! message that makes several draws each independently. Their means would lose the spread, and
//! adding quantile to quantile (as if all calls were slow together) would give three calls three
//! times the spread of one, where independent ones have 1.7 times.

use crate::distribution::Distribution;
use crate::units::Nanos;

/// Parts of equal probability that a law is held in while it is added to others. A part of 1.6 %
/// resolves the 99th percentile of a message; calibrated laws have 21 quantiles.
const PARTS: usize = 64;
/// Points of a law's quantile function in each part.
const POINTS: usize = 8;

/// A law as the means of its parts, in order, and its bounds.
#[derive(Clone)]
struct Parts {
    means: Vec<f64>,
    min: f64,
    max: f64,
}

impl Distribution {
    /// The law of the sum of independent values: of each law as many as beside it stand. Its mean
    /// is the sum of the means; nothing gives 0.
    pub fn sum_of_independent(terms: &[(&Distribution, u32)]) -> Distribution {
        let terms = || terms.iter().filter(|(_, count)| *count > 0);
        let mut constant = 0.0;
        let mut varying: Vec<(&Distribution, u32)> = Vec::new();
        for &(law, count) in terms() {
            if law.min() == law.max() {
                constant += law.mean_ns() * f64::from(count);
            } else {
                varying.push((law, count));
            }
        }
        let mean: f64 = terms().map(|(law, count)| law.mean_ns() * f64::from(*count)).sum();
        if let ([(law, 1)], true) = (varying.as_slice(), constant == 0.0) {
            return (*law).clone();
        }
        let sums = varying.iter().map(|(law, count)| Parts::of(law).times(*count));
        match sums.reduce(|sum, part| sum.plus(&part)) {
            None => Distribution::constant(nanos(mean)),
            Some(sum) => sum.law(constant, mean),
        }
    }
}

impl Parts {
    fn of(law: &Distribution) -> Parts {
        let points = (PARTS * POINTS) as f64;
        let at = |index: usize| law.quantile((index as f64 + 0.5) / points).0 as f64;
        let mean = |part: usize| {
            let first = part * POINTS;
            (first..first + POINTS).map(at).sum::<f64>() / POINTS as f64
        };
        Parts {
            means: (0..PARTS).map(mean).collect(),
            min: law.min().0 as f64,
            max: law.max().0 as f64,
        }
    }

    fn plus(&self, other: &Parts) -> Parts {
        let mut sums: Vec<f64> =
            self.means.iter().flat_map(|a| other.means.iter().map(move |b| a + b)).collect();
        sums.sort_unstable_by(f64::total_cmp);
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        Parts {
            means: sums.chunks(PARTS).map(mean).collect(),
            min: self.min + other.min,
            max: self.max + other.max,
        }
    }

    /// The sum of so many, by doubling; one at least.
    fn times(self, count: u32) -> Parts {
        let (mut power, mut left) = (self, count.max(1));
        let mut sum: Option<Parts> = None;
        loop {
            if left & 1 == 1 {
                sum = Some(sum.map_or_else(|| power.clone(), |sum| sum.plus(&power)));
            }
            left >>= 1;
            match sum {
                Some(sum) if left == 0 => return sum,
                _ => power = power.plus(&power),
            }
        }
    }

    /// As quantiles: between the means of neighbouring parts, and beyond the outermost as far as
    /// their own means ask for; moved so that the mean is exact.
    fn law(&self, constant: f64, mean: f64) -> Distribution {
        let means = &self.means;
        let mut knots: Vec<f64> =
            means.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect();
        let (Some(&first), Some(&last)) = (knots.first(), knots.last()) else {
            return Distribution::constant(nanos(mean));
        };
        knots.insert(0, (2.0 * means[0] - first).clamp(self.min.min(first), first));
        knots.push((2.0 * means[means.len() - 1] - last).clamp(last, self.max.max(last)));
        let ends = f64::midpoint(knots[0], knots[knots.len() - 1]);
        let inner: f64 = knots[1..knots.len() - 1].iter().sum();
        let found = constant + (inner + ends) / (knots.len() - 1) as f64;
        let shift = mean - found;
        // Where that would lead below 0 ns, which nothing takes, all shrink alike.
        let below = constant + knots[0] + shift < 0.0;
        let moved = |knot: &f64| {
            if below { (constant + knot) * (mean / found) } else { constant + knot + shift }
        };
        let quantiles = knots.iter().map(|knot| nanos(moved(knot))).collect();
        // In ascending order as the parts are; a list that is not would be no law.
        Distribution::from_quantiles(quantiles)
            .unwrap_or_else(|_| Distribution::constant(nanos(mean)))
    }
}

/// Rounded, and not below zero.
fn nanos(ns: f64) -> Nanos {
    Nanos(ns.round().max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Probability;

    fn variance(law: &Distribution) -> f64 {
        const STEPS: u32 = 20_000;
        let mean = law.mean_ns();
        let square = |k: u32| {
            let off = law.quantile((f64::from(k) + 0.5) / f64::from(STEPS)).0 as f64 - mean;
            off * off
        };
        (0..STEPS).map(square).sum::<f64>() / f64::from(STEPS)
    }

    /// How much of a law's variance lies within its parts, which only their means stand for.
    fn unresolved(law: &Distribution) -> f64 {
        let means = Parts::of(law).means;
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let between = means.iter().map(|part| (part - mean).powi(2)).sum::<f64>();
        (variance(law) - between / means.len() as f64).max(0.0)
    }

    fn uniform(width: u64) -> Distribution {
        Distribution::from_quantiles(vec![Nanos(0), Nanos(width)]).unwrap()
    }

    #[test]
    fn constants_and_one_law_are_exact() {
        let constant = Distribution::constant(Nanos(7));
        let law = uniform(1_000).with_tail(Probability(0.1), vec![Nanos(9_000)]).unwrap();
        assert_eq!(Distribution::sum_of_independent(&[]), Distribution::constant(Nanos::ZERO));
        assert_eq!(
            Distribution::sum_of_independent(&[(&constant, 3), (&constant, 2), (&law, 0)]),
            Distribution::constant(Nanos(35))
        );
        assert_eq!(Distribution::sum_of_independent(&[(&law, 1)]), law);
    }

    /// Two dice without pips: the sum of two uniform laws is triangular.
    #[test]
    fn two_uniform_laws_give_a_triangle() {
        let sum = Distribution::sum_of_independent(&[(&uniform(1_000_000), 2)]);
        for (p, expected) in [(0.02, 200_000.0), (0.125, 500_000.0), (0.5, 1e6), (0.98, 1.8e6)] {
            let found = sum.quantile(p).0 as f64;
            assert!((found - expected).abs() < 15_000.0, "{p}: {found}");
        }
    }

    #[test]
    fn a_rare_stall_comes_once_a_call() {
        let stalls = Distribution::constant(Nanos(1_000_000));
        let stalls = stalls.with_tail(Probability(0.05), vec![Nanos(100_000_000)]).unwrap();
        let sum = Distribution::sum_of_independent(&[(&stalls, 3)]);
        // 0.95^3 of all have none: 86 %.
        assert!(sum.quantile(0.80) < Nanos::from_millis(4), "{}", sum.quantile(0.80));
        assert!(sum.quantile(0.92) > Nanos::from_millis(80), "{}", sum.quantile(0.92));
    }

    #[test]
    fn mean_is_kept_where_nearly_all_take_no_time() {
        let law = Distribution::constant(Nanos(0));
        let law = law.with_tail(Probability(0.019), vec![Nanos(2_028)]).unwrap();
        let sum = Distribution::sum_of_independent(&[(&law, 2)]);
        assert!((sum.mean_ns() - 2.0 * law.mean_ns()).abs() < 2.0, "{}", sum.mean_ns());
    }

    fn any_law() -> impl Strategy<Value = Distribution> {
        let quantiles = || {
            prop::collection::vec(0_u64..2_000_000_000, 1..25).prop_map(|mut values| {
                values.sort_unstable();
                values.into_iter().map(Nanos).collect::<Vec<_>>()
            })
        };
        (quantiles(), prop::option::of((0.0..=1.0, quantiles()))).prop_map(|(body, tail)| {
            let body = Distribution::from_quantiles(body).unwrap();
            match tail {
                Some((weight, tail)) => body.with_tail(Probability(weight), tail).unwrap(),
                None => body,
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Means add up, and so do variances, but for what the parts do not resolve.
        #[test]
        fn moments_add_up(laws in prop::collection::vec((any_law(), 1_u32..9), 1..4)) {
            let terms: Vec<(&Distribution, u32)> = laws.iter().map(|(law, n)| (law, *n)).collect();
            let sum = Distribution::sum_of_independent(&terms);
            let of = |f: fn(&Distribution) -> f64| -> f64 {
                terms.iter().map(|(law, n)| f(law) * f64::from(*n)).sum()
            };
            prop_assert!((sum.mean_ns() - of(Distribution::mean_ns)).abs() < 2.0);
            let (found, expected) = (variance(&sum), of(variance));
            // Lost in a law's own parts, and again in those of the sum.
            let slack = 0.2 * expected + 2.0 * of(unresolved) + 1e6;
            prop_assert!((found - expected).abs() <= slack, "{found} {expected} {slack}");
            let least: f64 = of(|law| law.min().0 as f64);
            let most: f64 = of(|law| law.max().0 as f64);
            let slack = 0.02 * (most - least) + 2.0;
            prop_assert!(sum.min().0 as f64 >= least - slack);
            prop_assert!(sum.max().0 as f64 <= most + slack);
        }
    }
}
