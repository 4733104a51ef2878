// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The registry of metrics as data.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warifu_model::{Definition, Keyword, Mark, Metric, Protocol};

use crate::error::warifu_error;

/// The metrics of a protocol's connections, or of all, in the order of tables: name, unit, whether
/// it is the whole time that stages divide, and between which marks a time is taken.
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
    let marks = match metric.definition() {
        Definition::Between(from, to) => Some((from, to)),
        Definition::Until(..) | Definition::Failed => None,
    };
    let item = PyDict::new(py);
    item.set_item("name", metric.name())?;
    item.set_item("unit", metric.unit())?;
    item.set_item("is_whole", metric.is_whole())?;
    item.set_item("from", marks.map(|(from, _): (Mark, Mark)| from.name()))?;
    item.set_item("to", marks.map(|(_, to)| to.name()))?;
    Ok(item)
}
