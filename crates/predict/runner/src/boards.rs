// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a typical connection of a case takes on each of the boards that its device may be.
//!
//! The connection at the median is simulated once more on every board, with the rest of its luck
//! as it was. So the difference of two cases on a board is what the choice between them makes
//! there, and no luck of the link is in it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use warifu_model::{Catalog, Metric, Study};
use warifu_results::{BOARDS_VERSION, Boards, BoardsOfCase};
use warifu_sim::{CaseModel, Outcome, Simulator};

use crate::batch::MANY_CASES;
use crate::timelines::Pick;

/// Boards of a study: 95 % of them leave out five at each end.
const BOARDS: usize = 200;
/// Of a study of many cases, so that results of a sweep stay small.
const BOARDS_OF_MANY: usize = 40;

/// The cases whose devices have figures with bands, each with its typical connection; those
/// without one failed throughout. `None` if the run ended meanwhile.
///
/// # Errors
/// When a case cannot be compiled, which it was before.
pub(crate) fn boards(
    study: &Study,
    catalog: &Catalog,
    typical: &[(usize, Pick)],
    threads: usize,
    cancel: &AtomicBool,
) -> Result<Option<Boards>, warifu_model::Error> {
    let count = if study.cases.len() > MANY_CASES { BOARDS_OF_MANY } else { BOARDS };
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut simulator, mut outcome) = (Simulator::new(), Outcome::default());
        let mut found = Vec::new();
        while !cancel.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(case, pick)) = typical.get(number) else { break };
            let case = &study.cases[case];
            let model = CaseModel::compile(case, catalog)?;
            let Some(boards) = warifu_sim::Boards::of(&model, count) else { continue };
            let Some(metric) = Metric::with_stages(&case.stack) else { continue };
            let mut on = |board| {
                simulator.run_on(&model, (&boards, board), pick.seed, &mut outcome);
                let of = outcome.connections.get(pick.connection as usize)?;
                (!of.failed).then(|| of.value(metric))
            };
            let total_ns = (0..count).map(&mut on).collect();
            let metric = metric.name().to_owned();
            found.push((number, BoardsOfCase { case_id: case.id().0, metric, total_ns }));
        }
        Ok(found)
    };
    let mut found = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
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
