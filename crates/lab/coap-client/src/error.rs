// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One error type for the library; the program prints it as one line.

use std::io;

/// What can go wrong with a run. What goes wrong with one exchange is in its outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A choice that cannot be run; the text names the key and the fix.
    #[error("{0}")]
    Config(String),
    /// The server does not do what the configuration says.
    #[error("{0}")]
    Server(String),
    /// libcoap refused something.
    #[error("libcoap: {0}")]
    Libcoap(&'static str),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The call, in words.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// Says in words which call failed.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Error {
        move |source| Error::System { what, source: source.into() }
    }
}
