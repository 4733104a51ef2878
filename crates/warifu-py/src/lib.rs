// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Python module `warifu._core`: conversions only.

use pyo3::prelude::*;

pyo3::create_exception!(warifu._core, WarifuError, pyo3::exceptions::PyException, "A mistake in the user's input, or a resource that failed; its text is one line.");

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("WarifuError", module.py().get_type::<WarifuError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
