// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose files this thread reads and writes.

use pyo3::prelude::*;

/// From now on, those of this user and group; OSError where the kernel keeps another.
#[pyfunction]
pub(crate) fn become_files_of(user: u32, group: u32) -> PyResult<()> {
    Ok(warifu_os::become_files_of(user, group)?)
}

/// The user and the group.
#[pyfunction]
pub(crate) fn files_of() -> (i32, i32) {
    warifu_os::files_of()
}
