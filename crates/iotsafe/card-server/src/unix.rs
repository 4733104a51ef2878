// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The card on a Unix socket, for its owner alone; [`crate::frame`] says what goes over it.

use std::fs;
use std::io::{self, BufReader};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use warifu_os::clock;

use crate::LOG;
use crate::error::ServerError;
use crate::frame;
use crate::host::{Client, Host, Reply};

/// The most clients at a time; more are turned away, since each has a thread.
const CLIENTS_MAX: usize = 64;

/// A socket that is removed when this is dropped.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    listener: UnixListener,
    inode: u64,
}

impl Socket {
    /// Opens the socket, mode 0600. One that a killed server left behind is replaced.
    ///
    /// # Errors
    /// [`ServerError::Request`] where something else is there or another server answers;
    /// [`ServerError::File`].
    pub fn open(path: &Path) -> Result<Socket, ServerError> {
        if let Ok(about) = fs::symlink_metadata(path) {
            let taken = |what: &str| {
                let text = format!("{}: {what}: choose another --socket", path.display());
                Err(ServerError::Request(text))
            };
            if !about.file_type().is_socket() {
                return taken("the file exists and is not a socket");
            }
            match UnixStream::connect(path) {
                Ok(_) => return taken("another server is using it"),
                // Nobody listens any more.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => {
                    return taken(&format!("connecting to the existing socket failed ({error})"));
                }
            }
            fs::remove_file(path).map_err(|error| ServerError::file(path, error))?;
        }
        let listener = UnixListener::bind(path).map_err(|error| match error.kind() {
            // sockaddr_un holds 107 bytes (unix(7)).
            io::ErrorKind::InvalidInput => ServerError::Request(format!(
                "{}: the path is too long for a socket: choose a --socket of at most 107 bytes",
                path.display()
            )),
            _ => ServerError::file(path, error),
        })?;
        let about = fs::symlink_metadata(path).map_err(|error| ServerError::file(path, error))?;
        let socket = Socket { path: path.to_owned(), listener, inode: about.ino() };
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
            .map_err(|error| ServerError::file(path, error))?;
        Ok(socket)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Serves every client that comes, each on a thread of its own.
    ///
    /// # Errors
    /// The listener's, which do not go away.
    pub fn start(&self, host: &Arc<Host>) -> Result<(), ServerError> {
        let listener =
            self.listener.try_clone().map_err(|error| ServerError::file(&self.path, error))?;
        let host = Arc::clone(host);
        let accepting = thread::Builder::new().spawn(move || accept(&listener, &host));
        accepting.map(drop).map_err(|error| ServerError::file(&self.path, error))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Another server's that has taken the place is left.
        if fs::symlink_metadata(&self.path).is_ok_and(|about| about.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn accept(listener: &UnixListener, host: &Arc<Host>) {
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let taken = stream.and_then(|stream| {
            let place = Place::take(&clients);
            if place.number > CLIENTS_MAX {
                LOG.line(format_args!(
                    "{CLIENTS_MAX} clients are connected: another one was refused"
                ));
                return Ok(());
            }
            let client = host.client();
            let work = move || {
                // The place is free when the client's channels are.
                let (_place, client) = (place, client);
                // A client that goes away in the middle is no fault of the card's.
                let _ = converse(&stream, &client);
            };
            thread::Builder::new().spawn(work).map(drop)
        });
        if let Err(error) = taken {
            // Out of descriptors or of threads, perhaps; it may pass, and must not be asked
            // without end.
            LOG.line(format_args!("accepting a connection failed: {error}"));
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A client's, until this is dropped.
struct Place {
    clients: Arc<AtomicUsize>,
    number: usize,
}

impl Place {
    fn take(clients: &Arc<AtomicUsize>) -> Place {
        let number = clients.fetch_add(1, Ordering::Relaxed) + 1;
        Place { clients: Arc::clone(clients), number }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers a client until it goes away or the card does.
fn converse(stream: &UnixStream, client: &Client) -> io::Result<()> {
    let (mut from, mut to) = (BufReader::new(stream), stream);
    while let Some(content) = frame::read(&mut from)? {
        let received = clock::now();
        if content.is_empty() {
            frame::write(&mut to, &client.reset())?;
            continue;
        }
        match client.transmit(&content, received) {
            Reply::Answer(answer) => frame::write(&mut to, &answer)?,
            Reply::Lost => {}
            Reply::Reset => frame::write(&mut to, &[])?,
            Reply::Absent => break,
        }
    }
    Ok(())
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
        let error = Socket::open(&path).unwrap_err().to_string();
        assert!(error.contains("existing socket failed"), "{error}");
        assert!(path.exists());
        fs::remove_file(&path).unwrap();
        drop(other);
        drop(UnixListener::bind(&path).unwrap());
        let first = Socket::open(&path).unwrap();
        // Renamed, not removed: a number that is free again would be given to the next.
        fs::rename(&path, folder.path().join("moved")).unwrap();
        let second = Socket::open(&path).unwrap();
        drop(first);
        assert!(path.exists(), "it is the second one's");
        drop(second);
        assert!(!path.exists());
    }
}
