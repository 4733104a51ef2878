// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Many trials as few weighted rows, so that a sweep's results stay small.

use std::ops::Range;

use warifu_model::{Metric, Stage};

use crate::rows::{Row, Rows};

/// Where the bands of [`Rows::push_stages`] end, as fractions of the trials.
pub(crate) const BAND_ENDS: [f64; 6] = [0.50, 0.75, 0.90, 0.95, 0.99, 1.0];

/// The quantiles whose trial is stored as it is, beside the least and the largest: those that
/// tables show and requirements and gates judge.
pub(crate) const PINNED: [f64; 5] = [0.50, 0.90, 0.95, 0.99, 0.999];

/// The quantiles beside which groups are fine, so that an interval's ends, which are other
/// quantiles, are not moved by averaging.
const JUDGED: [f64; 4] = [0.50, 0.90, 0.95, 0.99];

/// How far from such a quantile, in its standard errors: 95 % intervals end at two.
pub(crate) const FINE: f64 = 3.0;

/// A part of the range of a group of trials wider than this fraction of its smallest value is
/// not averaged away: a lost packet's timer leaves gaps that a mean must not land in, since the
/// share of trials within a deadline there would be off by the group's.
const GAP_FRACTION: f64 = 1.0 / 512.0;

/// A gap is more than half of its group's range, or more than this fraction of it and four times
/// the mean distance of its trials: the widest one of draws without gaps is smaller.
const GAP_OF_RANGE: f64 = 1.0 / 16.0;

impl Rows {
    /// Adds the distribution of one metric over many trials as at most `2 * groups + 21` weighted
    /// rows. `values` are in the metric's unit and come back sorted.
    ///
    /// Up to `groups` different values are stored exactly. Beyond, neighbours are averaged: a
    /// group's share of the trials is small at both ends and larger in the middle (the scale
    /// function k1 of Dunning and Ertl, arXiv:1902.04023), and smallest around the 50th, 90th, 95th
    /// and 99th percentile, to which half of the groups go. They end at gaps as well, at as many as
    /// there are groups. The mean is exact, and so are the least and the largest value and the
    /// 50th, 90th, 95th, 99th and 99.9th percentile (the smallest value that so many trials do not
    /// exceed), which have a row of their own. `failed` trials gave no value: they count as later
    /// than all.
    pub fn push_distribution(
        &mut self,
        metric: Metric,
        values: &mut [u64],
        failed: usize,
        groups: usize,
        seed: u64,
    ) {
        values.sort_unstable();
        let mut trial = 0;
        for_each_atom(values, failed, groups.max(1), |value, weight| {
            self.push(Row { connection: 0, trial, metric, stage: None, value, weight, seed });
            trial += 1;
        });
    }

    /// Adds what each stage took on average, once for each band of the trials in order of
    /// their total: the fastest half, then up to the 75th, 90th, 95th, 99th percentile and the
    /// rest. Row `trial` is the band's number, its weight the number of trials in it; a stage
    /// that took no time in any trial has no rows.
    ///
    /// `totals` and `stages` have one entry for each trial, ns; a trial's stages add up to its
    /// total.
    pub fn push_stages(
        &mut self,
        metric: Metric,
        totals: &[u64],
        stages: &[[u64; Stage::ALL.len()]],
        seed: u64,
    ) {
        let mut order: Vec<usize> = (0..totals.len().min(stages.len())).collect();
        order.sort_unstable_by_key(|&trial| totals[trial]);
        let mut start = 0;
        let mut bands = Vec::with_capacity(BAND_ENDS.len());
        for end in BAND_ENDS {
            let end = (end * order.len() as f64).round() as usize;
            if end > start {
                bands.push(mean_stages(&order[start..end], stages));
                start = end;
            }
        }
        for (index, stage) in Stage::ALL.into_iter().enumerate() {
            if bands.iter().all(|(_, means)| means[index] == 0.0) {
                continue;
            }
            for (trial, (weight, means)) in (0..).zip(&bands) {
                let (value, weight) = (means[index], *weight);
                let stage = Some(stage);
                self.push(Row { connection: 0, trial, metric, stage, value, weight, seed });
            }
        }
    }
}

