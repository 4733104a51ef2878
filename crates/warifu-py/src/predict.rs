// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running a study's simulations.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use warifu_results::{FolderWriter, Manifest};
use warifu_sim::{Keep, Options, Progress};

use crate::error::warifu_error;
use crate::study::Study;

/// Time between two looks at signals and two calls of `progress`.
const TICK: Duration = Duration::from_millis(100);

/// Simulates every case of a study into a results folder.
#[pyfunction]
#[pyo3(signature = (study, out_dir, manifest_json, threads=None, keep="distribution", progress=None, now=None))]
#[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
pub(crate) fn predict<'py>(
    py: Python<'py>,
    study: &Study,
    out_dir: PathBuf,
    manifest_json: &str,
    threads: Option<usize>,
    keep: &str,
    progress: Option<Py<PyAny>>,
    now: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let keep = match keep {
        "distribution" => Keep::Distribution,
        "trials" => Keep::Trials,
        other => {
            return Err(PyValueError::new_err(format!(
                "keep is {other:?}: expected \"distribution\" or \"trials\""
            )));
        }
    };
    let name = out_dir.join("manifest.json").display().to_string();
    let manifest = Manifest::parse(manifest_json, &name).map_err(warifu_error)?;
    let options = Options { threads: threads.unwrap_or(0), keep };
    let cancel = Arc::new(AtomicBool::new(false));
    let mut writer = FolderWriter::create(&out_dir, manifest).map_err(warifu_error)?;
    let cases = study.study.cases.len();
    let (done, interrupted) = py.detach(|| {
        let mut watch = Watch { cancel: &cancel, progress, cases, last: None, raised: None };
        let (study, catalog) = (&study.study, &study.catalog);
        let mut tell = |progress: Progress| watch.tell(progress);
        let done = warifu_sim::predict(study, catalog, options, &mut writer, &mut tell, &cancel);
        (done, watch.raised)
    });
    let done = done.map_err(warifu_error)?;
    let finished = now.map(|now| now.call0(py)?.extract::<String>(py)).transpose()?;
    let written = py.detach(|| writer.finish(done.complete, finished)).map_err(warifu_error)?;
    if let Some(raised) = interrupted {
        return Err(raised);
    }
    let summary = PyDict::new(py);
    let counts = [
        ("cases", done.cases),
        ("trials", done.trials),
        ("failed", done.failed),
        ("rows", written.rows as u64),
    ];
    summary.update(counts.into_py_dict(py)?.as_mapping())?;
    summary.set_item("complete", done.complete)?;
    Ok(summary)
}

/// Looks at Python's signals now and then, and tells how far the run is.
struct Watch<'a> {
    cancel: &'a AtomicBool,
    progress: Option<Py<PyAny>>,
    cases: usize,
    last: Option<std::time::Instant>,
    raised: Option<PyErr>,
}

impl Watch<'_> {
    fn tell(&mut self, progress: Progress) {
        let last = progress.cases as usize == self.cases;
        if self.last.is_some_and(|last| last.elapsed() < TICK) && !last {
            return;
        }
        self.last = Some(std::time::Instant::now());
        let told = Python::attach(|py| {
            py.check_signals()?;
            match &self.progress {
                None => Ok(()),
                Some(call) => {
                    call.call1(py, (progress.cases, self.cases, progress.trials)).map(drop)
                }
            }
        });
        if let Err(error) = told {
            self.raised.get_or_insert(error);
            self.cancel.store(true, Ordering::Relaxed);
        }
    }
}
