// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The card's state file: one owner, replaced as a whole, never half.
//!
//! A save writes `FILE.tmp`, syncs it, renames it over `FILE` and syncs the folder, so that a kill
//! or a power cut at any point leaves the old state or the new one. The owner holds a lock on
//! `FILE.lock`, which stays: the state file itself is another one after every save.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};
use zeroize::Zeroizing;

use crate::error::ServerError;

/// More than any card: 32 files of 32 KiB, keys and secrets (`warifu-card`).
const STATE_MAX_BYTES: u64 = 8 << 20;

/// Environment variable, for tests alone: the number, from 1, of the step of saving at which the
/// process kills itself. Each save has [`STEPS_PER_SAVE`].
pub const KILL_VARIABLE: &str = "WARIFU_CARD_KILL_AT";

/// The points at which a save can be cut: temporary file made, half written, all written, synced,
/// renamed, folder synced.
pub const STEPS_PER_SAVE: u32 = 6;

/// More than the number of a process.
const LOCK_MAX_BYTES: u64 = 32;

/// How often a lock that is held is tried again, and how long after.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A state file with its lock, which is given back when this is dropped.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    _lock: File,
    /// Steps until the kill that a test asked for.
    kill_in: Option<u32>,
}

impl Store {
    /// Locks the place of a state file, whether or not the file is there.
    ///
    /// # Errors
    /// [`ServerError::InUse`] where another process holds it; [`ServerError::File`] for a folder
    /// that is missing or not ours to write.
    pub fn lock(path: &Path) -> Result<Store, ServerError> {
        // Through links: a card with two names is one card, and a save replaces the file itself.
        let found = path.canonicalize();
        let path = found.as_deref().unwrap_or(path);
        let beside = with_suffix(path, ".lock");
        let mut lock = open_lock(&beside, path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => ServerError::file(folder_of(path), error),
            _ => ServerError::file(&beside, error),
        })?;
        // An owner that is just ending holds it a moment longer, in a child that it has forked.
        let held = (0..LOCK_TRIES).all(|number| {
            std::thread::sleep(LOCK_PAUSE * number.min(1));
            rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err()
        });
        if held {
            let mut owner = String::new();
            // Who cannot be read is not named; the lock is held all the same.
            let _ = (&lock).take(20).read_to_string(&mut owner);
            return Err(ServerError::InUse {
                path: path.to_owned(),
                owner: owner.trim().parse().ok(),
            });
        }
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(|error| {
                // On a full disk a lock of a card that is not there yet would stay, empty. Whoever
                // waits for this one gets it, and then fails in the same way.
                if !path.exists() {
                    let _ = fs::remove_file(&beside);
                }
                ServerError::file(&beside, error)
            })?;
        let kill_in = std::env::var(KILL_VARIABLE).ok().and_then(|text| text.parse().ok());
        Ok(Store { path: path.to_owned(), _lock: lock, kill_in })
    }

    /// Where the state is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the state. When this returns, the new one is on the disk.
    ///
    /// # Errors
    /// [`ServerError::File`], for example of a full disk; the old state is then still there.
    pub fn save(&mut self, state: &[u8]) -> Result<(), ServerError> {
        let beside = with_suffix(&self.path, ".tmp");
        self.replace(&beside, state).map_err(|error| ServerError::file(&self.path, error))
    }

    fn replace(&mut self, beside: &Path, state: &[u8]) -> std::io::Result<()> {
        // What a kill left behind may have other rights than new files get.
        match fs::remove_file(beside) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(beside)?;
        self.write(file, beside, state).inspect_err(|_| {
            // On a full disk even an empty file takes a place that others need.
            let _ = fs::remove_file(beside);
        })
    }

    fn write(&mut self, mut file: File, beside: &Path, state: &[u8]) -> std::io::Result<()> {
        keep_owner(&self.path, &file)?;
        self.step();
        let (first, second) = state.split_at(state.len() / 2);
        file.write_all(first)?;
        self.step();
        file.write_all(second)?;
        self.step();
        file.sync_all()?;
        self.step();
        fs::rename(beside, &self.path)?;
        self.step();
        File::open(folder_of(&self.path))?.sync_all()?;
        self.step();
        Ok(())
    }

    fn step(&mut self) {
        match &mut self.kill_in {
            Some(1) => {
                let own = rustix::process::getpid();
                let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
            }
            Some(steps) => *steps = steps.saturating_sub(1),
            None => {}
        }
    }
}

