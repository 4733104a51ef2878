// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An exact distribution as few rows, whose weights are probabilities.

use std::ops::Range;

use warifu_model::{Metric, Stage};

use crate::distribution::{BAND_ENDS, FINE, PINNED, fractions, with_gaps};
use crate::rows::{Row, Rows};

impl Rows {
    /// Adds the distribution of one metric over atoms with weights, as [`Rows::push_distribution`]
    /// does over trials: the mean is exact, and so are the least and the largest value and the
    /// pinned percentiles. `atoms` are values in the metric's unit with their probabilities, and
    /// come back sorted; `failed` is the probability of those that gave no value, which count as
    /// later than all.
    pub fn push_weighted(
        &mut self,
        metric: Metric,
        atoms: &mut [(u64, f64)],
        failed: f64,
        groups: usize,
        seed: u64,
    ) {
        atoms.sort_by_key(|atom| atom.0);
        let equal = atoms.chunk_by(|a, b| a.0 == b.0);
        let joined: Vec<(u64, f64)> =
            equal.map(|group| (group[0].0, group.iter().map(|(_, weight)| weight).sum())).collect();
        let mut start = 0;
        for (trial, end) in (0..).zip(cuts(&joined, failed, groups.max(1))) {
            let group = &joined[start..end];
            let weight: f64 = group.iter().map(|(_, weight)| weight).sum();
            let sum: f64 = group.iter().map(|&(value, weight)| value as f64 * weight).sum();
            // One value is not to be rounded away from itself.
            let value = if group.len() == 1 { group[0].0 as f64 } else { sum / weight };
            // Sums of weights may be rounded beyond one.
            let weight = weight.min(1.0);
            self.push(Row { connection: 0, trial, metric, stage: None, value, weight, seed });
            start = end;
        }
    }

    /// Adds what each stage took on average in bands of atoms, as [`Rows::push_stages`] does of
    /// trials. `atoms` are the total, ns, the stages, and the probability of each.
    pub fn push_weighted_stages(
        &mut self,
        metric: Metric,
        atoms: &[(u64, [u64; Stage::ALL.len()], f64)],
        seed: u64,
    ) {
        let mut order: Vec<usize> = (0..atoms.len()).collect();
        order.sort_unstable_by_key(|&atom| atoms[atom].0);
        let all: f64 = atoms.iter().map(|(.., weight)| weight).sum();
        let mut bands = [(0.0, [0.0; Stage::ALL.len()]); BAND_ENDS.len()];
        let mut below = 0.0;
        for &atom in &order {
            let (_, stages, weight) = &atoms[atom];
            // An atom belongs to the band that its middle is in.
            let middle = (below + weight / 2.0) / all;
            let band = BAND_ENDS.iter().position(|&end| middle < end);
            let (sum, means) = &mut bands[band.unwrap_or(BAND_ENDS.len() - 1)];
            *sum += weight;
            for (mean, &ns) in means.iter_mut().zip(stages) {
                *mean += ns as f64 * weight;
            }
            below += weight;
        }
        let bands: Vec<_> = bands.into_iter().filter(|(weight, _)| *weight > 0.0).collect();
        for (index, stage) in Stage::ALL.into_iter().enumerate() {
            if bands.iter().all(|(_, means)| means[index] == 0.0) {
                continue;
            }
            for (trial, (weight, means)) in (0..).zip(&bands) {
                let (value, weight) = (means[index] / weight, weight.min(1.0));
                let stage = Some(stage);
                self.push(Row { connection: 0, trial, metric, stage, value, weight, seed });
            }
        }
    }
}

