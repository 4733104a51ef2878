// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A JSON file beside the observations, sealed as they are.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::error::ResultsError;
use crate::part::{create_new, partial_name};
use crate::seal::{Sealed, Sealing};

/// Writes a value as a file, atomically; it has strings, numbers and lists alone.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<Sealed, ResultsError> {
    let partial = partial_name(path);
    // Of such values serialisation cannot fail.
    let text = serde_json::to_string(value).unwrap_or_default();
    let written = create_new(&partial).and_then(|file| {
        let mut file = Sealing::new(file);
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.inner().sync_all()?;
        Ok(file.sealed())
    });
    let sealed = written.map_err(|error| ResultsError::io(path, "write", error))?;
    std::fs::rename(&partial, path).map_err(|error| ResultsError::io(path, "rename", error))?;
    Ok(sealed)
}
