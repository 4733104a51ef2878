// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong around the card, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Why a card could not be made, changed or served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Another process owns the state.
    #[error(
        "{} is in use{}: stop its server, then run this again",
        path.display(),
        owner.map(|pid| format!(" by process {pid}")).unwrap_or_default()
    )]
    InUse {
        /// The state file.
        path: PathBuf,
        /// Who holds it, if that could be read.
        owner: Option<u32>,
    },
    /// There is no card there.
    #[error("{}: no card is there: make one with `warifu card create`", path.display())]
    NoCard {
        /// The state file.
        path: PathBuf,
    },
    /// There is a card already.
    #[error(
        "{}: the file is a card with keys: choose another --state, or remove the file",
        path.display()
    )]
    Exists {
        /// The state file.
        path: PathBuf,
    },
    /// Others may read the keys.
    #[error(
        "{}: mode {mode:04o} lets other users read the keys: run `chmod 600 {}`",
        path.display(),
        path.display()
    )]
    Readable {
        /// The state file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file is no state.
    #[error(
        "{}: the state of the card is corrupt ({why}) and was not changed: restore a copy of it, \
         or \
         create a new card with `warifu card create --state OTHER`",
        path.display()
    )]
    Corrupt {
        /// The state file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file or folder cannot be used.
    #[error("{}: {source}: {}", path.display(), hint(source))]
    File {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The request is invalid; the text says why and how to fix it.
    #[error("{0}")]
    Request(String),
    /// The machine lacks something; the text says what and how to fix it.
    #[error("{0}")]
    Missing(String),
    /// A system call failed in a way that has no better name.
    #[error("{doing}: {source}")]
    Os {
        /// What was tried.
        doing: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl ServerError {
    /// Wraps what the kernel said of a file.
    pub(crate) fn file(path: &Path, source: io::Error) -> ServerError {
        ServerError::File { path: path.to_owned(), source }
    }

    /// Wraps a failed system call.
    pub(crate) fn os(doing: impl Into<String>, source: impl Into<io::Error>) -> ServerError {
        ServerError::Os { doing: doing.into(), source: source.into() }
    }

    /// The exit code, as `warifu` has them: 2 for what was asked, 3 for what this machine lacks.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            ServerError::Request(_) | ServerError::Exists { .. } | ServerError::NoCard { .. } => 2,
            _ => 3,
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "check the name, or create the folder",
        io::ErrorKind::PermissionDenied => "choose another path, or change its permissions",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free space on the disk",
        io::ErrorKind::ReadOnlyFilesystem => "choose a path on a writable file system",
        _ => "check the path",
    }
}
