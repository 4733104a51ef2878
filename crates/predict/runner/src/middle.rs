// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How statistics of the board in the middle of all bands differ from those of all boards together.

use warifu_results::{Difference, MiddleLessAll};

/// A normal distribution has 95 % within so many standard deviations.
const DEVIATIONS: f64 = 1.96;

/// Times of connections or scenarios on one board, ns; a failure is later than all others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    ended: Vec<u64>,
    failed: usize,
}

/// [`Times`] in ascending order.
#[derive(Clone, Copy)]
pub(crate) struct Sorted<'a> {
    ended: &'a [u64],
    of: usize,
}

impl Times {
    /// Adds a time, `None` for a failure.
    pub(crate) fn add(&mut self, time: Option<u64>) {
        match time {
            Some(ns) => self.ended.push(ns),
            None => self.failed += 1,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.ended.clear();
        self.failed = 0;
    }

    pub(crate) fn sorted(&mut self) -> Sorted<'_> {
        self.ended.sort_unstable();
        Sorted { ended: &self.ended, of: self.ended.len() + self.failed }
    }
}

impl Sorted<'_> {
    /// The least time that a share of `p` is not above; `None` if failures reach it.
    pub(crate) fn quantile(self, p: f64) -> Option<u64> {
        self.ended.get(rank(p, self.of) - 1).copied()
    }

    /// The same of all boards together, each of which takes these times moved by its own number.
    fn quantile_of_moved(self, p: f64, moves: &[Option<i64>]) -> Option<i64> {
        let rank = rank(p, self.of * moves.len());
        let [first, last] = [self.ended.first()?, self.ended.last()?].map(|&ns| ns as i64);
        let known = || moves.iter().flatten();
        let up_to = |most: i64| -> usize {
            known().map(|by| self.ended.partition_point(|&ns| ns as i64 + by <= most)).sum()
        };
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
}

/// As the stored percentiles have it: crates/core/results/src/distribution.rs.
fn rank(p: f64, of: usize) -> usize {
    (p * of as f64 * (1.0 - 1e-12)).ceil().max(1.0) as usize
}

/// What `times` of the board in the middle are over those of all boards, on each of which they are
/// later by what its median is above `middle_ns`. The two are of the same trials: where a quantile
/// of one is off by luck, that of the other is as well, so that what the number of trials leaves
/// open is how the difference changes as far as the quantile may be off.
pub(crate) fn middle_less_all(
    times: Sorted<'_>,
    middle_ns: Option<u64>,
    on_boards_ns: &[Option<u64>],
) -> MiddleLessAll {
    let Some(middle_ns) = middle_ns.map(|ns| ns as i64) else { return MiddleLessAll::default() };
    let moves: Vec<_> = on_boards_ns.iter().map(|ns| ns.map(|ns| ns as i64 - middle_ns)).collect();
    let at = |p: f64| Some(times.quantile(p)? as i64 - times.quantile_of_moved(p, &moves)?);
    let quantile = |p: f64| {
        let off = DEVIATIONS * (p * (1.0 - p) / times.of as f64).sqrt();
        let value = at(p)?;
        let near = [at((p - off).max(0.0)), at((p + off).min(1.0))];
        let all = || near.into_iter().flatten().chain([value]);
        Some(Difference { low: all().min()?, value, high: all().max()? })
    };
    let known: Vec<i64> = moves.iter().copied().flatten().collect();
    let mean = (!known.is_empty()).then(|| {
        let sum: i128 = known.iter().map(|&by| i128::from(by)).sum();
        let value = -(sum / known.len() as i128) as i64;
        Difference { low: value, value, high: value }
    });
    MiddleLessAll {
        p50: quantile(0.50),
        p90: quantile(0.90),
        p95: quantile(0.95),
        p99: quantile(0.99),
        mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ns: impl IntoIterator<Item = u64>, failed: usize) -> Times {
        Times { ended: ns.into_iter().collect(), failed }
    }

    #[test]
    fn failures_are_later_than_all_others() {
        let mut all = times((1..=100).rev(), 0);
        let of = |times: Sorted<'_>| [0.50, 0.90, 0.95, 0.99, 1.0].map(|p| times.quantile(p));
        assert_eq!(of(all.sorted()), [50, 90, 95, 99, 100].map(Some));
        let mut some = times(1..=100, 2);
        assert_eq!(of(some.sorted()), [Some(51), Some(92), Some(97), None, None]);
        assert_eq!(of(times([], 3).sorted()), [None; 5]);
    }

    #[test]
    fn of_all_boards_together() {
        let mut of = times([10, 20, 30], 1);
        let moves = [Some(-5), Some(0), Some(100), None];
        // Of 16: 5, 10, 15, 20, 25, 30, 110, 120, 130 and seven failures.
        let mut all: Vec<_> =
            [-5, 0, 100].iter().flat_map(|by| [10, 20, 30].map(|ns| Some(ns + by))).collect();
        all.sort_unstable();
        all.resize(16, None);
        for (number, expected) in all.iter().enumerate() {
            let p = (number + 1) as f64 / 16.0;
            assert_eq!(of.sorted().quantile_of_moved(p, &moves), *expected, "{p}");
        }
    }

    #[test]
    fn where_boards_are_alike_there_is_no_difference() {
        let mut of = times((0..1_000).map(|at| at * at), 0);
        let less = middle_less_all(of.sorted(), Some(70), &[Some(70); 40]);
        let none = Some(Difference { low: 0, value: 0, high: 0 });
        let MiddleLessAll { p50, p90, p95, p99, mean } = less;
        assert_eq!([p50, p90, p95, p99, mean], [none; 5]);
    }

    #[test]
    fn a_tail_of_all_boards_is_that_of_the_slow_ones() {
        // A hundredth waits for a timer of 1 s; boards differ by up to 100 ms.
        let mut of = times((0..4_000).map(|at| if at % 100 == 99 { 1_000_000 } else { at }), 0);
        let boards: Vec<_> = (0..200).map(|board| Some(500 * board)).collect();
        let less = middle_less_all(of.sorted(), Some(50_000), &boards);
        let p99 = less.p99.unwrap();
        // Just below the jump those who wait are none, above it all are: either way the boards are.
        assert!(p99.low < -40_000 && p99.high > 10_000, "{p99:?}");
        assert!((-60_000..60_000).contains(&p99.low), "{p99:?}");
        assert!((-60_000..60_000).contains(&p99.high), "{p99:?}");
        assert_eq!(less.mean.unwrap().value, 250);
    }

    #[test]
    fn where_half_fail_nothing_is_known() {
        let less = middle_less_all(times(1..=3, 0).sorted(), None, &[Some(1); 40]);
        assert_eq!(less, MiddleLessAll::default());
        // Failures reach P99, but not the median.
        let mut of = times(1..=95, 5);
        let less = middle_less_all(of.sorted(), Some(50), &[Some(50); 40]);
        assert!(less.p99.is_none() && less.p50.is_some());
    }
}
