// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Observations and manifests that Python hands over.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warifu_model::{Case, Evidence, Keyword, Metric, Stage, emulation_inputs};
use warifu_results::{
    CaseRows, Half, Manifest, Row, Rows, RunFacts, Weights, replace_folder, write_part,
};

use crate::error::{results_error, warifu_error};
use crate::study::Study;

/// Writes the observations of one case as a file of its own, atomically; its length and SHA-256.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
pub(crate) fn write_observations(
    py: Python<'_>,
    path: PathBuf,
    study_name: &str,
    case_json: &str,
    run_id: &str,
    method: &str,
    evidence: &str,
    rows: &Bound<'_, PyDict>,
) -> PyResult<(u64, String)> {
    let file = path.display().to_string();
    let case = Case::from_canonical(case_json)
        .map_err(|message| warifu_error(format!("{file}: case {message}")))?;
    let table = Table { file: &file, rows };
    let case = CaseRows {
        case_id: case.id(),
        columns: case.columns(),
        method: table.keyword("method", method)?,
        evidence: table.keyword("evidence", evidence)?,
        weights: Weights::Trials,
        rows: table.read()?,
    };
    let sealed =
        py.detach(|| write_part(&path, study_name, run_id, &case)).map_err(results_error)?;
    Ok((sealed.bytes, sealed.sha256))
}

/// Writes `manifest.json` into a results folder, atomically, after checking it.
#[pyfunction]
pub(crate) fn write_manifest(py: Python<'_>, folder: PathBuf, manifest_json: &str) -> PyResult<()> {
    let name = folder.join("manifest.json").display().to_string();
    let manifest = Manifest::parse(manifest_json, &name).map_err(warifu_error)?;
    py.detach(|| manifest.write(&folder)).map_err(results_error)
}

/// The manifest of a run of a study that is about to begin, JSON; `facts_json` is what the caller
/// knows of it (`warifu_results::RunFacts`).
#[pyfunction]
pub(crate) fn begin_manifest(study: &Study, facts_json: &str) -> PyResult<String> {
    let facts: RunFacts = serde_json::from_str(facts_json)
        .map_err(|error| warifu_error(format!("manifest: facts of the run: {error}")))?;
    let half = facts.half;
    let manifest = Manifest::begin(facts, &study.study, |case| {
        let inputs = match half {
            Half::Predicted => warifu_sim::inputs(case, &study.catalog)
                .and_then(|inputs| Ok((inputs, warifu_sim::cost_uses(case, &study.catalog)?))),
            _ => emulation_inputs(case, &study.catalog).map(|inputs| (inputs, Vec::new())),
        };
        inputs.map_err(|error| error.in_file(&study.study.file))
    });
    Ok(manifest.map_err(warifu_error)?.to_text())
}

/// A manifest as the current version has it, JSON, whichever version wrote it; `file` is the name
/// for errors.
#[pyfunction]
pub(crate) fn read_manifest(text: &str, file: &str) -> PyResult<String> {
    Ok(Manifest::parse(text, file).map_err(warifu_error)?.to_text())
}

/// Puts a results folder that is whole in the place of another.
#[pyfunction]
pub(crate) fn replace_results(py: Python<'_>, whole: PathBuf, folder: PathBuf) -> PyResult<()> {
    py.detach(|| replace_folder(&whole, &folder)).map_err(results_error)
}

/// The weakest of the given evidence; `assumed` for none.
#[pyfunction]
pub(crate) fn weakest_evidence(evidence: Vec<String>) -> PyResult<&'static str> {
    let all: Result<Vec<Evidence>, _> =
        evidence.iter().map(|word| Evidence::from_word(word)).collect();
    let all =
        all.map_err(|expected| warifu_error(format!("evidence is {evidence:?}: {expected}")))?;
    Ok(Evidence::weakest(all).name())
}

/// Columns of Python lists.
struct Table<'a, 'py> {
    file: &'a str,
    rows: &'a Bound<'py, PyDict>,
}

impl Table<'_, '_> {
    fn read(&self) -> PyResult<Rows> {
        let connection: Vec<u32> = self.column("connection")?;
        let trial: Vec<u64> = self.column("trial")?;
        let metric: Vec<String> = self.column("metric")?;
        let stage: Vec<Option<String>> = self.column("stage")?;
        let value: Vec<f64> = self.column("value")?;
        let unit: Vec<String> = self.column("unit")?;
        let weight: Vec<f64> = self.column("weight")?;
        let seed: Vec<u64> = self.column("seed")?;
        let count = value.len();
        let lengths = [connection.len(), trial.len(), metric.len(), stage.len(), unit.len()];
        let more = [weight.len(), seed.len()];
        if lengths.iter().chain(&more).any(|&length| length != count) {
            return Err(self.error("rows have columns of different lengths: make them equal"));
        }
        let mut rows = Rows::with_capacity(count);
        for index in 0..count {
            let metric =
                self.word("metric", &metric[index], Metric::ALL.iter().copied(), Metric::name)?;
            if unit[index] != metric.unit() {
                let (name, is, should) = (metric.name(), &unit[index], metric.unit());
                return Err(self.error(&format!("unit of {name} is {is:?}: expected {should:?}")));
            }
            let stage = match stage[index].as_deref() {
                None => None,
                Some(name) => Some(self.word("stage", name, Stage::ALL, Stage::name)?),
            };
            let (connection, trial, seed) = (connection[index], trial[index], seed[index]);
            let (value, weight) = (value[index], weight[index]);
            rows.push(Row { connection, trial, metric, stage, value, weight, seed });
        }
        Ok(rows)
    }

    fn keyword<T: Keyword>(&self, key: &str, word: &str) -> PyResult<T> {
        T::from_word(word).map_err(|expected| self.error(&format!("{key} is {word:?}: {expected}")))
    }

    fn column<T>(&self, name: &str) -> PyResult<Vec<T>>
    where
        for<'a, 'py> Vec<T>: FromPyObject<'a, 'py>,
    {
        match self.rows.get_item(name)? {
            Some(values) => values
                .extract()
                .map_err(|_| self.error(&format!("column {name} has values of the wrong type"))),
            None => Err(self.error(&format!("rows lack the column {name}"))),
        }
    }

    /// The one of `all` with this name.
    fn word<T: Copy>(
        &self,
        column: &str,
        word: &str,
        all: impl IntoIterator<Item = T>,
        name: impl Fn(T) -> &'static str,
    ) -> PyResult<T> {
        all.into_iter()
            .find(|&item| name(item) == word)
            .ok_or_else(|| self.error(&format!("{column} is {word:?}: expected a known {column}")))
    }

    fn error(&self, message: &str) -> PyErr {
        warifu_error(format!("{}: {message}", self.file))
    }
}
