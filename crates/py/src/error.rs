// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of all crates as one Python exception.

use std::fmt::Display;

use pyo3::PyErr;
use pyo3::exceptions::PyException;
use warifu_results::ResultsError;

pyo3::create_exception!(
    warifu._core,
    WarifuError,
    PyException,
    "A mistake in a study or profile, or a file that cannot be written; its text is one line that \
     names file, key and what to do."
);

pyo3::create_exception!(
    warifu._core,
    StorageError,
    WarifuError,
    "Results that the file system does not take."
);

/// An error about results: whether the file system or their writer is at fault.
pub(crate) fn results_error(error: ResultsError) -> PyErr {
    if error.is_storage() {
        return StorageError::new_err(error.to_string());
    }
    warifu_error(error)
}

/// The error's own text, as a `WarifuError`.
pub(crate) fn warifu_error(error: impl Display) -> PyErr {
    WarifuError::new_err(error.to_string())
}
