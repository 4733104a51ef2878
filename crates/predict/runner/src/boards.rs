// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a case takes on each of the boards that its device may be.
//!
//! The same few trials are simulated on every board, and on the one in the middle of all bands.
//! What each takes longer on the board than in the middle, without the quarters that gain and lose
//! most, is what the board takes: the luck of the link is the same on both, and no single trial's,
//! in which computing may hide behind what else takes time. So the difference of two cases on a
//! board is what the choice between them makes there. How a board's statistics differ from those of
//! all boards together, which the study's own trials are of, is found from more trials of the
//! middle.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use warifu_model::{Case, Catalog, Definition, Metric, Scope, Study};
use warifu_results::{BOARDS_VERSION, Boards, BoardsOfCase, BoardsOfMetric};
use warifu_sim::{CaseModel, Outcome, Simulator, TrialSeeds};

use crate::batch::MANY_CASES;
use crate::middle::{Times, middle_less_all};

/// Boards of a study: 95 % of them leave out two at each end.
const BOARDS: usize = 100;
/// Of a study of many cases, so that results of a sweep stay small.
const BOARDS_OF_MANY: usize = 40;
/// Trials on every board. Over NB-IoT, where computing hides in the jitter, the end of a range is
/// then off by some 6 % (25 trials: 12 %).
const TRIALS: u64 = 51;
/// Of a study of many cases.
const TRIALS_OF_MANY: u64 = 5;
/// Trials of the board in the middle, at most: its P99 is the fortieth from the end.
const MIDDLE_TRIALS: u64 = 4_000;
/// Of a study of many cases a fifth of the case's trials, but not fewer than these and not more.
const MIDDLE_TRIALS_OF_MANY: [u64; 2] = [400, 1_000];
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
    let trials = Trials::of(study, count);
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
                let seeds = TrialSeeds::new(study.seed, &case.seed_id());
                let of = OfCase { metrics: wanted(case, study), seeds, trials, cancel };
                let metrics = of.run(&mut simulator, &model, &boards);
                found.push((number, BoardsOfCase { case_id: case.id().0, metrics }));
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

/// How many trials are run of a case.
#[derive(Clone, Copy)]
struct Trials {
    /// On every board.
    on_each: u64,
    /// On the one in the middle.
    of_middle: u64,
}

impl Trials {
    /// On all boards together no more than the case has, but one on each.
    fn of(study: &Study, boards: usize) -> Trials {
        let of_case = u64::from(study.predict_trials);
        let (on_each, of_middle) = if study.cases.len() > MANY_CASES {
            let [least, most] = MIDDLE_TRIALS_OF_MANY;
            (TRIALS_OF_MANY, (of_case / 5).clamp(least, most))
        } else {
            (TRIALS, MIDDLE_TRIALS)
        };
        let on_each = on_each.min(of_case / boards as u64).max(1);
        Trials { on_each, of_middle: of_middle.min(of_case).max(on_each) }
    }
}

/// All times of a case; of a study of many cases the one with stages and those that are required.
/// Where several connections wait for one core, a board that computes longer does not move the
/// parts of each by the same, so that only their whole times are compared.
fn wanted(case: &Case, study: &Study) -> Vec<Metric> {
    let many = study.cases.len() > MANY_CASES;
    let whole = Metric::with_stages(&case.stack);
    let is_wanted = |metric: &&Metric| {
        let is_time = matches!(metric.definition(), Definition::Between(..));
        let is_named = || study.require.iter().any(|one| one.metric == **metric);
        let is_whole = Some(**metric) == whole || metric.scope() == Scope::Scenario;
        let is_comparable = is_time && (is_whole || case.pattern.concurrent < 2);
        let is_told = !many || Some(**metric) == whole || is_named();
        is_comparable && is_told && metric.applies_to(case)
    };
    Metric::ALL.iter().filter(is_wanted).copied().collect()
}

/// A case while it is run.
struct OfCase<'a> {
    metrics: Vec<Metric>,
    seeds: TrialSeeds,
    trials: Trials,
    cancel: &'a AtomicBool,
}

impl OfCase<'_> {
    /// Runs every board, and the one in the middle, which is beyond the last. What a run that is
    /// cancelled gives is kept by nobody.
    fn run(
        &self,
        simulator: &mut Simulator,
        model: &CaseModel,
        boards: &warifu_sim::Boards,
    ) -> Vec<BoardsOfMetric> {
        let mut on_boards = vec![Vec::with_capacity(boards.len()); self.metrics.len()];
        let mut middle = vec![Times::default(); self.metrics.len()];
        let mut times = middle.clone();
        let few = 0..self.trials.on_each;
        self.add(simulator, (model, boards, boards.len()), few.clone(), &mut middle);
        for board in 0..boards.len() {
            times.iter_mut().for_each(Times::clear);
            self.add(simulator, (model, boards, board), few.clone(), &mut times);
            for (on_boards, (times, middle)) in on_boards.iter_mut().zip(times.iter().zip(&middle))
            {
                on_boards.push(times.longer_than(middle));
            }
        }
        let rest = self.trials.on_each..self.trials.of_middle;
        self.add(simulator, (model, boards, boards.len()), rest, &mut middle);
        let each = self.metrics.iter().zip(on_boards).zip(&middle);
        each.map(|((metric, off_middle_ns), middle)| {
            let a_trial = middle.len() / self.trials.of_middle as usize;
            BoardsOfMetric {
                metric: metric.name().to_owned(),
                middle_less_all_ns: middle_less_all(middle, &off_middle_ns, a_trial),
                off_middle_ns,
            }
        })
        .collect()
    }

    /// Adds some trials on a board to each metric's times.
    fn add(
        &self,
        simulator: &mut Simulator,
        (model, boards, board): (&CaseModel, &warifu_sim::Boards, usize),
        trials: std::ops::Range<u64>,
        times: &mut [Times],
    ) {
        let mut outcome = Outcome::default();
        for trial in trials {
            if self.cancel.load(Ordering::Relaxed) {
                return;
            }
            simulator.run_on(model, (boards, board), self.seeds.of(trial), &mut outcome);
            for (times, &metric) in times.iter_mut().zip(&self.metrics) {
                if metric.scope() == Scope::Scenario {
                    times.add(outcome.value(metric));
                } else {
                    for of in &outcome.connections {
                        times.add((!of.failed).then(|| of.value(metric)));
                    }
                }
            }
        }
    }
}
