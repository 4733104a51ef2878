// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samples by message, and what is told of them. None is left out.

use std::collections::BTreeMap;

use serde::Serialize;

use super::intervals::{Part, Times};
use super::reading::Reading;

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
    /// It had not, but before the connection others had its caches and it slept for long.
    Rested,
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

/// One side's whole time inside libssl, over connections.
#[derive(Clone, Debug, Serialize)]
pub struct Calls {
    /// Index of the variant.
    pub variant: usize,
    /// See [`Temperature`].
    pub temperature: Temperature,
    /// See [`Side`].
    pub side: Side,
    /// How many connections.
    pub n: usize,
    /// Mean of the thread's processor time in all calls of a connection, ns: the sum of the
    /// messages' means, each as often as it comes, and `idle_mean_cpu_ns`.
    pub mean_cpu_ns: f64,
    /// Mean of what went to calls that met no message, such as a read that found nothing, ns.
    pub idle_mean_cpu_ns: f64,
    /// [`QUANTILES`] evenly spaced quantiles of the processor time in all calls, ns.
    pub cpu_ns: Vec<u64>,
    /// The same of the wall's time, ns.
    pub wall_ns: Vec<u64>,
}

#[derive(Default)]
pub(super) struct Samples {
    by_key: BTreeMap<Key, (Vec<u64>, Vec<u64>)>,
    calls: BTreeMap<(usize, Temperature, Side), Vec<(Reading, Reading)>>,
}

impl Samples {
    /// Takes one side's times of a connection.
    pub(super) fn add(
        &mut self,
        variant: usize,
        temperature: Temperature,
        side: Side,
        times: Times,
    ) {
        for interval in times.parts {
            let key = Key { variant, temperature, side, part: interval.part };
            let (cpu, wall) = self.by_key.entry(key).or_default();
            cpu.push(interval.time.cpu_ns);
            wall.push(interval.time.wall_ns);
        }
        let whole = self.calls.entry((variant, temperature, side)).or_default();
        whole.push((times.total, times.idle));
    }

    pub(super) fn summaries(self) -> (Vec<Summary>, Vec<Calls>) {
        let messages = self.by_key.into_iter().map(|(key, (cpu, wall))| Summary {
            key,
            n: cpu.len(),
            mean_cpu_ns: mean(&cpu),
            cpu_ns: quantiles(cpu),
            wall_ns: quantiles(wall),
        });
        let calls = self.calls.into_iter().map(|((variant, temperature, side), times)| {
            let total_cpu: Vec<u64> = times.iter().map(|(total, _)| total.cpu_ns).collect();
            let total_wall = times.iter().map(|(total, _)| total.wall_ns).collect();
            let idle: Vec<u64> = times.iter().map(|(_, idle)| idle.cpu_ns).collect();
            Calls {
                variant,
                temperature,
                side,
                n: times.len(),
                mean_cpu_ns: mean(&total_cpu),
                idle_mean_cpu_ns: mean(&idle),
                cpu_ns: quantiles(total_cpu),
                wall_ns: quantiles(total_wall),
            }
        });
        (messages.collect(), calls.collect())
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
    fn quantiles_span_minimum_to_maximum() {
        let values = quantiles((0..=100).rev().collect());
        assert_eq!(values.len(), QUANTILES);
        assert_eq!((values[0], values[10], values[20]), (0, 50, 100));
        assert_eq!(quantiles(vec![7]), [7; QUANTILES]);
        assert!(quantiles(Vec::new()).is_empty());
    }
}
