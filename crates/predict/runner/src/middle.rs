// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How statistics of the board in the middle of all bands differ from those of all boards together.

use warifu_results::{Difference, MiddleLessAll};

/// Of so many resamples the least and the largest leave out a twentieth.
const RESAMPLES: u64 = 40;
/// Resamples are made of every so manyth board, in the order of what they take.
const EVERY: usize = 4;
/// Where a quantile lies beyond all trials with a greater probability, they do not bound it
/// (`least_trials`, python/warifu/compare/stats.py).
const BEYOND: f64 = 0.025;

/// Times of connections or scenarios on one board, trial by trial, ns; `None` for a failure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Vec<Option<u64>>);

/// [`Times`] in ascending order; failures are later than all others.
struct Sorted {
    ended: Vec<u64>,
    /// How often those before each place count, and last all of them.
    before: Vec<u64>,
    /// All of them with the failures.
    of: u64,
}

impl Times {
    /// Adds a time, `None` for a failure.
    pub(crate) fn add(&mut self, time: Option<u64>) {
        self.0.push(time);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// How much longer these are than the same trials on another board, ns: the mean of the middle
    /// half of the differences, so that a packet that is lost on one of them alone does not count.
    /// `None` where failures reach that half.
    pub(crate) fn longer_than(&self, other: &Times) -> Option<i64> {
        let longer = |(one, other): (&Option<u64>, &Option<u64>)| match (one, other) {
            (Some(one), Some(other)) => Some(*one as i64 - *other as i64),
            (None, Some(_)) => Some(i64::MAX),
            (Some(_), None) => Some(i64::MIN),
            (None, None) => None,
        };
        let mut apart: Vec<i64> = self.0.iter().zip(&other.0).filter_map(longer).collect();
        apart.sort_unstable();
        let half = &apart[apart.len() / 4..apart.len() - apart.len() / 4];
        let known = |one: &i64| ![i64::MIN, i64::MAX].contains(one);
        (!half.is_empty() && half.iter().all(known)).then(|| mean(half))
    }

    /// Each with the number of its trial, of which each has as many as `a_trial`; those that ended
    /// in ascending order, then the failures.
    fn by_length(&self, a_trial: usize) -> Vec<(Option<u64>, u64)> {
        let trial = |(at, &time)| (time, (at / a_trial.max(1)) as u64);
        let mut all: Vec<_> = self.0.iter().enumerate().map(trial).collect();
        all.sort_unstable_by_key(|&(time, _)| time.unwrap_or(u64::MAX));
        all
    }
}

/// How often a trial is in a resample: by Poisson's law with mean 1, which needs no trial but
/// itself.
fn weight(trial: u64, resample: u64) -> u64 {
    // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    let mut bits = (trial << 8 | resample).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    let uniform = (bits ^ bits >> 31) as f64 / 2.0_f64.powi(64);
    let (mut weight, mut share) = (0, (-1.0_f64).exp());
    let mut below = share;
    while uniform >= below && weight < 20 {
        weight += 1;
        share /= weight as f64;
        below += share;
    }
    weight
}

/// Of at least one.
fn mean(of: &[i64]) -> i64 {
    let sum: i128 = of.iter().copied().map(i128::from).sum();
    (sum / of.len() as i128) as i64
}

impl Sorted {
    /// Each as often as its trial counts.
    fn of(by_length: &[(Option<u64>, u64)], weight: impl Fn(u64) -> u64) -> Sorted {
        let (mut ended, mut before, mut of) = (Vec::new(), Vec::new(), 0);
        for &(time, trial) in by_length {
            if let Some(ns) = time {
                ended.push(ns);
                before.push(of);
                of += weight(trial);
            }
        }
        before.push(of);
        let failed = by_length.iter().filter(|(time, _)| time.is_none());
        of += failed.map(|&(_, trial)| weight(trial)).sum::<u64>();
        Sorted { ended, before, of }
    }

    /// How many are not above so many ns.
    fn up_to(&self, most: i64) -> u64 {
        self.before[self.ended.partition_point(|&ns| ns as i64 <= most)]
    }

    /// The least time that a share of `p` of all boards together is not above, each of which takes
    /// these times and as much longer as its own number says; `None` if failures reach it.
    fn quantile(&self, p: f64, longer: &[Option<i64>]) -> Option<i64> {
        let rank = rank(p, self.of * longer.len() as u64);
        let [first, last] = [self.ended.first()?, self.ended.last()?].map(|&ns| ns as i64);
        let known = || longer.iter().flatten();
        let up_to = |most: i64| known().map(|by| self.up_to(most - by)).sum::<u64>();
        let (mut below, mut at) = (first + known().min()? - 1, last + known().max()?);
        if up_to(at) < rank {
            return None;
        }
        while at - below > 1 {
            let half = below + (at - below) / 2;
            *(if up_to(half) < rank { &mut below } else { &mut at }) = half;
        }
        Some(at)
    }