/// Where the groups of atoms end, in ascending order; those that hold a pinned percentile, the
/// first and the last are alone.
fn cuts(atoms: &[(u64, f64)], failed: f64, groups: usize) -> Vec<usize> {
    if atoms.len() <= groups {
        return (1..=atoms.len()).collect();
    }
    let mut below = Vec::with_capacity(atoms.len());
    let mut sum = 0.0;
    for (_, weight) in atoms {
        sum += weight;
        below.push(sum);
    }
    let all = sum + failed;
    let reaches = |share: f64| below.partition_point(|&weight| weight < share * (1.0 - 1e-12));
    let mut cuts: Vec<usize> = fractions(groups, FINE_ERRORS)
        .into_iter()
        .map(|(share, of_all)| reaches(share * if of_all { all } else { sum }))
        .collect();
    for atom in PINNED.map(|share| reaches(share * all)).into_iter().chain([0, atoms.len() - 1]) {
        cuts.extend([atom, atom + 1]);
    }
    cuts.retain(|&cut| cut > 0 && cut < atoms.len());
    cuts.push(atoms.len());
    cuts.sort_unstable();
    cuts.dedup();
    let values: Vec<u64> = atoms.iter().map(|atom| atom.0).collect();
    let weight = |group: Range<usize>| atoms[group].iter().map(|atom| atom.1).sum();
    with_gaps(&cuts, &values, groups, weight)
}

/// Groups are fine within some standard errors of a percentile from so many trials.
const FINE_ERRORS: fn(f64) -> f64 = |share| FINE * (share * (1.0 - share) / 50_000.0).sqrt();

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(atoms: &[(u64, f64)], failed: f64, groups: usize) -> Vec<(f64, f64)> {
        let mut rows = Rows::default();
        rows.push_weighted(Metric::TcpConnect, &mut atoms.to_vec(), failed, groups, 7);
        rows.iter().map(|row| (row.value, row.weight)).collect()
    }

    fn quantile(atoms: &[(f64, f64)], failed: f64, share: f64) -> Option<f64> {
        let all = atoms.iter().map(|atom| atom.1).sum::<f64>() + failed;
        let mut below = 0.0;
        let reached = |&&(_, weight): &&(f64, f64)| {
            below += weight;
            below >= share * all * (1.0 - 1e-9)
        };
        atoms.iter().find(reached).map(|atom| atom.0)
    }

    proptest! {
        #[test]
        fn mean_weight_and_pinned_percentiles(
            raw in prop::collection::vec((0_u64..10_000_000_000, 1e-6_f64..1.0), 1..1_500),
            failed in prop_oneof![Just(0.0), 0.0_f64..0.2],
            left_out in prop_oneof![Just(0.0), 0.0_f64..0.1],
            groups in 1_usize..140,
        ) {
            let all: f64 = raw.iter().map(|atom| atom.1).sum::<f64>() / (1.0 - failed - left_out);
            let atoms: Vec<(u64, f64)> = raw.iter().map(|&(at, of)| (at, of / all)).collect();
            let stored = rows(&atoms, failed, groups);
            let weight: f64 = stored.iter().map(|atom| atom.1).sum();
            // What lacks to one is what was left out, and readers go by it.
            prop_assert!((weight + failed + left_out - 1.0).abs() < 1e-9, "{}", weight);
            let mean = |atoms: &[(f64, f64)]| atoms.iter().map(|(at, of)| at * of).sum::<f64>();
            let mut exact: Vec<(f64, f64)> =
                atoms.iter().map(|&(at, of)| (at as f64, of)).collect();
            prop_assert!((mean(&stored) - mean(&exact)).abs() <= 1e-9 * mean(&exact) + 1e-9);
            prop_assert!(stored.len() <= 2 * groups + 21, "{}", stored.len());
            prop_assert!(stored.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            exact.sort_by(|a, b| a.0.total_cmp(&b.0));
            for share in PINNED {
                let (found, expected) =
                    (quantile(&stored, failed, share), quantile(&exact, failed, share));
                prop_assert_eq!(found, expected, "at {}", share);
            }
        }
    }

    #[test]
    fn stages_of_a_band_are_means() {
        let atoms = [(3, 0.5), (30, 0.25), (300, 0.25)].map(|(total, weight)| {
            let mut stages = [0; Stage::ALL.len()];
            stages[1] = total;
            (total, stages, weight)
        });
        let mut rows = Rows::default();
        rows.push_weighted_stages(Metric::HttpsEstablishment, &atoms, 7);
        let found: Vec<(f64, f64)> = rows.iter().map(|row| (row.value, row.weight)).collect();
        assert_eq!(found, [(3.0, 0.5), (30.0, 0.25), (300.0, 0.25)]);
    }
}
