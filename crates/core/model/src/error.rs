// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The one error of this crate: a line that names the file, the key and what to do.

use std::fmt;

/// A mistake in a study or a profile.
///
/// Displayed as `FILE: KEY MESSAGE`, for example
/// `meter.toml: link.loss is 1.2: expected a probability from 0 to 1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file's name as the user gave it, or `command line`.
    pub file: String,
    /// The dotted path of the key, empty when the file as a whole is at fault.
    pub key: String,
    /// What is wrong and what to do, beginning with a verb (`is 1.2: expected ...`).
    pub message: String,
}

impl Error {
    /// An error at `key` of `file`.
    pub fn new(
        file: impl Into<String>,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Error { file: file.into(), key: key.into(), message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}: {}", self.file, self.message)
        } else {
            write!(f, "{}: {} {}", self.file, self.key, self.message)
        }
    }
}

impl std::error::Error for Error {}
