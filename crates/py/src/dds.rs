// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way of one DDS sample, as data.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warifu_model::{Nanos, Role};
use warifu_sim::{DdsPath, Law, PathStep, Work};

use crate::error::warifu_error;
use crate::study::{Study, case};

/// What each step of a sample's writer and reader costs.
#[pyfunction]
pub(crate) fn dds_path<'py>(
    py: Python<'py>,
    study: &Study,
    index: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let path = DdsPath::of(case(&study.study, index)?, &study.catalog)
        .map_err(|error| warifu_error(error.in_file(&study.study.file)))?;
    let steps: Vec<_> = path.steps.iter().map(|step| as_dict(py, step)).collect::<PyResult<_>>()?;
    let dict = PyDict::new(py);
    dict.set_item("steps", steps)?;
    dict.set_item("wake_ns", numbers(path.wake))?;
    dict.set_item("delay_ns", path.delay.0)?;
    dict.set_item("rate", path.rate)?;
    Ok(dict)
}

fn as_dict<'py>(py: Python<'py>, step: &PathStep) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    match step {
        PathStep::Work(work) => {
            dict.set_item("step", "work")?;
            work_of(py, &dict, work)?;
        }
        PathStep::Send { message, bytes } => {
            dict.set_item("step", "send")?;
            dict.set_item("message", message.0)?;
            dict.set_item("bytes", *bytes)?;
        }
        PathStep::Receive { message } => {
            dict.set_item("step", "receive")?;
            dict.set_item("message", message.0)?;
        }
    }
    Ok(dict)
}

fn work_of(py: Python<'_>, dict: &Bound<'_, PyDict>, work: &Work) -> PyResult<()> {
    dict.set_item("operation", work.operation.to_string())?;
    dict.set_item("writer", work.operation.role() == Role::Client)?;
    dict.set_item("bytes", work.bytes)?;
    dict.set_item("own_ns", numbers(work.own))?;
    dict.set_item("own_per_byte_ns", work.own_per_byte_ns)?;
    dict.set_item("protected_ns", work.protected.0)?;
    let cipher = match &work.cipher {
        None => None,
        Some(of_cipher) => {
            let cipher = PyDict::new(py);
            cipher.set_item("primitive", &of_cipher.primitive)?;
            cipher.set_item("call_ns", numbers(of_cipher.call))?;
            cipher.set_item("per_byte_ns", of_cipher.per_byte_ns)?;
            cipher.set_item("tags_ns", of_cipher.tags.0)?;
            Some(cipher)
        }
    };
    dict.set_item("cipher", cipher)
}

/// Low, mean, high, and what a pause adds.
fn numbers(law: Law) -> (u64, u64, u64, u64) {
    let [low, mean, high, cold] = [law.low, law.mean, law.high, law.cold].map(|Nanos(ns)| ns);
    (low, mean, high, cold)
}
