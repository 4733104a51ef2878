// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose files this thread reads and writes.

use pyo3::prelude::*;

/// From now on, those of this user and group; OSError where the kernel keeps another.
#[pyfunction]
pub(crate) fn set_fs_user(user: u32, group: u32) -> PyResult<()> {
    Ok(warifu_os::set_fs_user(user, group)?)
}

/// The user and the group.
#[pyfunction]
pub(crate) fn fs_user() -> (i32, i32) {
    warifu_os::fs_user()
}
