// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong with a results folder, each as one line that names the file and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// A results folder that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The file system has no room left.
    #[error("{}: no space left on the device: free some, then run again{}", .path.display(), .kept)]
    Full {
        /// The file that was being written.
        path: PathBuf,
        /// What stays readable, as the end of the sentence; empty for nothing.
        kept: String,
    },
    /// Another failure of the file system.
    #[error("{}: cannot {doing}: {}: {}", .path.display(), words(.source), hint(.source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried: `create`, `write`, `rename`.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A folder that holds something else than results would be replaced.
    #[error("{}: is not a results folder (it has no manifest.json): name another one, or remove \
             it", .0.display())]
    NotResults(PathBuf),
    /// A manifest that is not one.
    #[error("{file}: {key} {message}")]
    Manifest {
        /// The file's name as the user gave it.
        file: String,
        /// Dotted path of the key at fault.
        key: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// Rows that do not have the schema.
    #[error("{file}: {message}")]
    Rows {
        /// The file that was to be written.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// The Parquet library refused.
    #[error("{}: cannot write Parquet: {message}", .path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the library says.
        message: String,
    },
}

/// What the system says, without its number.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// What to do about it.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "choose a place that you may write, or change its rights"
        }
        io::ErrorKind::ReadOnlyFilesystem => "choose a place that can be written",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a file is where a folder should be: choose another place, or move that file"
        }
        io::ErrorKind::IsADirectory => {
            "a folder is where a file should be: choose another place, or move that folder"
        }
        _ => "choose another place, then run again",
    }
}

impl ResultsError {
    /// An error of the file system at `path` while `doing`; a full disk gets its own kind.
    pub(crate) fn io(path: &Path, doing: &'static str, source: io::Error) -> ResultsError {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                ResultsError::Full { path: path.to_owned(), kept: String::new() }
            }
            _ => ResultsError::Io { path: path.to_owned(), doing, source },
        }
    }

    /// Whether the file system refused, and not what was to be written.
    pub const fn is_storage(&self) -> bool {
        matches!(
            self,
            ResultsError::Full { .. } | ResultsError::Io { .. } | ResultsError::Parquet { .. }
        )
    }

    /// Says what stays readable all the same.
    pub(crate) fn keeping(self, what: String) -> ResultsError {
        match self {
            ResultsError::Full { path, .. } => ResultsError::Full { path, kept: what },
            other => other,
        }
    }
}
