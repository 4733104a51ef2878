// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One error type for the library; the programs print it as one line.

use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A choice that cannot be run; the text names the key and the fix.
    #[error("{0}")]
    Config(String),
    /// The OpenSSL library refused something.
    #[error("OpenSSL: {0}")]
    OpenSsl(#[from] openssl::error::ErrorStack),
    /// A TLS call failed other than by having to wait.
    #[error("TLS: {0}")]
    Tls(String),
    /// The token that holds the key.
    #[error("key store: {0}")]
    KeyStore(#[from] warifu_pkcs11_client::CallerError),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
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
    /// Names the file that an I/O error concerns.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }
}

impl From<openssl::ssl::Error> for Error {
    fn from(error: openssl::ssl::Error) -> Self {
        Self::Tls(error.to_string())
    }
}
