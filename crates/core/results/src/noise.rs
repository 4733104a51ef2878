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

/// One trial of a pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseAtom {
    /// The metric's value.
    pub value: u64,
    /// Its probability.
    pub weight: f64,
    /// The number of its pattern.
    pub pattern: u32,
}

/// What a pattern's trials until now add up to.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    weight: f64,
    squares: f64,
}

impl Sums {
    /// The variance of the sum of weights, of which the others of `trials` are 0.
    fn variance(self, trials: u64) -> f64 {
        (self.squares - self.weight * self.weight / trials as f64).max(0.0)
    }
}

impl NoiseOfMetric {
    /// From all trials that gave a value; `trials` are how many each pattern had, by its number.
    /// Patterns are independent of each other, and so are trials of one but for the phases of the
    /// ticks: these are evenly spread, by which the errors are smaller than told.
    pub fn of(atoms: &mut [NoiseAtom], trials: &[u64]) -> NoiseOfMetric {
        atoms.sort_unstable_by_key(|atom| (atom.value, atom.pattern));
        let mut sums = vec![Sums::default(); trials.len()];
        let (mut below, mut variance, mut band) = (0.0, 0.0, 0);
        let mut variances = [0.0_f64; NOISE_BANDS.len()];
        // Of equal values there is no telling which is the quantile, and none is needed.
        for equal in atoms.chunk_by(|a, b| a.value == b.value) {
            let before = variance;
            for atom in equal {
                let number = atom.pattern as usize;
                if let (Some(sum), Some(&trials)) = (sums.get_mut(number), trials.get(number)) {
                    variance -= sum.variance(trials);
                    sum.weight += atom.weight;
                    sum.squares += atom.weight * atom.weight;
                    variance += sum.variance(trials);
                    below += atom.weight;
                }
            }
            // They may reach over several bands.
            variances[band] = variances[band].max(variance);
            while band + 1 < NOISE_BANDS.len() && below >= NOISE_BANDS[band] {
                band += 1;
                variances[band] = before.max(variance);
            }
        }
        // What failed, and what was left out, is beyond all values.
        variances[band + 1..].fill(variance);
        let share_errors = variances.map(|variance| rounded_up(variance.max(0.0).sqrt())).to_vec();
        NoiseOfMetric { share_errors, mean_error: rounded_up(mean_error(atoms, trials)) }
    }
}

/// The standard error of the weighted mean: a ratio, by its linear part.
fn mean_error(atoms: &[NoiseAtom], trials: &[u64]) -> f64 {
    let whole: f64 = atoms.iter().map(|atom| atom.weight).sum();
    if whole <= 0.0 {
        return 0.0;
    }
    let mean = atoms.iter().map(|atom| atom.weight * atom.value as f64).sum::<f64>() / whole;
    let mut sums = vec![Sums::default(); trials.len()];
    for atom in atoms {
        if let Some(sum) = sums.get_mut(atom.pattern as usize) {
            let part = atom.weight * (atom.value as f64 - mean);
            sum.weight += part;
            sum.squares += part * part;
        }
    }
    let variance: f64 = sums.iter().zip(trials).map(|(sum, &trials)| sum.variance(trials)).sum();
    variance.sqrt() / whole
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

    #[test]
    fn of_one_pattern_it_is_that_of_so_many_trials() {
        let mut atoms = pattern(0, 1.0, &(0..10_000).collect::<Vec<u64>>());
        let noise = NoiseOfMetric::of(&mut atoms, &[10_000]);
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
        let noise = NoiseOfMetric::of(&mut atoms, &[1_000, 10]);
        assert!(noise.mean_error < 1e-3, "{noise:?}");
        assert!(noise.share_errors.iter().all(|&error| error < 1e-7), "{noise:?}");
    }
}
