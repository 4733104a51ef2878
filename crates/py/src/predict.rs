// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Predictions: the simulator runs in a thread of its own, so that Python's thread can show
//! progress and hear Ctrl-C.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warifu_results::{FolderWriter, Manifest};
use warifu_runner::{Keep, Options, PredictError, Progress, Tier};

use crate::error::{results_error, warifu_error};
use crate::study::Study;

/// How often progress is shown and signals are heard.
const TICK: Duration = Duration::from_millis(100);

/// Simulates every case of a study into a results folder.
#[pyfunction]
#[pyo3(signature = (
    study, out_dir, manifest_json, threads=None, keep="distribution", progress=None, now=None,
    tier="events"
))]
#[allow(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
pub(crate) fn predict<'py>(
    py: Python<'py>,
    study: &Study,
    out_dir: PathBuf,
    manifest_json: &str,
    threads: Option<usize>,
    keep: &str,
    progress: Option<Py<PyAny>>,
    now: Option<Py<PyAny>>,
    tier: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let options =
        Options { threads: threads.unwrap_or(0), keep: keep_of(keep)?, tier: tier_of(tier)? };
    let manifest = Manifest::parse(manifest_json, "manifest").map_err(warifu_error)?;
    py.detach(|| warifu_runner::check(&study.study, &study.catalog, options.tier))
        .map_err(warifu_error)?;
    let mut writer = FolderWriter::create(&out_dir, manifest).map_err(results_error)?;

    let run = Run { study, options, cancel: AtomicBool::new(false), at: Mutex::default() };
    let total = study.study.cases.len();
    let tick = |py: Python<'_>, at: Progress| -> PyResult<()> {
        py.check_signals()?;
        if let Some(progress) = &progress {
            progress.call1(py, (at.done(), total, at.trials))?;
        }
        Ok(())
    };
    let (result, interrupted) = py.detach(|| run.go(&mut writer, &tick));

    let done = result.map_err(|error| match error {
        PredictError::Case(error) => warifu_error(error),
        PredictError::Results(error) => results_error(error),
    })?;
    let finished = match &now {
        Some(now) => Some(now.call0(py)?.extract::<String>(py)?),
        None => None,
    };
    let complete = done.complete && interrupted.is_none();
    let written = py.detach(|| writer.finish(complete, finished)).map_err(results_error)?;
    if let Some(error) = interrupted {
        return Err(error);
    }
    tick(py, done)?;
    let summary = PyDict::new(py);
    summary.set_item("cases", written.cases)?;
    summary.set_item("rows", written.rows)?;
    summary.set_item("trials", done.trials)?;
    summary.set_item("failed", done.failed)?;
    summary.set_item("exact", done.exact)?;
    summary.set_item("residual", done.residual)?;
    summary.set_item("complete", complete)?;
    Ok(summary)
}

fn keep_of(word: &str) -> PyResult<Keep> {
    match word {
        "distribution" => Ok(Keep::Distribution),
        "trials" => Ok(Keep::Trials),
        _ => {
            Err(warifu_error(format!("keep is {word:?}: expected \"distribution\" or \"trials\"")))
        }
    }
}

fn tier_of(word: &str) -> PyResult<Tier> {
    match word {
        "events" => Ok(Tier::Events),
        "exact" => Ok(Tier::Exact),
        "auto" => Ok(Tier::Auto),
        _ => Err(warifu_error(format!("tier is {word:?}: expected events, exact or auto"))),
    }
}

/// A prediction under way.
struct Run<'a> {
    study: &'a Study,
    options: Options,
    cancel: AtomicBool,
    /// How far it is; written by the simulator's thread, read at each tick.
    at: Mutex<Progress>,
}

impl Run<'_> {
    /// Runs to the end, or until a tick fails: Ctrl-C, or an error of the caller's own. That
    /// error comes back beside what was done until then.
    fn go(
        &self,
        writer: &mut FolderWriter,
        tick: &(impl Fn(Python<'_>, Progress) -> PyResult<()> + Sync),
    ) -> (Result<Progress, PredictError>, Option<PyErr>) {
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                // Nobody listens any more only if this thread is being unwound.
                let _ = sender.send(self.simulate(writer));
            });
            let mut interrupted = None;
            loop {
                match receiver.recv_timeout(TICK) {
                    Ok(result) => return (result, interrupted),
                    Err(RecvTimeoutError::Timeout) if interrupted.is_none() => {
                        interrupted = Python::attach(|py| tick(py, self.progress())).err();
                        if interrupted.is_some() {
                            self.cancel.store(true, Ordering::Relaxed);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    // The simulator's thread panicked; leaving the scope passes the panic on.
                    Err(RecvTimeoutError::Disconnected) => {
                        return (Ok(Progress::default()), interrupted);
                    }
                }
            }
        })
    }

    fn simulate(&self, writer: &mut FolderWriter) -> Result<Progress, PredictError> {
        let mut tell = |at| {
            if let Ok(mut shared) = self.at.lock() {
                *shared = at;
            }
        };
        let Study { study, catalog } = self.study;
        warifu_runner::predict(study, catalog, self.options, writer, &mut tell, &self.cancel)
    }

    fn progress(&self) -> Progress {
        self.at.lock().map(|at| *at).unwrap_or_default()
    }
}
