// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The one error of this crate: a line that names the file, the key and what to do.

use std::fmt;

/// A mistake in a study or a profile.
///
/// Displayed as `FILE: KEY MESSAGE`, for example
/// `meter.toml: link.loss is 1.2: expected a probability from 0 to 1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file's name as the user gave it, or `command line`; empty for a mistake in a case, which
    /// does not know its study's file.
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

    /// A mistake in a case. Whoever knows its study says so by [`Error::in_file`].
    pub fn in_case(key: impl Into<String>, message: impl Into<String>) -> Self {
        Error::new("", key, message)
    }

    /// The same with its file's name, if it has none.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> Self {
        if self.file.is_empty() {
            file.clone_into(&mut self.file);
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = if self.file.is_empty() { "study" } else { &self.file };
        if self.key.is_empty() {
            write!(f, "{file}: {}", self.message)
        } else {
            write!(f, "{file}: {} {}", self.key, self.message)
        }
    }
}

impl std::error::Error for Error {}
