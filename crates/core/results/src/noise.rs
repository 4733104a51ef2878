// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `noise.json`: how sure the probabilities of an exact prediction are.
//!
//! Patterns of losses are enumerated, and costs are drawn: in each pattern a number of trials, so
//! that the distribution function has a standard error of its own at each place. Each metric has it
//! in bands of probability, the largest of each band.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::ResultsError;
use crate::json_file::write_json;
use crate::seal::Sealed;

/// Its name in a results folder.
pub(crate) const FILE_NAME: &str = "noise.json";

/// The version of its format that is written.
pub const NOISE_VERSION: u32 = 1;

/// Where the bands of probability end that an error is told of: every percentile that is stored
/// apart is well within one.
pub const NOISE_BANDS: [f64; 18] = [
    0.005, 0.02, 0.08, 0.15, 0.2, 0.3, 0.4, 0.46, 0.54, 0.6, 0.7, 0.78, 0.85, 0.93, 0.97, 0.985,
    0.9945, 1.0,
];

/// The cases of a prediction that are of the exact tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// [`NOISE_VERSION`] of the writer.
    pub version: u32,
    /// [`NOISE_BANDS`] of the writer.
    pub band_ends: Vec<f64>,
    /// By case id, and in it by metric.
    pub cases: BTreeMap<String, BTreeMap<String, NoiseOfMetric>>,
}

/// The standard errors of a metric's distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseOfMetric {
    /// Of the probability of at most a value, where that probability is in each band.
    pub share_errors: Vec<f64>,
    /// Of the mean of what did not fail, in the metric's unit.
    pub mean_error: f64,
}

/// One trial of a pattern, of which each metric has a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightedTrial {
    /// Its probability.
    pub weight: f64,
    /// The number of its pattern.
    pub pattern: u32,
}

/// One trial of a pattern, and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseAtom {
    /// The metric's value.
    pub value: u64,
    /// Its probability.
    pub weight: f64,
    /// The number of its pattern.
    pub pattern: u32,
}

impl NoiseAtom {
    /// The atoms of one metric in the order of its `values`, one a trial; equal ones in that of the
    /// trials.
    pub fn in_order(values: &[u64], trials: &[WeightedTrial]) -> Vec<NoiseAtom> {
        debug_assert_eq!(values.len(), trials.len());
        // One number for value and place is sorted quicker than two.
        let key = |(place, &value): (usize, &u64)| (u128::from(value) << 64) | place as u128;
        let mut keys: Vec<u128> = values.iter().enumerate().map(key).collect();
        keys.sort_unstable();
        let atom = |key: u128| {
            let WeightedTrial { weight, pattern } = *trials.get(key as u64 as usize)?;
            Some(NoiseAtom { value: (key >> 64) as u64, weight, pattern })
        };
        keys.into_iter().filter_map(atom).collect()
    }
}

/// A pattern, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NoisePattern {
    /// The trials that it had.
    pub trials: u64,
    /// Its probability: the weights of all its atoms, those that failed included.
    pub weight: f64,
}

/// Patterns of at most so many trials stand for those of one, which say nothing of their own
/// variance.
const FEW_TRIALS: u64 = 63;

/// What a pattern's trials until now add up to.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    weight: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, part: f64) {
        self.weight += part;
        self.squares += part * part;
    }

    /// The variance of the sum of parts, of which the others of `trials` are 0; of one trial it is
    /// not known, and 0 here.
    fn variance(self, trials: u64) -> f64 {
        let n = trials as f64;
        let squares = self.squares - self.weight * self.weight / n;
        if trials < 2 { 0.0 } else { squares.max(0.0) * n / (n - 1.0) }
    }
}

impl NoisePattern {
    fn has_few_trials(&self) -> bool {
        (2..=FEW_TRIALS).contains(&self.trials) && self.weight > 0.0
    }