    /// What the quantile is on the board in the middle less that of all boards together.
    fn less(&self, p: f64, longer: &[Option<i64>]) -> Option<i64> {
        Some(self.quantile(p, &[Some(0)])? - self.quantile(p, longer)?)
    }
}

/// As the stored percentiles have it: crates/core/results/src/distribution.rs.
fn rank(p: f64, of: u64) -> u64 {
    (p * of as f64 * (1.0 - 1e-12)).ceil().max(1.0) as u64
}

/// What times of the board in the middle are over those of all boards, each of which takes as much
/// longer as `off_middle_ns` says. The two are of the same trials, so that boards that are alike
/// differ by nothing whatever the luck of the trials; what their number leaves open is found from
/// resamples of them. `a_trial` is how many times a trial has.
pub(crate) fn middle_less_all(
    middle: &Times,
    off_middle_ns: &[Option<i64>],
    a_trial: usize,
) -> MiddleLessAll {
    let by_length = middle.by_length(a_trial);
    let times = Sorted::of(&by_length, |_| 1);
    let trials = (middle.0.len() / a_trial.max(1)) as i32;
    let resamples: Vec<Sorted> = (0..RESAMPLES)
        .map(|resample| Sorted::of(&by_length, |trial| weight(trial, resample)))
        .collect();
    let mut some = off_middle_ns.to_vec();
    some.sort_unstable_by_key(|off| off.unwrap_or(i64::MAX));
    let some: Vec<_> = some.into_iter().skip(EVERY / 2).step_by(EVERY).collect();
    let quantile = |p: f64| {
        if p.powi(trials) > BEYOND {
            return None;
        }
        let value = times.less(p, off_middle_ns)?;
        let of_some = times.less(p, &some)?;
        // Nothing is known where failures reach it in one of them.
        let resampled: Option<Vec<_>> = resamples.iter().map(|one| one.less(p, &some)).collect();
        let off: Vec<_> = resampled?.into_iter().map(|one| one - of_some).chain([0]).collect();
        let (low, high) = (off.iter().min()?, off.iter().max()?);
        Some(Difference { low: value + low, value, high: value + high })
    };
    let known: Vec<i64> = off_middle_ns.iter().copied().flatten().collect();
    let of_mean = (!known.is_empty()).then(|| {
        let value = -mean(&known);
        Difference { low: value, value, high: value }
    });
    MiddleLessAll {
        p50: quantile(0.50),
        p90: quantile(0.90),
        p95: quantile(0.95),
        p99: quantile(0.99),
        mean: of_mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ns: impl IntoIterator<Item = u64>, failed: usize) -> Times {
        Times(ns.into_iter().map(Some).chain(std::iter::repeat_n(None, failed)).collect())
    }

    #[test]
    fn failures_are_later_than_all_others() {
        let of = |times: Times| {
            let sorted = Sorted::of(&times.by_length(1), |_| 1);
            [0.50, 0.90, 0.95, 0.99, 1.0].map(|p| sorted.quantile(p, &[Some(0)]))
        };
        assert_eq!(of(times((1..=100).rev(), 0)), [50, 90, 95, 99, 100].map(Some));
        assert_eq!(of(times(1..=100, 2)), [Some(51), Some(92), Some(97), None, None]);
        assert_eq!(of(times([], 3)), [None; 5]);
    }

    #[test]
    fn what_a_board_takes_longer() {
        let middle = times([10, 20, 30, 40, 50, 60, 70, 80], 0);
        // Two gain a retransmission, one loses one, and two hide what the others wait for.
        let board = times([1_010, 26, 38, 40, 50, 66, 5, 1_080], 0);
        assert_eq!(board.longer_than(&middle), Some((6 + 8 + 6) / 4));
        assert_eq!(middle.longer_than(&middle), Some(0));
        assert_eq!(times([7], 0).longer_than(&times([9], 0)), Some(-2));
        // Failures are infinitely longer, and count for nothing where both fail.
        let some_fail = times([15, 25, 35, 45, 55, 65], 2);
        assert_eq!(some_fail.longer_than(&middle), Some(5));
        assert_eq!(some_fail.longer_than(&some_fail), Some(0));
        let most_fail = times([15, 25, 35], 5);
        assert_eq!(most_fail.longer_than(&middle), None);
        assert_eq!(middle.longer_than(&most_fail), None);
        assert_eq!(times([], 8).longer_than(&times([], 8)), None);
        assert_eq!(Times::default().longer_than(&middle), None);
    }

    #[test]
    fn of_all_boards_together() {
        let of = Sorted::of(&times([10, 20, 30], 1).by_length(1), |_| 1);
        let moves = [Some(-5), Some(0), Some(100), None];
        // Of 16: 5, 10, 15, 20, 25, 30, 110, 120, 130 and seven failures.
        let mut all: Vec<_> =
            [-5, 0, 100].iter().flat_map(|by| [10, 20, 30].map(|ns| Some(ns + by))).collect();
        all.sort_unstable();
        all.resize(16, None);
        for (number, expected) in all.iter().enumerate() {
            let p = (number + 1) as f64 / 16.0;
            assert_eq!(of.quantile(p, &moves), *expected, "{p}");
        }
    }

    #[test]
    fn where_boards_are_alike_there_is_no_difference() {
        let of = times((0..1_000).map(|at| at * at), 0);
        let MiddleLessAll { p50, p90, p95, p99, mean } = middle_less_all(&of, &[Some(0); 40], 1);
        let none = Some(Difference { low: 0, value: 0, high: 0 });
        assert_eq!([p50, p90, p95, p99, mean], [none; 5]);
    }

    #[test]
    fn a_tail_of_all_boards_is_that_of_the_slow_ones() {
        // A hundredth waits for a timer of 1 s; boards differ by up to 100 ms.
        let of = times((0..4_000).map(|at| if at % 100 == 99 { 1_000_000 } else { at }), 0);
        let boards: Vec<_> = (0..200).map(|board| Some(500 * board - 50_000)).collect();
        let less = middle_less_all(&of, &boards, 1);
        let p99 = less.p99.unwrap();
        // Below the jump those who wait are none, above it all are: either way the boards are.
        assert!(p99.low < -40_000 && p99.high > 10_000, "{p99:?}");
        assert!((-60_000..60_000).contains(&p99.low), "{p99:?}");
        assert!((-60_000..60_000).contains(&p99.high), "{p99:?}");
        assert_eq!(less.mean.unwrap().value, 250);
    }

    #[test]
    fn where_failures_reach_a_statistic_nothing_is_known() {
        let less = |times: Times, off| middle_less_all(&times, &[off; 40], 1);
        assert_eq!(less(times(1..=3, 0), None), MiddleLessAll::default());
        assert_eq!(less(Times::default(), Some(1)).p50, None);
        // They reach P99, and in a resample P95, but not the median.
        let some = less(times(1..=1_900, 95), Some(0));
        assert!(some.p99.is_none() && some.p95.is_none() && some.p50.is_some());
        // Too few trials bound no P99, whichever end they have.
        assert!(less(times(1..=367, 0), Some(0)).p99.is_none());
        assert!(less(times(1..=368, 0), Some(0)).p99.is_some());
    }

    #[test]
    fn a_trial_counts_once_on_average_and_as_a_whole() {
        let weights = |resample| (0..20_000).map(move |trial| weight(trial, resample));
        for resample in 0..RESAMPLES {
            let mean = weights(resample).sum::<u64>() as f64 / 20_000.0;
            let none = weights(resample).filter(|&of| of == 0).count() as f64 / 20_000.0;
            assert!((mean - 1.0).abs() < 0.03 && (none - 0.3679).abs() < 0.015, "{mean} {none}");
        }
        let both = times([5, 9, 7, 1], 0).by_length(2);
        assert_eq!(both.iter().map(|of| of.1).collect::<Vec<_>>(), [1, 0, 1, 0]);
    }

    #[test]
    fn what_trials_leave_open_holds_the_truth() {
        // A tail of 3 % whose times are far apart, and boards that differ as much: what the middle
        // differs by 4,000 trials against 400,000.
        let draw = |trial: u64| {
            let at = (trial.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % 100_000;
            if at < 97_000 { at } else { 97_000 + (at - 97_000) * 200 }
        };
        let boards: Vec<_> = (0..100).map(|board| Some(3_000 * board - 150_000)).collect();
        let of = |trials: std::ops::Range<u64>| {
            middle_less_all(&times(trials.map(draw), 0), &boards, 1).p99.unwrap()
        };
        let truth = of(0..400_000).value;
        let known = (1..=40).filter(|run| {
            let found = of(run * 1_000_003..run * 1_000_003 + 4_000);
            found.low <= truth && truth <= found.high
        });
        assert!(known.count() >= 34);
    }
}
