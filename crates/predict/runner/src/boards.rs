// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a case takes on each of the boards that its device may be.
//!
//! The same few trials are simulated on every board, and their median is taken: the luck of the
//! link is the same on all boards, and no single trial's, in which computing may hide behind what
//! else takes time. So the difference of two cases on a board is what the choice between them makes
//! there. What luck adds to a median is that of more trials of the board in the middle of all
//! bands.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use warifu_model::{Case, Catalog, Definition, Metric, Scope, Study};
use warifu_results::{BOARDS_VERSION, Boards, BoardsOfCase, BoardsOfMetric, Statistics};
use warifu_sim::{CaseModel, Outcome, Simulator, TrialSeeds};

use crate::batch::MANY_CASES;

/// Boards of a study: 95 % of them leave out five at each end.
const BOARDS: usize = 200;
/// Of a study of many cases, so that results of a sweep stay small.
const BOARDS_OF_MANY: usize = 40;
/// Trials on every board, whose median is taken: an odd number.
const TRIALS: u64 = 25;
/// Of a study of many cases.
const TRIALS_OF_MANY: u64 = 5;
/// Trials of the board in the middle, at most: its P99 is the fortieth from the end.
const MIDDLE_TRIALS: u64 = 4_000;
/// Of a study of many cases.
const MIDDLE_TRIALS_OF_MANY: u64 = 200;
/// How often it is told how far this is.
const TOLD_EVERY: Duration = Duration::from_millis(50);

/// The cases of these numbers, whose devices have figures with bands, on every board. `None` if the
/// run ended meanwhile. `tell` hears now and then how many are done.
///
/// # Errors
/// When a case cannot be compiled, which it was before.
pub(crate) fn boards(
    study: &Study,
    catalog: &Catalog,
    cases: &[usize],
    threads: usize,
    tell: &mut dyn FnMut(u64),
    cancel: &AtomicBool,
) -> Result<Option<Boards>, warifu_model::Error> {
    let many = study.cases.len() > MANY_CASES;
    let count = if many { BOARDS_OF_MANY } else { BOARDS };
    let most = if many { MIDDLE_TRIALS_OF_MANY } else { MIDDLE_TRIALS };
    let trials = [if many { TRIALS_OF_MANY } else { TRIALS }, most];
    let [on_each, of_middle] = trials.map(|most| u64::from(study.predict_trials).min(most));
    // No more on all boards together than the case has trials, but one on each.
    let on_each = on_each.min(u64::from(study.predict_trials) / count as u64).max(1);
    let trials = [on_each, of_middle];
    if cases.is_empty() {
        return Ok(Some(Boards {
            version: BOARDS_VERSION,
            boards: count as u32,
            cases: Vec::new(),
        }));
    }
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut simulator = Simulator::new();
        let mut found = Vec::new();
        while !cancel.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(&case) = cases.get(number) else { break };
            let case = &study.cases[case];
            let model = CaseModel::compile(case, catalog)?;
            if let Some(boards) = warifu_sim::Boards::of(&model, count) {
                let mut of = OfCase::new(case, many);
                let seeds = TrialSeeds::new(study.seed, &case.seed_id());
                of.run(&mut simulator, (&model, &boards), (seeds, trials), cancel);
                found.push((number, of.finish()));
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(found)
    };
    let mut found = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(TOLD_EVERY);
            tell(done.load(Ordering::Relaxed) as u64);
        }
        let mut all = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(found) => all.extend(found?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<_, warifu_model::Error>(all)
    })?;
    if cancel.load(Ordering::Relaxed) {
        return Ok(None);
    }
    found.sort_unstable_by_key(|(number, _)| *number);
    let cases = found.into_iter().map(|(_, case)| case).collect();
    Ok(Some(Boards { version: BOARDS_VERSION, boards: count as u32, cases }))
}

/// A case while it is run.
struct OfCase {
    case_id: String,
    metrics: Vec<Metric>,
    /// By metric, board by board.
    on_boards: Vec<Vec<Option<u64>>>,
    /// By metric, of the board in the middle.
    middle: Vec<Statistics>,
}

