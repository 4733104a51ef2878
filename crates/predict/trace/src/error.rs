// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What cannot be emulated, and the fix.

use std::fmt;

/// Choices that no connection can be made of.
///
/// Displayed as `KEY MESSAGE`, for example
/// `stack.session is psk_ke: TLS 1.2 resumes by ticket`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The dotted path of the choice at fault, as in a study.
    pub key: &'static str,
    /// What is wrong and how to fix it, beginning with a verb.
    pub message: String,
}

impl TraceError {
    pub(crate) fn new(key: &'static str, message: impl Into<String>) -> Self {
        TraceError { key, message: message.into() }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.message)
    }
}

impl std::error::Error for TraceError {}
