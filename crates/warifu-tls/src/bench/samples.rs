// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samples by message, and what is told of them. None is left out.

use std::collections::BTreeMap;

use serde::Serialize;

use super::intervals::{Interval, Part};

/// Evenly spaced quantiles told of each distribution, from the minimum to the maximum.
pub const QUANTILES: usize = 21;

/// Whether the processor had paused before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Temperature {
    /// It had not.
    Warm,
    /// It had slept for the gap.
    Cold,
}

/// Whose work it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The client's.
    Client,
    /// The server's.
    Server,
}

/// What a distribution is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// Index of the variant.
    pub variant: usize,
    /// See [`Temperature`].
    pub temperature: Temperature,
    /// See [`Side`].
    pub side: Side,
    /// The message.
    #[serde(flatten)]
    pub part: Part,
}

/// A distribution.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// What it is of.
    #[serde(flatten)]
    pub key: Key,
    /// How many samples.
    pub n: usize,
    /// Mean of the thread's processor time, ns.
    pub mean_cpu_ns: f64,
    /// [`QUANTILES`] evenly spaced quantiles of the thread's processor time, ns.
    pub cpu_ns: Vec<u64>,
    /// The same of the wall's time, ns.
    pub wall_ns: Vec<u64>,
}

#[derive(Default)]
pub(super) struct Samples {
    by_key: BTreeMap<Key, (Vec<u64>, Vec<u64>)>,
}

impl Samples {
    pub(super) fn add(&mut self, key: Key, interval: Interval) {
        let (cpu, wall) = self.by_key.entry(key).or_default();
        cpu.push(interval.time.cpu_ns);
        wall.push(interval.time.wall_ns);
    }

    pub(super) fn summaries(self) -> Vec<Summary> {
        self.by_key
            .into_iter()
            .map(|(key, (cpu, wall))| Summary {
                key,
                n: cpu.len(),
                mean_cpu_ns: mean(&cpu),
                cpu_ns: quantiles(cpu),
                wall_ns: quantiles(wall),
            })
            .collect()
    }
}

pub(super) fn mean(values: &[u64]) -> f64 {
    values.iter().map(|&value| value as f64).sum::<f64>() / values.len().max(1) as f64
}

/// Evenly spaced quantiles with linear interpolation between order statistics (type 7 of
/// Hyndman and Fan 1996).
pub(super) fn quantiles(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    (0..QUANTILES)
        .filter_map(|index| {
            let place = last as f64 * index as f64 / (QUANTILES - 1) as f64;
            let below = *values.get(place as usize)?;
            let above = *values.get((place as usize + 1).min(last))?;
            Some((below as f64 + (above - below) as f64 * place.fract()).round() as u64)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_run_from_the_minimum_to_the_maximum() {
        let values = quantiles((0..=100).rev().collect());
        assert_eq!(values.len(), QUANTILES);
        assert_eq!((values[0], values[10], values[20]), (0, 50, 100));
        assert_eq!(quantiles(vec![7]), [7; QUANTILES]);
        assert!(quantiles(Vec::new()).is_empty());
    }
}