/// Opens or creates the lock beside a state file. Root may do so in a user's folder: no link is
/// followed, what is there already is only used if it can be nothing but a lock, and a new one
/// belongs to whom the card belongs, so that the user is not locked out.
fn open_lock(beside: &Path, path: &Path) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(flags);
    match options.clone().create_new(true).mode(0o600).open(beside) {
        Ok(file) => {
            let card = if path.exists() { path } else { folder_of(path) };
            keep_owner(card, &file)?;
            return Ok(file);
        }
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
    }
    let file = options.open(beside)?;
    let about = file.metadata()?;
    if !about.is_file() || about.nlink() != 1 || about.len() > LOCK_MAX_BYTES {
        return Err(std::io::Error::other("not a lock of this program: remove it"));
    }
    Ok(file)
}

/// Gives a new file to the owner of the one that it is to replace: what root changes with sudo
/// stays the user's.
fn keep_owner(old: &Path, new: &File) -> std::io::Result<()> {
    match fs::metadata(old) {
        Ok(about) if about.uid() != new.metadata()?.uid() => {
            std::os::unix::fs::fchown(new, Some(about.uid()), Some(about.gid()))
        }
        _ => Ok(()),
    }
}

/// Reads a state file, which a server may own and replace at the same time. It holds keys.
///
/// # Errors
/// [`ServerError::NoCard`] where there is none; [`ServerError::Readable`] where others may read it;
/// [`ServerError::Corrupt`] for one that no card can be; else [`ServerError::File`].
pub fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, ServerError> {
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => ServerError::NoCard { path: path.to_owned() },
        _ => ServerError::file(path, error),
    })?;
    let about = file.metadata().map_err(|error| ServerError::file(path, error))?;
    if !about.is_file() || about.len() > STATE_MAX_BYTES {
        let why = format!("{} B, not the state of a card", about.len());
        return Err(ServerError::Corrupt { path: path.to_owned(), why });
    }
    if about.mode() & 0o077 != 0 {
        return Err(ServerError::Readable { path: path.to_owned(), mode: about.mode() & 0o777 });
    }
    // Room for all of it: one that grows leaves copies behind.
    let room = about.len().saturating_add(1).try_into().unwrap_or_default();
    let mut state = Zeroizing::new(Vec::with_capacity(room));
    file.take(STATE_MAX_BYTES)
        .read_to_end(&mut state)
        .map_err(|error| ServerError::file(path, error))?;
    Ok(state)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn saved_state_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.state");
        let mut store = Store::lock(&path).unwrap();
        assert!(matches!(read(&path), Err(ServerError::NoCard { .. })));
        fs::write(with_suffix(&path, ".tmp"), b"left by a kill").unwrap();
        for state in [&b"one"[..], b"", b"another, longer"] {
            store.save(state).unwrap();
            assert_eq!(*read(&path).unwrap(), state);
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!with_suffix(&path, ".tmp").exists());
    }

    #[test]
    fn locked_state_names_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.state");
        let store = Store::lock(&path).unwrap();
        let error = Store::lock(&path).unwrap_err();
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        drop(store);
        Store::lock(&path).unwrap();
    }

    #[test]
    fn state_readable_by_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.state");
        fs::write(&path, b"state").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
        assert!(matches!(read(folder.path()), Err(ServerError::Corrupt { .. })));
    }

    #[test]
    fn lock_that_is_a_link_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("card.state"), folder.path().join("other"));
        let lock = with_suffix(&path, ".lock");
        fs::write(&other, "123").unwrap();
        std::os::unix::fs::symlink(&other, &lock).unwrap();
        assert!(Store::lock(&path).is_err());
        fs::remove_file(&lock).unwrap();
        fs::hard_link(&other, &lock).unwrap();
        let error = Store::lock(&path).unwrap_err().to_string();
        assert!(error.contains("remove it"), "{error}");
        fs::remove_file(&lock).unwrap();
        fs::write(&lock, "a file of somebody's, longer than any lock").unwrap();
        assert!(Store::lock(&path).is_err());
        assert!(fs::read_to_string(&lock).unwrap().contains("somebody's"));
        assert_eq!(fs::read_to_string(&other).unwrap(), "123");
    }

    #[test]
    fn failed_save_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.state");
        let mut store = Store::lock(&path).unwrap();
        // A folder in the place of the state: it cannot be replaced by a file.
        fs::create_dir(&path).unwrap();
        assert!(store.save(b"state").is_err());
        assert!(!with_suffix(&path, ".tmp").exists());
    }

    #[test]
    fn missing_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/card.state");
        assert!(Store::lock(&path).unwrap_err().to_string().contains("missing"));
        fs::create_dir(folder.path().join("missing")).unwrap();
        Store::lock(&path).unwrap();
    }
}
