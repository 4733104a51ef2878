// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a case takes on each of the boards that its device may be.
//!
//! The connection at the median is simulated once more on every board, with the rest of its luck
//! as it was. So the difference of two cases on a board is what the choice between them makes
//! there, and no luck of the link is in it. What luck adds is that of trials of the board in the
//! middle of all bands.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use warifu_model::{Case, Catalog, Definition, Metric, Scope, Study};
use warifu_results::{BOARDS_VERSION, Boards, BoardsOfCase, BoardsOfMetric, Statistics};
use warifu_sim::{CaseModel, Outcome, Simulator, TrialSeeds};

use crate::batch::MANY_CASES;
use crate::timelines::Pick;

/// Boards of a study: 95 % of them leave out five at each end.
const BOARDS: usize = 200;
/// Of a study of many cases, so that results of a sweep stay small.
const BOARDS_OF_MANY: usize = 40;
/// Trials of the board in the middle, at most: its P99 is the tenth from the end.
const MIDDLE_TRIALS: u64 = 1_000;
/// Of a study of many cases.
const MIDDLE_TRIALS_OF_MANY: u64 = 200;
/// How often it is told how far this is.
const TOLD_EVERY: Duration = Duration::from_millis(50);

/// The cases whose devices have figures with bands, each with its typical connection; those
/// without one failed throughout. `None` if the run ended meanwhile. `tell` hears now and then how
/// many are done.
///
/// # Errors
/// When a case cannot be compiled, which it was before.
pub(crate) fn boards(
    study: &Study,
    catalog: &Catalog,
    typical: &[(usize, Pick)],
    threads: usize,
    tell: &mut dyn FnMut(u64),
    cancel: &AtomicBool,
) -> Result<Option<Boards>, warifu_model::Error> {
    let many = study.cases.len() > MANY_CASES;
    let count = if many { BOARDS_OF_MANY } else { BOARDS };
    let most = if many { MIDDLE_TRIALS_OF_MANY } else { MIDDLE_TRIALS };
    let trials = u64::from(study.predict_trials).min(most);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut simulator = Simulator::new();
        let mut found = Vec::new();
        while !cancel.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(case, pick)) = typical.get(number) else { break };
            let case = &study.cases[case];
            let model = CaseModel::compile(case, catalog)?;
            if let Some(boards) = warifu_sim::Boards::of(&model, count) {
                let mut of = OfCase::new(case, many);
                of.run(&mut simulator, &model, &boards, pick);
                let seeds = TrialSeeds::new(study.seed, &case.seed_id());
                of.run_middle(&mut simulator, &model, &boards, (seeds, trials));
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
    /// By metric, board by board; `None` where the connection failed.
    on_boards: Vec<Vec<Option<u64>>>,
    /// By metric, the typical connection of the board in the middle.
    typical: Vec<Option<u64>>,
    /// By metric, the connections of the board in the middle that did not fail.
    middle: Vec<Vec<u64>>,
    /// All connections of the board in the middle.
    connections: usize,
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
        let (on_boards, middle) =
            (vec![Vec::new(); metrics.len()], vec![Vec::new(); metrics.len()]);
        let (typical, case_id) = (Vec::new(), case.id().0);
        OfCase { case_id, metrics, on_boards, typical, middle, connections: 0 }
    }

    /// The typical connection on every board, and on the one in the middle.
    fn run(
        &mut self,
        simulator: &mut Simulator,
        model: &CaseModel,
        boards: &warifu_sim::Boards,
        pick: Pick,
    ) {
        let mut outcome = Outcome::default();
        for board in 0..=boards.len() {
            simulator.run_on(model, (boards, board), pick.seed, &mut outcome);
            let of = outcome.connections.get(pick.connection as usize).filter(|of| !of.failed);
            for (times, &metric) in self.on_boards.iter_mut().zip(&self.metrics) {
                times.push(of.map(|of| of.value(metric)));
            }
            if board == boards.len() {
                let last = self.on_boards.iter_mut().map(|times| times.pop().flatten());
                self.typical = last.collect();
            }
        }
    }

    /// So many trials on the board in the middle.
    fn run_middle(
        &mut self,
        simulator: &mut Simulator,
        model: &CaseModel,
        boards: &warifu_sim::Boards,
        (seeds, trials): (TrialSeeds, u64),
    ) {
        let mut outcome = Outcome::default();
        for trial in 0..trials {
            simulator.run_on(model, (boards, boards.len()), seeds.of(trial), &mut outcome);
            self.connections += outcome.connections.len();
            for of in outcome.connections.iter().filter(|of| !of.failed) {
                for (times, &metric) in self.middle.iter_mut().zip(&self.metrics) {
                    times.push(of.value(metric));
                }
            }
        }
    }

    fn finish(self) -> BoardsOfCase {
        let each = self.metrics.iter().zip(self.on_boards).zip(self.typical).zip(self.middle);
        let metrics = each.map(|(((metric, on_boards_ns), typical), mut middle)| BoardsOfMetric {
            metric: metric.name().to_owned(),
            on_boards_ns,
            middle_ns: Statistics { typical, ..statistics(&mut middle, self.connections) },
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
