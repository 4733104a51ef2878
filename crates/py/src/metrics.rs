// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The registry of metrics as data.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warifu_model::{Definition, Keyword, Metric, Protocol, Scope};

use crate::error::warifu_error;

/// The metrics of a protocol's connections, or of all, in the order of tables: name, unit, whether
/// it is the whole time that stages divide or a phase of it, whether it says what failed, and
/// whether there is one value for a scenario of several connections.
#[pyfunction]
#[pyo3(signature = (protocol = None))]
pub(crate) fn metrics<'py>(
    py: Python<'py>,
    protocol: Option<&str>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let protocol = protocol.map(Protocol::from_word).transpose().map_err(|expected| {
        warifu_error(format!("protocol is {:?}: {expected}", protocol.unwrap_or_default()))
    })?;
    let wanted = |metric: &&Metric| protocol.is_none_or(|one| one.has(metric.layer()));
    Metric::ALL.iter().filter(wanted).map(|&metric| view(py, metric)).collect()
}

fn view(py: Python<'_>, metric: Metric) -> PyResult<Bound<'_, PyDict>> {
    let item = PyDict::new(py);
    item.set_item("name", metric.name())?;
    item.set_item("unit", metric.unit())?;
    item.set_item("is_whole", metric.is_whole())?;
    item.set_item("is_phase", metric.is_phase())?;
    item.set_item("is_failure", metric.definition() == Definition::Failed)?;
    item.set_item("of_scenario", metric.scope() == Scope::Scenario)?;
    Ok(item)
}