impl OfCase {
    /// The metrics are all times of connections; of a study of many cases the one with stages.
    fn new(case: &Case, many: bool) -> OfCase {
        let whole = Metric::with_stages(&case.stack);
        let wanted = |metric: &&Metric| {
            let is_time = matches!(metric.definition(), Definition::Between(..));
            let of_connection = metric.scope() == Scope::Connection && metric.applies_to(case);
            is_time && of_connection && (!many || Some(**metric) == whole)
        };
        let metrics: Vec<Metric> = Metric::ALL.iter().filter(wanted).copied().collect();
        let on_boards = vec![Vec::new(); metrics.len()];
        OfCase { case_id: case.id().0, metrics, on_boards, middle: Vec::new() }
    }

    /// So many trials on every board, and so many on the one in the middle, which is beyond the
    /// last.
    fn run(
        &mut self,
        simulator: &mut Simulator,
        (model, boards): (&CaseModel, &warifu_sim::Boards),
        (seeds, [trials, of_middle]): (TrialSeeds, [u64; 2]),
        cancel: &AtomicBool,
    ) {
        let mut outcome = Outcome::default();
        let mut times = vec![Vec::new(); self.metrics.len()];
        for board in 0..=boards.len() {
            let middle = board == boards.len();
            let mut connections = 0;
            times.iter_mut().for_each(Vec::clear);
            let mut typical = Vec::new();
            for trial in 0..if middle { of_middle.max(trials) } else { trials } {
                if cancel.load(Ordering::Relaxed) {
                    // Nothing of it is kept.
                    return;
                }
                simulator.run_on(model, (boards, board), seeds.of(trial), &mut outcome);
                connections += outcome.connections.len();
                for of in outcome.connections.iter().filter(|of| !of.failed) {
                    for (times, &metric) in times.iter_mut().zip(&self.metrics) {
                        times.push(of.value(metric));
                    }
                }
                if trial + 1 == trials {
                    let median = |times: &Vec<u64>| statistics(&mut times.clone(), connections).p50;
                    typical = times.iter().map(median).collect();
                }
            }
            if middle {
                let of = |(times, typical): (&mut Vec<u64>, Option<u64>)| Statistics {
                    typical,
                    ..statistics(times, connections)
                };
                self.middle = times.iter_mut().zip(typical).map(of).collect();
            } else {
                for (on_boards, median) in self.on_boards.iter_mut().zip(typical) {
                    on_boards.push(median);
                }
            }
        }
    }

    fn finish(self) -> BoardsOfCase {
        let each = self.metrics.iter().zip(self.on_boards).zip(self.middle);
        let metrics = each.map(|((metric, on_boards_ns), middle_ns)| BoardsOfMetric {
            metric: metric.name().to_owned(),
            on_boards_ns,
            middle_ns,
        });
        BoardsOfCase { case_id: self.case_id, metrics: metrics.collect() }
    }
}

/// The statistics of `of` connections of which these did not fail; a failure is later than all
/// others, and in no mean.
fn statistics(times: &mut [u64], of: usize) -> Statistics {
    times.sort_unstable();
    let quantile = |p: f64| {
        // As the stored percentiles: crates/core/results/src/distribution.rs.
        let rank = (p * of as f64 * (1.0 - 1e-12)).ceil().max(1.0) as usize;
        times.get(rank - 1).copied()
    };
    let sum: u128 = times.iter().map(|&ns| u128::from(ns)).sum();
    Statistics {
        typical: None,
        p50: quantile(0.50),
        p90: quantile(0.90),
        p95: quantile(0.95),
        p99: quantile(0.99),
        max: quantile(1.0),
        mean: (!times.is_empty()).then(|| (sum / times.len() as u128) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_later_than_all_others() {
        let of = |times: &mut [u64], connections| {
            let Statistics { p50, p90, p95, p99, max, mean, .. } = statistics(times, connections);
            [p50, p90, p95, p99, max, mean]
        };
        let mut times: Vec<u64> = (1..=100).rev().collect();
        let all = of(&mut times, 100);
        assert_eq!(all, [50, 90, 95, 99, 100, 50].map(Some));
        let some = of(&mut times, 102);
        assert_eq!(some, [Some(51), Some(92), Some(97), None, None, Some(50)]);
        assert_eq!(of(&mut [], 3), [None; 6]);
    }
}
