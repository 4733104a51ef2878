// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Observations and manifests that Python hands over.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warifu_model::{CASE_COLUMNS, Case, Kind, Metric, Stage};
use warifu_results::{CaseRows, Manifest, Row, Rows, WHOLE, write_part};

use crate::error::warifu_error;

/// Writes the observations of one case as a file of its own, atomically; its length and SHA-256.
#[pyfunction]
pub(crate) fn write_observations(
    py: Python<'_>,
    path: PathBuf,
    study_name: &str,
    case_json: &str,
    run_id: &str,
    rows: &Bound<'_, PyDict>,
) -> PyResult<(u64, String)> {
    let file = path.display().to_string();
    let case: Case = serde_json::from_str(case_json)
        .map_err(|error| warifu_error(format!("{file}: case is not one: {error}")))?;
    let (rows, kind) = Table { file: &file, rows }.read()?;
    let case = CaseRows { case_id: case.id(), columns: case.columns(), kind, rows };
    let sealed =
        py.detach(|| write_part(&path, study_name, run_id, &case)).map_err(warifu_error)?;
    Ok((sealed.bytes, sealed.sha256))
}

/// Writes `manifest.json` into a results folder, atomically, after checking it.
#[pyfunction]
pub(crate) fn write_manifest(py: Python<'_>, folder: PathBuf, manifest_json: &str) -> PyResult<()> {
    let name = folder.join("manifest.json").display().to_string();
    let manifest = Manifest::parse(manifest_json, &name).map_err(warifu_error)?;
    py.detach(|| manifest.write(&folder)).map_err(warifu_error)
}

/// The names of an observation's columns, in their order.
#[pyfunction]
pub(crate) fn columns() -> Vec<String> {
    warifu_results::columns(CASE_COLUMNS).into_iter().map(|column| column.name).collect()
}

/// Columns of Python lists.
struct Table<'a, 'py> {
    file: &'a str,
    rows: &'a Bound<'py, PyDict>,
}

impl Table<'_, '_> {
    /// All rows, and the weakest of their kinds.
    fn read(&self) -> PyResult<(Rows, Kind)> {
        let connection: Vec<u32> = self.column("connection")?;
        let trial: Vec<u64> = self.column("trial")?;
        let metric: Vec<String> = self.column("metric")?;
        let stage: Vec<String> = self.column("stage")?;
        let value: Vec<f64> = self.column("value")?;
        let unit: Vec<String> = self.column("unit")?;
        let weight: Vec<f64> = self.column("weight")?;
        let kind: Vec<String> = self.column("kind")?;
        let seed: Vec<u64> = self.column("seed")?;
        let count = value.len();
        let lengths = [connection.len(), trial.len(), metric.len(), stage.len(), unit.len()];
        let more = [weight.len(), kind.len(), seed.len()];
        if lengths.iter().chain(&more).any(|&length| length != count) {
            return Err(self.error("rows have columns of different lengths: make them equal"));
        }
        let mut rows = Rows::with_capacity(count);
        for index in 0..count {
            let metric = self.word("metric", &metric[index], Metric::ALL, Metric::name)?;
            if unit[index] != metric.unit() {
                let (name, is, should) = (metric.name(), &unit[index], metric.unit());
                return Err(self.error(&format!("unit of {name} is {is:?}: expected {should:?}")));
            }
            let stage = match stage[index].as_str() {
                WHOLE => None,
                name => Some(self.word("stage", name, Stage::ALL, Stage::name)?),
            };
            let (connection, trial, seed) = (connection[index], trial[index], seed[index]);
            let (value, weight) = (value[index], weight[index]);
            rows.push(Row { connection, trial, metric, stage, value, weight, seed });
        }
        let kinds = kind.iter().map(|name| self.word("kind", name, KINDS, Kind::name));
        Ok((rows, Kind::weakest(kinds.collect::<PyResult<Vec<_>>>()?)))
    }

    fn column<T>(&self, name: &str) -> PyResult<Vec<T>>
    where
        for<'a, 'py> Vec<T>: FromPyObject<'a, 'py>,
    {
        match self.rows.get_item(name)? {
            Some(values) => values.extract().map_err(|_| {
                self.error(&format!("column {name} holds something else than it should"))
            }),
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
            .ok_or_else(|| self.error(&format!("{column} {word:?} is none of the known ones")))
    }

    fn error(&self, message: &str) -> PyErr {
        warifu_error(format!("{}: {message}", self.file))
    }
}

const KINDS: [Kind; 5] =
    [Kind::Measured, Kind::Emulated, Kind::Simulated, Kind::Published, Kind::Assumed];