/// The number of the given trials, and their mean of each stage, ns.
fn mean_stages(
    trials: &[usize],
    stages: &[[u64; Stage::ALL.len()]],
) -> (f64, [f64; Stage::ALL.len()]) {
    let mut sums = [0_u64; Stage::ALL.len()];
    for &trial in trials {
        for (sum, value) in sums.iter_mut().zip(stages[trial]) {
            *sum += value;
        }
    }
    let weight = trials.len() as f64;
    (weight, sums.map(|sum| sum as f64 / weight))
}

/// Calls `push(value, weight)` for each atom of the sorted values, in ascending order.
fn for_each_atom(sorted: &[u64], failed: usize, groups: usize, mut push: impl FnMut(f64, f64)) {
    if different(sorted, groups) <= groups {
        for equal in sorted.chunk_by(|a, b| a == b) {
            push(equal[0] as f64, equal.len() as f64);
        }
        return;
    }
    let mut start = 0;
    let cuts = cuts(sorted.len(), failed, groups);
    let cuts = with_gaps(&cuts, sorted, groups, |group| group.len() as f64);
    for end in cuts {
        push_mean(&sorted[start..end], &mut push);
        start = end;
    }
}

/// The same ends of groups of sorted values, and the gaps within groups that move most of what has
/// a `weight`, `most` of them.
pub(crate) fn with_gaps(
    cuts: &[usize],
    sorted: &[u64],
    most: usize,
    weight: impl Fn(Range<usize>) -> f64,
) -> Vec<usize> {
    let mut gaps: Vec<(f64, usize)> = Vec::new();
    let mut start = 0;
    for &end in cuts {
        let (first, last) = (sorted[start], sorted[end - 1]);
        let range = (last - first) as f64;
        // Most groups are narrow.
        if range > first as f64 * GAP_FRACTION {
            let of_group = weight(start..end);
            let least = range * (GAP_OF_RANGE + 4.0 / (end - start) as f64).min(0.5);
            let pairs = sorted[start..end].windows(2).zip(start + 1..);
            gaps.extend(pairs.filter_map(|(pair, at)| {
                let gap = (pair[1] - pair[0]) as f64;
                (gap > least).then_some((gap * of_group, at))
            }));
        }
        start = end;
    }
    if gaps.len() > most {
        // Equal ones in their order, so that the same values give the same groups.
        gaps.select_nth_unstable_by(most, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        gaps.truncate(most);
    }
    let mut cuts: Vec<usize> = cuts.iter().copied().chain(gaps.iter().map(|gap| gap.1)).collect();
    cuts.sort_unstable();
    cuts
}

/// Where the groups of `count` trials end, in ascending order; the pinned ones are alone. Beyond
/// them are the `failed` ones.
fn cuts(count: usize, failed: usize, groups: usize) -> Vec<usize> {
    let mut cuts = Vec::with_capacity(groups + 2 * PINNED.len() + 4);
    let all = (count + failed) as f64;
    let near = |share: f64| FINE * (share * (1.0 - share) / all).sqrt();
    for (share, of_all) in fractions(groups, near) {
        let cut = (share * if of_all { all } else { count as f64 }).round() as usize;
        if cut < count {
            cuts.push(cut);
        }
    }
    let ranks = PINNED.map(|share| (share * all * (1.0 - 1e-12)).ceil() as usize);
    for rank in ranks.into_iter().filter(|&rank| rank <= count).chain([1, count]) {
        cuts.extend([rank.saturating_sub(1), rank]);
    }
    cuts.sort_unstable();
    cuts.dedup();
    cuts.retain(|&cut| cut > 0);
    cuts
}

/// Where groups end, as a share of the trials that gave a value, or, for those around a judged
/// quantile, of all (`true`), of which `near` says how far that reaches.
pub(crate) fn fractions(groups: usize, near: impl Fn(f64) -> f64) -> Vec<(f64, bool)> {
    let each = groups / 2 / JUDGED.len();
    let body = groups - each * JUDGED.len();
    // k1: equal steps of the angle whose cosine runs over the quantiles.
    let angle = |group: usize| std::f64::consts::PI * group as f64 / body as f64;
    let mut fractions: Vec<(f64, bool)> =
        (1..body).map(|group| ((1.0 - angle(group).cos()) / 2.0, false)).collect();
    for share in JUDGED {
        let step = |cut: usize| 2.0 * (cut as f64 + 0.5) / each as f64 - 1.0;
        fractions.extend((0..each).map(|cut| (share + near(share) * step(cut), true)));
    }
    fractions.retain(|(share, _)| (0.0..1.0).contains(share));
    fractions
}

fn push_mean(group: &[u64], push: &mut impl FnMut(f64, f64)) {
    let sum: u128 = group.iter().map(|&value| u128::from(value)).sum();
    push(sum as f64 / group.len() as f64, group.len() as f64);
}

/// How many different values there are, counted no further than `limit + 1`.
fn different(sorted: &[u64], limit: usize) -> usize {
    sorted.chunk_by(|a, b| a == b).take(limit + 1).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn atoms(values: &[u64], groups: usize) -> Vec<(f64, f64)> {
        atoms_beside(values, 0, groups)
    }

    fn atoms_beside(values: &[u64], failed: usize, groups: usize) -> Vec<(f64, f64)> {
        let mut rows = Rows::default();
        rows.push_distribution(Metric::TcpConnect, &mut values.to_vec(), failed, groups, 7);
        rows.iter().map(|row| (row.value, row.weight)).collect()
    }

    #[test]
    fn few_different_values() {
        assert_eq!(atoms(&[80, 78, 79, 79], 3), [(78.0, 1.0), (79.0, 2.0), (80.0, 1.0)]);
    }

    #[test]
    fn gap_left_by_a_timer() {
        let quick = (0..900).map(|trial| 184_000_000 + trial * 1_000);
        let repaired = (0..100).map(|trial| 444_000_000 + trial * 1_000);
        for (value, _) in atoms(&quick.chain(repaired).collect::<Vec<_>>(), 16) {
            assert!(!(185_000_000.0..444_000_000.0).contains(&value), "{value}");
        }
    }

    /// Several timers' edges may lie within one group of the tail. Shares of trials within a
    /// deadline between them are what they were.
    #[test]
    fn gaps_left_by_several_timers() {
        let clusters = [(184, 190_000), (444, 5_000), (1_210, 2_500), (1_480, 1_400), (2_220, 800)];
        let cluster = |&(ms, trials): &(u64, u64)| {
            (0..trials).map(move |trial| ms * 1_000_000 + trial * 30_000_000 / trials)
        };
        let mut values: Vec<u64> = clusters.iter().flat_map(cluster).collect();
        values.extend((0..300).map(|trial| 3_000_000_000 + trial * 20_000_000));
        let all = values.len() as f64;
        let atoms = atoms(&values, 128);
        let mut below = 0.0;
        for (ms, trials) in clusters {
            below += trials as f64;
            let deadline = (ms + 60) as f64 * 1e6;
            let within: f64 =
                atoms.iter().filter(|atom| atom.0 <= deadline).map(|atom| atom.1).sum();
            assert!((within - below).abs() / all < 1e-9, "{ms} ms: {within} of {below}");
        }
    }

    #[test]
    fn tail_finer_than_the_middle() {
        let atoms = atoms(&(0..1_000).map(|trial| 1_000 + trial).collect::<Vec<_>>(), 64);
        let widest = atoms.iter().map(|&(_, weight)| weight).fold(0.0, f64::max);
        assert_eq!(atoms.last(), Some(&(1_999.0, 1.0)));
        assert!(widest > 20.0, "{widest}");
        assert!(atoms.len() <= 64 + 14, "{}", atoms.len());
    }

    #[test]
    fn sum_of_stages_in_each_band() {
        let stages: Vec<[u64; 12]> =
            (0..200).map(|trial| std::array::from_fn(|stage| trial * stage as u64)).collect();
        let totals: Vec<u64> = stages.iter().map(|stages| stages.iter().sum()).collect();
        let mut rows = Rows::default();
        rows.push_stages(Metric::HttpsEstablishment, &totals, &stages, 7);
        // The first stage never took time; eleven are left, in six bands.
        assert_eq!(rows.len(), 11 * 6);
        let fastest_half: f64 = rows.iter().filter(|row| row.trial == 0).map(|row| row.value).sum();
        assert_eq!(fastest_half, totals[..100].iter().sum::<u64>() as f64 / 100.0);
        let all: f64 = rows.iter().map(|row| row.value * row.weight).sum();
        assert_eq!(all, totals.iter().sum::<u64>() as f64);
    }

    /// What the ends of an interval are: quantiles two standard errors from a judged one. Averaging
    /// must not move them by more than a tenth of the interval.
    #[test]
    fn fine_around_judged_quantiles() {
        // Logarithmic, so that the tail is wide.
        let count = 200_000;
        let value = |rank: usize| 1e9 / (1.0 - (rank as f64 + 0.5) / f64::from(count)).sqrt();
        let values: Vec<u64> = (0..count as usize).map(|rank| value(rank) as u64).collect();
        let atoms = atoms(&values, 128);
        assert!(atoms.len() <= 128 + 14, "{}", atoms.len());
        for share in JUDGED {
            let error = (share * (1.0 - share) / f64::from(count)).sqrt();
            let end = |errors: f64| ((share + errors * error) * f64::from(count)) as usize;
            let width = value(end(2.0)) - value(end(-2.0));
            for rank in [end(-2.0), end(2.0)] {
                let mut below = 0.0;
                let stored = atoms.iter().find(|&&(_, weight)| {
                    below += weight;
                    below >= rank as f64
                });
                let moved = (stored.unwrap().0 - value(rank)).abs();
                assert!(moved < width / 10.0, "{share}: {moved} of {width}");
            }
        }
    }

    proptest! {
        #[test]
        fn exact_pinned_percentiles(
            values in prop::collection::vec(0_u64..1_000_000, 1..2_000),
            failed in prop_oneof![Just(0_usize), 0_usize..200],
            groups in 1_usize..40,
        ) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let atoms = atoms_beside(&values, failed, groups);
            let all = (sorted.len() + failed) as f64;
            for share in PINNED.into_iter().chain([0.0, 1.0]) {
                let rank = (share * all * (1.0 - 1e-12)).max(1.0);
                let mut below = 0.0;
                let stored = atoms.iter().find(|&&(_, weight)| {
                    below += weight;
                    below >= rank
                });
                let expected = sorted.get(rank.ceil() as usize - 1).map(|&value| value as f64);
                prop_assert_eq!(stored.map(|atom| atom.0), expected, "at {}", share);
            }
        }

        #[test]
        fn total_weight_and_mean(
            values in prop::collection::vec(0_u64..10_000_000_000, 1..500),
            groups in 1_usize..80,
        ) {
            let atoms = atoms(&values, groups);
            let count: f64 = atoms.iter().map(|&(_, weight)| weight).sum();
            prop_assert_eq!(count, values.len() as f64);
            let sum: f64 = atoms.iter().map(|&(value, weight)| value * weight).sum();
            let expected = values.iter().sum::<u64>() as f64;
            prop_assert!((sum - expected).abs() <= expected * 1e-12 + 1e-9);
            prop_assert!(atoms.len() <= 2 * groups + 21, "{}", atoms.len());
            prop_assert!(atoms.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        }
    }
}
