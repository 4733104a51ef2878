// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of all crates as one Python exception.

use std::fmt::Display;

use pyo3::PyErr;
use pyo3::exceptions::PyException;

pyo3::create_exception!(
    warifu._core,
    WarifuError,
    PyException,
    "A mistake in a study or profile, or a file that cannot be written; its text is one line that \
     names file, key and what to do."
);

/// The error's own text, as a `WarifuError`.
pub(crate) fn warifu_error(error: impl Display) -> PyErr {
    WarifuError::new_err(error.to_string())
}
