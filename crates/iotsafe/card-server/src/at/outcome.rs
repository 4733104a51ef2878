// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a modem's answers depend on, and how a command can end.

/// What `ATZ` and `AT&F` set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) echo: bool,
    /// V1: results as words.
    pub(super) verbose: bool,
    /// Q1: no results.
    pub(super) quiet: bool,
    pub(super) errors: Errors,
}

/// How much an error says (TS 27.007 section 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errors {
    Plain,
    Numbers,
    Words,
}

pub(super) const DEFAULTS: Settings =
    Settings { echo: true, verbose: true, quiet: false, errors: Errors::Plain };

/// What an error is, by number and words (TS 27.007 section 9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CmeError {
    NotInserted,
    SimFailure,
    TooLong,
    InvalidCharacters,
    IncorrectParameters,
}

impl CmeError {
    pub(super) fn number(self) -> u16 {
        match self {
            CmeError::NotInserted => 10,
            CmeError::SimFailure => 13,
            CmeError::TooLong => 24,
            CmeError::InvalidCharacters => 25,
            CmeError::IncorrectParameters => 50,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            CmeError::NotInserted => "SIM not inserted",
            CmeError::SimFailure => "SIM failure",
            CmeError::TooLong => "text string too long",
            CmeError::InvalidCharacters => "invalid characters in text string",
            CmeError::IncorrectParameters => "Incorrect parameters",
        }
    }
}

/// How a command ended.
pub(super) enum End {
    Ok,
    /// The modem does not know it: always plain ERROR.
    Unknown,
    /// It is known and failed.
    Cme(CmeError),
    /// No result is ever given.
    Silent,
}
