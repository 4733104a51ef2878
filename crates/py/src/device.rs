// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles of devices and key stores, as data: what they are, and what calls take.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warifu_model::{
    DeviceProfile, Distribution, KeyStoreCall, KeyStoreProfile, Keyword, Primitive,
};

use crate::error::warifu_error;

/// A device's profile from its file's text.
#[pyfunction]
pub(crate) fn device<'py>(
    py: Python<'py>,
    name: &str,
    text: &str,
    file: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let profile = DeviceProfile::parse(name, text, file).map_err(warifu_error)?;
    let machine = &profile.machine;
    let dict = PyDict::new(py);
    dict.set_item("name", &profile.name)?;
    dict.set_item("description", &profile.description)?;
    dict.set_item("library", &machine.library)?;
    dict.set_item("core", &machine.core)?;
    dict.set_item("clock_hz", machine.clock.map(|clock| clock.0))?;
    dict.set_item("code", machine.code.map(Keyword::name))?;
    dict.set_item("ram", machine.ram.map(|size| size.0))?;
    dict.set_item("flash", machine.flash.map(|size| size.0))?;
    dict.set_item("stack_ram", machine.stack_ram.map(|size| size.0))?;
    dict.set_item("stack_flash", machine.stack_flash.map(|size| size.0))?;
    let primitives = PyDict::new(py);
    for primitive in Primitive::all() {
        let Some(cost) = profile.primitive(primitive, 0) else { continue };
        let one = law(py, &cost.law(false))?;
        one.set_item("per_byte_ns", cost.per_byte_ns)?;
        one.set_item("kind", cost.kind.name())?;
        one.set_item("source", cost.source.unwrap_or_default())?;
        one.set_item("code", profile.code(primitive).map(Keyword::name))?;
        primitives.set_item(primitive.to_string(), one)?;
    }
    dict.set_item("primitives", primitives)?;
    Ok(dict)
}

/// A key store's profile from its file's text.
#[pyfunction]
pub(crate) fn key_store<'py>(
    py: Python<'py>,
    name: &str,
    text: &str,
    file: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let profile = KeyStoreProfile::parse(name, text, file).map_err(warifu_error)?;
    let dict = PyDict::new(py);
    dict.set_item("name", &profile.name)?;
    dict.set_item("description", &profile.description)?;
    dict.set_item("software", profile.software)?;
    let calls = PyDict::new(py);
    if !profile.software {
        for call in KeyStoreCall::ALL {
            calls.set_item(call.name(), law(py, profile.call(call).map_err(warifu_error)?)?)?;
        }
    }
    dict.set_item("calls", calls)?;
    dict.set_item(
        "throttle",
        profile.throttle.map(|throttle| (throttle.calls, throttle.window.0)),
    )?;
    dict.set_item("sleeps", profile.sleep.is_some())?;
    Ok(dict)
}

fn law<'py>(py: Python<'py>, law: &Distribution) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("mean_ns", law.mean_ns())?;
    dict.set_item("min_ns", law.min().0)?;
    dict.set_item("median_ns", law.quantile(0.5).0)?;
    dict.set_item("max_ns", law.max().0)?;
    Ok(dict)
}
