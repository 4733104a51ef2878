// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accelerator profiles, as data.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use warifu_model::{AcceleratorProfile, Keyword, Terms};

use crate::error::warifu_error;
use crate::study::figure;

/// An accelerator's profile from its file's text.
#[pyfunction]
pub(crate) fn accelerator<'py>(
    py: Python<'py>,
    name: &str,
    text: &str,
    file: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let profile = AcceleratorProfile::parse(name, text, file).map_err(warifu_error)?;
    let ciphers = PyDict::new(py);
    for aead in profile.aeads() {
        let Some(terms) = profile.cipher(aead) else { continue };
        let inputs = profile.inputs(aead).into_iter().map(|input| figure(py, input));
        let inputs: Vec<_> = inputs.collect::<PyResult<_>>()?;
        let cipher = as_dict(py, &terms)?;
        cipher.set_item("inputs", PyList::new(py, inputs)?)?;
        ciphers.set_item(aead.name(), cipher)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("name", &profile.name)?;
    dict.set_item("description", &profile.description)?;
    dict.set_item("needs", &profile.needs)?;
    dict.set_item("built_in", profile.built_in)?;
    dict.set_item("ciphers", ciphers)?;
    dict.set_item("bus", as_dict(py, &profile.bus)?)?;
    Ok(dict)
}

fn as_dict<'py>(py: Python<'py>, terms: &Terms) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("set_up_ns", (terms.set_up.low_ns, terms.set_up.high_ns))?;
    dict.set_item("per_byte_ns", (terms.per_byte.low_ns, terms.per_byte.high_ns))?;
    Ok(dict)
}
