// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The settings of the modem, and the results of commands.

/// The settings that `ATZ` and `AT&F` reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) echo: bool,
    /// V1: results as words.
    pub(super) verbose: bool,
    /// Q1: no results.
    pub(super) quiet: bool,
    pub(super) errors: Errors,
}

/// The form of error results (TS 27.007 section 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errors {
    Plain,
    Numbers,
    Words,
}

pub(super) const DEFAULTS: Settings =
    Settings { echo: true, verbose: true, quiet: false, errors: Errors::Plain };

/// The errors with their numbers and texts (TS 27.007 section 9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CmeError {
    NotInserted,
    SimFailure,
    MemoryFull,
    InvalidIndex,
    NotFound,
    TooLong,
    InvalidCharacters,
    IncorrectParameters,
}

impl CmeError {
    pub(super) fn number(self) -> u16 {
        match self {
            CmeError::NotInserted => 10,
            CmeError::SimFailure => 13,
            CmeError::MemoryFull => 20,
            CmeError::InvalidIndex => 21,
            CmeError::NotFound => 22,
            CmeError::TooLong => 24,
            CmeError::InvalidCharacters => 25,
            CmeError::IncorrectParameters => 50,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            CmeError::NotInserted => "SIM not inserted",
            CmeError::SimFailure => "SIM failure",
            CmeError::MemoryFull => "memory full",
            CmeError::InvalidIndex => "invalid index",
            CmeError::NotFound => "not found",
            CmeError::TooLong => "text string too long",
            CmeError::InvalidCharacters => "invalid characters in text string",
            CmeError::IncorrectParameters => "Incorrect parameters",
        }
    }
}

/// The result of a command.
pub(super) enum End {
    Ok,
    /// An unknown command: always plain ERROR.
    Unknown,
    /// A known command that failed.
    Cme(CmeError),
    /// No result at all.
    Silent,
}
