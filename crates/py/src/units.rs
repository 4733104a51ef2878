// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Quantities with units, as profiles have them, for texts that are no profile: options and tables.

use pyo3::prelude::*;
use warifu_model::{ByteCount, Hertz, Nanos};

use crate::error::WarifuError;

/// `"45 ms"` in ns.
#[pyfunction]
pub(crate) fn duration_ns(text: &str) -> PyResult<u64> {
    text.parse::<Nanos>().map(|value| value.0).map_err(|error| WarifuError::new_err(error.0))
}

/// `"64 MHz"` in Hz.
#[pyfunction]
pub(crate) fn clock_hz(text: &str) -> PyResult<f64> {
    text.parse::<Hertz>().map(|value| value.0).map_err(|error| WarifuError::new_err(error.0))
}

/// `"256 KiB"` in B.
#[pyfunction]
pub(crate) fn byte_count(text: &str) -> PyResult<u64> {
    text.parse::<ByteCount>().map(|value| value.0).map_err(|error| WarifuError::new_err(error.0))
}