    /// The variance of whether one of its trials is below a value, where those of this weight are,
    /// times its probability.
    fn of_one(&self, below: Sums) -> f64 {
        if !self.has_few_trials() {
            return 0.0;
        }
        let (n, share) = (self.trials as f64, (below.weight / self.weight).min(1.0));
        self.weight * share * (1.0 - share) * n / (n - 1.0)
    }
}

impl NoiseOfMetric {
    /// From all trials that gave a value, in the order of their values. Patterns are independent of
    /// each other, and so are trials of one but for the phases of the ticks: these are evenly
    /// spread, by which the errors are smaller than told. What a pattern of one trial does not tell
    /// of itself, those of few trials tell together.
    pub fn of(atoms: &[NoiseAtom], patterns: &[NoisePattern]) -> NoiseOfMetric {
        debug_assert!(atoms.is_sorted_by_key(|atom| atom.value));
        // Of each pattern its sums, and what they make of the variance and of that of one trial.
        let mut sums = vec![(Sums::default(), 0.0, 0.0); patterns.len()];
        let (singles, few) = singles_and_few(atoms, patterns);
        let (mut below, mut variance, mut of_one, mut band) = (0.0, 0.0, 0.0, 0);
        let mut variances = [0.0_f64; NOISE_BANDS.len()];
        let mut all = 0.0;
        // Of equal values there is no telling which is the quantile, and none is needed.
        for equal in atoms.chunk_by(|a, b| a.value == b.value) {
            let before = all;
            for atom in equal {
                let number = atom.pattern as usize;
                if let (Some((sum, known, one)), Some(pattern)) =
                    (sums.get_mut(number), patterns.get(number))
                {
                    sum.add(atom.weight);
                    let now = (sum.variance(pattern.trials), pattern.of_one(*sum));
                    variance += now.0 - *known;
                    of_one += now.1 - *one;
                    (*known, *one) = now;
                    below += atom.weight;
                }
            }
            all = variance + singles * if few > 0.0 { of_one / few } else { 0.25 };
            // They may reach over several bands.
            variances[band] = variances[band].max(all);
            while band + 1 < NOISE_BANDS.len() && below >= NOISE_BANDS[band] {
                band += 1;
                variances[band] = before.max(all);
            }
        }
        // What failed, and what was left out, is beyond all values.
        variances[band + 1..].fill(all);
        let share_errors = variances.map(|variance| rounded_up(variance.max(0.0).sqrt())).to_vec();
        NoiseOfMetric { share_errors, mean_error: rounded_up(mean_error(atoms, patterns)) }
    }

    /// Of the share of what failed, which is its mean as well, from all trials that did.
    pub fn of_failing(trials: &[WeightedTrial], patterns: &[NoisePattern]) -> NoiseOfMetric {
        let failing = NoiseAtom::in_order(&vec![1; trials.len()], trials);
        let of_share = NoiseOfMetric::of(&failing, patterns);
        let error = of_share.share_errors.last().copied().unwrap_or(0.0);
        NoiseOfMetric { share_errors: vec![error; NOISE_BANDS.len()], mean_error: error }
    }
}

/// The squares of the weights of patterns of one trial, and the probability of those of few trials.
fn singles_and_few(atoms: &[NoiseAtom], patterns: &[NoisePattern]) -> (f64, f64) {
    let alone = |atom: &&NoiseAtom| {
        patterns.get(atom.pattern as usize).is_some_and(|pattern| pattern.trials == 1)
    };
    let singles = atoms.iter().filter(alone).map(|atom| atom.weight * atom.weight).sum();
    let few = patterns.iter().filter(|pattern| pattern.has_few_trials());
    (singles, few.map(|pattern| pattern.weight).sum())
}

