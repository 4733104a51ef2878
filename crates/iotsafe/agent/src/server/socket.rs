// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The agent's Unix socket.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::Access;

use super::Agent;
use crate::LOG;

/// A socket that is removed when this is dropped.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    listener: UnixListener,
    inode: u64,
}

/// Why a socket cannot be opened; one line.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}", path = .path.display())]
pub struct SocketError {
    path: PathBuf,
    what: String,
}

impl Socket {
    /// Opens the socket with mode 0600, or 0666 if other users may call: the kernel tells who they
    /// are (SO_PEERCRED). A socket that a killed agent has left is replaced.
    ///
    /// # Errors
    /// [`SocketError`].
    pub fn open(path: &Path, for_others: bool) -> Result<Socket, SocketError> {
        let failed = |error: io::Error| {
            let what = format!("{error}: choose another --socket");
            SocketError { path: path.to_owned(), what }
        };
        Socket::check(path)?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let inode = fs::symlink_metadata(path).map_err(failed)?.ino();
        let socket = Socket { path: path.to_owned(), listener, inode };
        let mode = if for_others { 0o666 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)?;
        Ok(socket)
    }

    /// Checks that a socket can be opened at a path, as far as that is possible without opening it,
    /// before a person is asked for a PIN.
    ///
    /// # Errors
    /// [`SocketError`].
    pub fn check(path: &Path) -> Result<(), SocketError> {
        let wrong = |what: String| Err(SocketError { path: path.to_owned(), what });
        let other = "choose another --socket";
        if path.as_os_str().as_bytes().contains(&b',') {
            return wrong(format!(
                "the path contains a comma, which ends it in WARIFU_CARD: {other}"
            ));
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        if !folder.is_dir() {
            return wrong(format!(
                "the folder {} does not exist: create it, or {other}",
                folder.display()
            ));
        }
        if rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).is_err() {
            let folder = folder.display();
            return wrong(format!("no permission to write to the folder {folder}: {other}"));
        }
        let Ok(about) = fs::symlink_metadata(path) else { return Ok(()) };
        if !about.file_type().is_socket() {
            return wrong(format!("the file exists and is not a socket: {other}"));
        }
        match UnixStream::connect(path) {
            Ok(_) => {
                let end = format!("stop it with: warifu agent stop --socket {}", path.display());
                wrong(format!("another agent is using it: {end}"))
            }
            // Nobody listens any more.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Err(error) => {
                wrong(format!("connecting to the existing socket failed ({error}): {other}"))
            }
        }
    }

    /// Serves every caller, each on a thread of its own.
    ///
    /// # Errors
    /// The listener's.
    pub fn start(&self, agent: &Arc<Agent>) -> io::Result<()> {
        let (listener, agent) = (self.listener.try_clone()?, Arc::clone(agent));
        thread::spawn(move || {
            let mut reported = false;
            for stream in listener.incoming() {
                let taken = match stream {
                    Ok(stream) => match agent.admit(&stream) {
                        Some(slot) => {
                            let agent = Arc::clone(&agent);
                            let serve = move || agent.serve(&stream, slot);
                            thread::Builder::new().spawn(serve).map(drop)
                        }
                        None => Ok(()),
                    },
                    Err(error) => Err(error),
                };
                let Err(error) = taken else {
                    reported = false;
                    continue;
                };
                // Perhaps out of file descriptors or threads, which may be temporary.
                if !std::mem::replace(&mut reported, true) {
                    LOG.line(format_args!("accepting a connection failed: {error}"));
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
        Ok(())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Not if another agent has replaced it.
        if fs::symlink_metadata(&self.path).is_ok_and(|about| about.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_replaces_only_sockets_without_a_listener() {
        use std::os::unix::net::UnixDatagram;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.sock");
        let other = UnixDatagram::bind(&path).unwrap();
        let refused = |path: &Path, says: &str| {
            let error = Socket::open(path, false).unwrap_err().to_string();
            assert!(error.contains(says) && error.lines().count() == 1, "{error}");
        };
        refused(&path, "existing socket failed");
        refused(&folder.path().join("none/agent.sock"), "create it, or choose another --socket");
        refused(&folder.path().join("a,b"), "contains a comma");
        refused(Path::new("/proc/agent.sock"), "choose another --socket");
        refused(&folder.path().join("long".repeat(40)), "choose another --socket");
        assert!(path.exists());
        fs::remove_file(&path).unwrap();
        drop(other);
        drop(UnixListener::bind(&path).unwrap());
        let first = Socket::open(&path, false).unwrap();
        // Renamed, not removed: the inode number would be used again.
        fs::rename(&path, folder.path().join("moved")).unwrap();
        let second = Socket::open(&path, false).unwrap();
        drop(first);
        assert!(path.exists(), "it belongs to the second agent");
        drop(second);
        assert!(!path.exists());
    }
}
