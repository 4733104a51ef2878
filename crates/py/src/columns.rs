// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The columns of an observation as data, and a case's settings by their names.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warifu_model::{Case, ColumnType, Value, case_columns};

use crate::error::warifu_error;

/// A case's settings by column name, from its canonical form.
#[pyfunction]
pub(crate) fn settings<'py>(py: Python<'py>, case_json: &str) -> PyResult<Bound<'py, PyDict>> {
    let case = Case::from_canonical(case_json)
        .map_err(|error| warifu_error(format!("malformed case: {error}")))?;
    settings_of(py, &case)
}

/// A case's settings by column name; `None` where nothing applies.
pub(crate) fn settings_of<'py>(py: Python<'py>, case: &Case) -> PyResult<Bound<'py, PyDict>> {
    let settings = PyDict::new(py);
    for column in case_columns() {
        match column.value(case) {
            None => settings.set_item(column.name, py.None())?,
            Some(Value::Text(text)) => settings.set_item(column.name, text)?,
            Some(Value::Bool(flag)) => settings.set_item(column.name, flag)?,
            Some(Value::U16(number)) => settings.set_item(column.name, number)?,
            Some(Value::U32(number)) => settings.set_item(column.name, number)?,
            Some(Value::U64(number)) => settings.set_item(column.name, number)?,
            Some(Value::F64(number)) => settings.set_item(column.name, number)?,
        }
    }
    Ok(settings)
}

/// An observation's columns in their order: name, type, unit, and whether it may be null.
#[pyfunction]
pub(crate) fn columns() -> Vec<(&'static str, &'static str, &'static str, bool)> {
    let type_name = |of| match of {
        ColumnType::Text => "text",
        ColumnType::Bool => "bool",
        ColumnType::U16 => "u16",
        ColumnType::U32 => "u32",
        ColumnType::U64 => "u64",
        ColumnType::F64 => "f64",
    };
    let columns = warifu_results::columns().into_iter();
    columns.map(|of| (of.name, type_name(of.column_type), of.unit, of.nullable)).collect()
}