/// The standard error of the weighted mean: a ratio, by its linear part.
fn mean_error(atoms: &[NoiseAtom], patterns: &[NoisePattern]) -> f64 {
    let whole: f64 = atoms.iter().map(|atom| atom.weight).sum();
    if whole <= 0.0 {
        return 0.0;
    }
    let mean = atoms.iter().map(|atom| atom.weight * atom.value as f64).sum::<f64>() / whole;
    let mut parts = vec![Sums::default(); patterns.len()];
    let mut values = vec![(Sums::default(), 0_u64); patterns.len()];
    let mut spread = 0.0;
    for atom in atoms {
        let off = atom.value as f64 - mean;
        spread += atom.weight * off * off / whole;
        let number = atom.pattern as usize;
        if let (Some(part), Some((value, count))) = (parts.get_mut(number), values.get_mut(number))
        {
            part.add(atom.weight * off);
            value.add(off);
            *count += 1;
        }
    }
    let variance = |(part, pattern): (&Sums, &NoisePattern)| part.variance(pattern.trials);
    let known: f64 = parts.iter().zip(patterns).map(variance).sum();
    let (singles, few) = singles_and_few(atoms, patterns);
    let of_one = |((value, count), pattern): (&(Sums, u64), &NoisePattern)| {
        let of_all = value.variance(*count) / (*count).max(1) as f64;
        if pattern.has_few_trials() { pattern.weight * of_all } else { 0.0 }
    };
    let of_few: f64 = values.iter().zip(patterns).map(of_one).sum();
    let of_single = if few > 0.0 { of_few / few } else { spread };
    (known + singles * of_single).sqrt() / whole
}

/// To three significant digits, which keeps files small.
fn rounded_up(error: f64) -> f64 {
    if error <= 0.0 {
        return 0.0;
    }
    let step = 10_f64.powf(error.log10().floor() - 2.0);
    let rounded = (error / step).ceil() * step;
    // What the sum of digits leaves behind the third is no digit.
    format!("{rounded:.2e}").parse().unwrap_or(rounded)
}

