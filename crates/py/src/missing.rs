// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What profiles have costs for, and what those of a study's ends have none for, as data.

use pyo3::prelude::*;
use warifu_model::{Primitive, Role};

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

/// The names of all primitives that a device profile may have a cost for.
#[pyfunction]
pub(crate) fn primitives() -> Vec<String> {
    Primitive::all().map(|primitive| primitive.to_string()).collect()
}
