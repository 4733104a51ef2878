// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong, each in one line with its fix.

use warifu_pkcs11_client::CallerError;

/// Why a bench ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// What was asked for.
    #[error("{0}")]
    Config(String),
    /// libssl, or what was asked of it.
    #[error(transparent)]
    Tls(#[from] warifu_tls_client::Error),
    /// The module, the token or the key.
    #[error(transparent)]
    Caller(#[from] CallerError),
    /// Our own module reaches no card.
    #[error(
        "no card is reached, {0}: start the virtual one with `warifu card serve`, or an agent \
         with `warifu agent start`; `warifu doctor` checks every step to a real one"
    )]
    NoCard(String),
    /// A signature of the token is wrong.
    #[error(
        "token {0} made a signature that its public key does not verify: its times would mean \
         nothing"
    )]
    Signature(String),
    /// A program could not be run, or failed.
    #[error("{what}: {why}")]
    Program {
        /// The program.
        what: String,
        /// Why.
        why: String,
    },
    /// A cipher, or OpenSSL's.
    #[error("{0}")]
    Failed(String),
    /// Signals cannot be waited for.
    #[error("signals cannot be caught: {0}")]
    Signals(std::io::Error),
    /// Writing failed.
    #[error("the output cannot be written: {0}")]
    Output(std::io::Error),
}

impl BenchError {
    /// 2 for a mistake in what was asked, 3 for what this machine lacks.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            BenchError::Config(_) | BenchError::Tls(warifu_tls_client::Error::Config(_)) => 2,
            _ => 3,
        }
    }
}