impl Noise {
    /// Writes it as `folder/noise.json`.
    pub(crate) fn write(&self, folder: &Path) -> Result<Sealed, ResultsError> {
        write_json(&folder.join(FILE_NAME), self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Atoms of one pattern whose probability is `all`, with these values.
    fn pattern(number: u32, all: f64, values: &[u64]) -> Vec<NoiseAtom> {
        let weight = all / values.len() as f64;
        values.iter().map(|&value| NoiseAtom { value, weight, pattern: number }).collect()
    }

    fn of(mut atoms: Vec<NoiseAtom>) -> NoiseOfMetric {
        let patterns = patterns(&atoms);
        atoms.sort_by_key(|atom| atom.value);
        NoiseOfMetric::of(&atoms, &patterns)
    }

    fn patterns(atoms: &[NoiseAtom]) -> Vec<NoisePattern> {
        let count = atoms.iter().map(|atom| atom.pattern as usize + 1).max().unwrap_or(0);
        let mut patterns = vec![NoisePattern::default(); count];
        for atom in atoms {
            patterns[atom.pattern as usize].trials += 1;
            patterns[atom.pattern as usize].weight += atom.weight;
        }
        patterns
    }

    #[test]
    fn of_one_pattern_it_is_that_of_so_many_trials() {
        let noise = of(pattern(0, 1.0, &(0..10_000).collect::<Vec<u64>>()));
        // sqrt(p (1 - p) / n), the largest of the band: at 0.5, and at 0.985.
        assert!((noise.share_errors[8] - 0.005).abs() < 2e-5, "{noise:?}");
        assert!((noise.share_errors[16] - (0.985_f64 * 0.015 / 1e4).sqrt()).abs() < 2e-5);
        let deviation = 1e4 / 12_f64.sqrt();
        assert!((noise.mean_error / (deviation / 100.0) - 1.0).abs() < 0.01, "{noise:?}");
    }

    #[test]
    fn between_patterns_there_is_none() {
        let mut atoms = pattern(0, 0.9, &[100; 1_000]);
        atoms.extend(pattern(1, 0.1, &[5_000; 10]));
        let noise = of(atoms);
        assert!(noise.mean_error < 1e-3, "{noise:?}");
        assert!(noise.share_errors.iter().all(|&error| error < 1e-7), "{noise:?}");
    }

    /// Ten thousand patterns of `trials` each, whose values are uniform from 0 to below 10,000.
    fn many(trials: u32, from: u32) -> Vec<NoiseAtom> {
        let mut state = 1_u64;
        let values = std::iter::repeat_with(|| {
            // Knuth's constants of MMIX (The Art of Computer Programming, 3.3.4).
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % 10_000
        });
        let atoms = values.take(10_000 * trials as usize).enumerate();
        let weight = 1.0 / f64::from(trials) / 1e4;
        let number = |index: usize| from + index as u32 / trials;
        atoms.map(|(at, value)| NoiseAtom { value, weight, pattern: number(at) }).collect()
    }

    /// Where every pattern has the distribution of all, few trials of each are as so many of one.
    #[test]
    fn patterns_of_few_trials_and_of_one() {
        let deviation = 1e4 / 12_f64.sqrt();
        for trials in [1, 3, 5] {
            let noise = of(many(trials, 0));
            let n = 1e4 * f64::from(trials);
            let expected = 0.5 / n.sqrt();
            assert!((noise.share_errors[8] / expected - 1.0).abs() < 0.05, "{trials} {noise:?}");
            let expected = deviation / n.sqrt();
            assert!((noise.mean_error / expected - 1.0).abs() < 0.05, "{trials} {noise:?}");
        }
        // Half of the probability in each: what is known of those of three holds for those of one.
        let mut atoms = many(1, 0);
        atoms.extend(many(3, 10_000));
        atoms.iter_mut().for_each(|atom| atom.weight /= 2.0);
        let noise = of(atoms);
        let expected = 0.5 * ((0.25 / 1e4) + (0.25 / 3e4_f64)).sqrt();
        assert!((noise.share_errors[8] / expected - 1.0).abs() < 0.05, "{noise:?} {expected}");
    }

    #[test]
    fn atoms_are_in_the_order_of_their_values() {
        let trials = [0.4, 0.3, 0.2, 0.1].map(|weight| WeightedTrial { weight, pattern: 2 });
        let atoms = NoiseAtom::in_order(&[u64::MAX, 5, 0, 5], &trials);
        let found: Vec<(u64, f64)> = atoms.iter().map(|atom| (atom.value, atom.weight)).collect();
        assert_eq!(found, [(0, 0.2), (5, 0.3), (5, 0.1), (u64::MAX, 0.4)]);
        assert!(atoms.iter().all(|atom| atom.pattern == 2));
        let atoms = NoiseAtom::in_order(&[7, 5, 6, 5], &trials);
        let found: Vec<(u64, f64)> = atoms.iter().map(|atom| (atom.value, atom.weight)).collect();
        assert_eq!(found, [(5, 0.3), (5, 0.1), (6, 0.2), (7, 0.4)]);
    }

    #[test]
    fn failing_is_as_unsure_as_not_failing() {
        let atoms = pattern(0, 1.0, &(0..10_000).collect::<Vec<u64>>());
        let all = patterns(&atoms);
        let trial = |of: &NoiseAtom| WeightedTrial { weight: of.weight, pattern: of.pattern };
        let failing: Vec<WeightedTrial> = atoms[..1_000].iter().map(trial).collect();
        let noise = NoiseOfMetric::of_failing(&failing, &all);
        assert!((noise.mean_error - (0.1_f64 * 0.9 / 1e4).sqrt()).abs() < 2e-5, "{noise:?}");
        assert!(noise.share_errors.iter().all(|&error| error == noise.mean_error));
        let none = NoiseOfMetric::of_failing(&[], &all);
        assert_eq!((none.mean_error, none.share_errors.len()), (0.0, NOISE_BANDS.len()));
    }
}
