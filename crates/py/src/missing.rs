// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What profiles have costs for, what those of a study's ends have none for, and what each step of
//! a case costs by them, as data.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warifu_model::{
    CostSource, DeviceProfile, Keyword, LoweredPart, Primitive, Role, Session, TlsVersion,
};
use warifu_sim::{OperationCost, StepCost};

use crate::error::WarifuError;
use crate::study::{Study, case};

/// The operations of a case that the device's profile and the server's have no cost for.
#[pyfunction]
pub(crate) fn missing_operations(
    study: &Study,
    index: usize,
) -> PyResult<(Vec<String>, Vec<String>)> {
    let case = case(&study.study, index)?;
    let names = |role| {
        let missing = warifu_sim::missing_operations(case, &study.catalog, role);
        missing.iter().map(ToString::to_string).collect()
    };
    Ok((names(Role::Client), names(Role::Server)))
}

/// What each step of a case's programs costs.
#[pyfunction]
pub(crate) fn step_costs<'py>(
    py: Python<'py>,
    study: &Study,
    index: usize,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let costs = warifu_sim::step_costs(case(&study.study, index)?, &study.catalog);
    let rows = costs.map_err(|error| WarifuError::new_err(error.to_string()))?;
    let dict = |row: &StepCost| {
        let dict = PyDict::new(py);
        dict.set_item("operation", row.operation.to_string())?;
        dict.set_item("bytes", row.bytes)?;
        let [own, own_cold] = row.own.map(|ns| ns.0);
        dict.set_item("own_ns", own)?;
        dict.set_item("own_cold_ns", own_cold)?;
        let [cipher, cipher_cold] = row.cipher.map(|ns| ns.0);
        dict.set_item("cipher_ns", cipher)?;
        dict.set_item("cipher_cold_ns", cipher_cold)?;
        dict.set_item("primitive", row.primitive.as_deref())?;
        Ok(dict)
    };
    rows.iter().map(dict).collect()
}

/// What each operation of a case costs, and by what.
#[pyfunction]
pub(crate) fn operation_costs<'py>(
    py: Python<'py>,
    study: &Study,
    index: usize,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let rows = warifu_sim::operation_costs(case(&study.study, index)?, &study.catalog);
    let rows = rows.map_err(|error| WarifuError::new_err(error.to_string()))?;
    let dict = |row: &OperationCost| {
        let dict = PyDict::new(py);
        dict.set_item("operation", row.operation.to_string())?;
        dict.set_item("device", &row.device)?;
        dict.set_item("count", row.count)?;
        dict.set_item("bytes", row.bytes)?;
        let priced = match &row.cost {
            Ok(priced) => priced,
            Err(lacking) => {
                dict.set_item("error", lacking.error.to_string())?;
                dict.set_item("missing", &lacking.primitives)?;
                return Ok(dict);
            }
        };
        let (source, recipe) = match &priced.source {
            CostSource::Own => ("own", None),
            CostSource::Recipe(name) => ("recipe", Some(name)),
            CostSource::Primitive => ("primitive", None),
        };
        dict.set_item("source", source)?;
        dict.set_item("recipe", recipe)?;
        dict.set_item("warm_ns", priced.warm_ns)?;
        dict.set_item("cold_ns", priced.cold_ns)?;
        dict.set_item("remainder_ns", priced.remainder_ns)?;
        dict.set_item("remainder", priced.remainder_share())?;
        let parts: PyResult<Vec<_>> = priced.parts.iter().map(|of| part(py, of)).collect();
        dict.set_item("parts", parts?)?;
        Ok(dict)
    };
    rows.iter().map(dict).collect()
}

fn part<'py>(py: Python<'py>, of: &LoweredPart) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("primitive", of.primitive.to_string())?;
    dict.set_item("figure", of.figure.to_string())?;
    dict.set_item("calls", of.calls)?;
    dict.set_item("bytes", of.bytes)?;
    dict.set_item("warm_ns", of.warm_ns)?;
    dict.set_item("cold_ns", of.cold_ns)?;
    Ok(dict)
}

/// Whether a device's profile has figures of a cipher of DDS of its own.
#[pyfunction]
#[pyo3(signature = (profile, aead = None))]
pub(crate) fn device_measures_ciphers(
    profile: (String, String, String, String),
    aead: Option<&str>,
) -> PyResult<bool> {
    let (kind, name, text, file) = profile;
    if kind != "device" {
        let message = format!("{file}: is a profile of kind {kind}: expected device");
        return Err(WarifuError::new_err(message));
    }
    let device = DeviceProfile::parse(&name, &text, &file)
        .map_err(|error| WarifuError::new_err(error.to_string()))?;
    let found = device.dds_ciphers();
    Ok(aead.map_or(!found.is_empty(), |aead| found.iter().any(|of| of.name() == aead)))
}

/// The choices that an operation's cost depends on in these versions of TLS and ways to begin it,
/// each with all its words; an empty list stands for any. Raises WarifuError for a name that is no
/// operation's.
#[pyfunction]
#[pyo3(signature = (operation, tls = Vec::new(), session = Vec::new()))]
pub(crate) fn cost_choices(
    operation: &str,
    tls: Vec<String>,
    session: Vec<String>,
) -> PyResult<Vec<(&'static str, Vec<&'static str>)>> {
    let parsed = operation.parse().map_err(|expected: String| {
        WarifuError::new_err(format!("operation is {operation:?}: {expected}"))
    })?;
    let has = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
    let of =
        |version: TlsVersion, way: Session| has(&tls, version.name()) && has(&session, way.name());
    Ok(warifu_model::cost_choices(parsed, of))
}

/// The names of all primitives that a device profile may have a cost for.
#[pyfunction]
pub(crate) fn primitives() -> Vec<String> {
    Primitive::all().map(|primitive| primitive.to_string()).collect()
}
