// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which processes have which channels open behind a modem. A process that is killed cannot close
//! its channel, nothing resets the card, and after three of them nobody has a channel left until
//! the modem restarts. So each writes its channels down, and the next one closes those of processes
//! that have ended. Whoever holds the lock of the line may use the record.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;

use rustix::fs::OFlags;
use warifu_os::{fs_user, secure_variable};

/// More than the channels of any card.
const RECORD_MAX_BYTES: u64 = 4096;

/// The record of one line: a file that is gone after a restart of the machine, as the processes
/// are. A record that cannot be kept is none.
pub struct ChannelRecord {
    path: PathBuf,
}

/// A line of the file: `PID START CHANNEL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    pid: u32,
    /// When the process started, in clock ticks since the machine's start: numbers of processes are
    /// used again.
    start: u64,
    channel: u8,
}

impl ChannelRecord {
    /// The record of the device with this number, in the user's folder for such files.
    #[must_use]
    pub fn of_device(device: u64) -> ChannelRecord {
        ChannelRecord::at(&folder(), device)
    }

    fn at(folder: &Path, device: u64) -> ChannelRecord {
        ChannelRecord { path: folder.join(format!("modem-{device:x}.channels")) }
    }

    /// This process has opened a channel.
    pub fn opened(&self, channel: u8) {
        let Some(start) = start_of(process::id()) else { return };
        let own = Entry { pid: process::id(), start, channel };
        self.change(|entries| {
            entries.retain(|entry| *entry != own);
            entries.push(own);
        });
    }

    /// A channel of this process, or of one that has ended, is closed.
    pub fn closed(&self, channel: u8) {
        let own = process::id();
        self.change(|entries| {
            entries.retain(|entry| {
                entry.channel != channel || (entry.pid != own && entry.is_of_a_living_process())
            });
        });
    }

    /// The channels of processes that have ended, each once; none that a living process has: after
    /// a restart of the modem both may have had the same.
    #[must_use]
    pub fn orphans(&self) -> Vec<u8> {
        let entries = self.read().unwrap_or_default();
        let (living, ended): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(Entry::is_of_a_living_process);
        let mut orphans = Vec::new();
        for Entry { channel, .. } in ended {
            if living.iter().all(|entry| entry.channel != channel) && !orphans.contains(&channel) {
                orphans.push(channel);
            }
        }
        orphans
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Entry>)) {
        // Without a record it is as it always was: the modem's restart closes what is left.
        let _ = self.try_change(change);
    }

    fn try_change(&self, change: impl FnOnce(&mut Vec<Entry>)) -> io::Result<()> {
        let mut entries = self.read().unwrap_or_default();
        let before = entries.clone();
        change(&mut entries);
        if entries == before {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            match fs::DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => check_owner(folder)?,
            }
        }
        let lines: String = entries.iter().map(Entry::line).collect();
        // In place of the old one at once: who is killed here leaves one of the two. What another
        // left behind is of nobody, under the line's lock.
        let part = self.path.with_extension("part");
        let _ = fs::remove_file(&part);
        open(&part, OpenOptions::new().write(true).create_new(true))?
            .write_all(lines.as_bytes())?;
        fs::rename(&part, &self.path)
    }

    fn read(&self) -> io::Result<Vec<Entry>> {
        self.path.parent().map_or(Ok(()), check_owner)?;
        let mut text = String::new();
        open(&self.path, OpenOptions::new().read(true))?
            .take(RECORD_MAX_BYTES)
            .read_to_string(&mut text)?;
        Ok(text.lines().filter_map(Entry::of).collect())
    }
}

/// The user's folder for files that end with the machine's run; without XDG_RUNTIME_DIR, as in
/// services and under cron, one that is found again all the same.
fn folder() -> PathBuf {
    let user = user();
    let of_user = || {
        let usual = PathBuf::from(format!("/run/user/{user}"));
        check_owner(&usual).is_ok().then(|| usual.join("warifu"))
    };
    match secure_variable("XDG_RUNTIME_DIR") {
        Some(folder) => Path::new(&folder).join("warifu"),
        None if user == 0 => "/run/warifu".into(),
        None => of_user().unwrap_or_else(|| Path::new("/tmp").join(format!("warifu-{user}"))),
    }
}

/// Whose files are written: not root's, where root works for the user who called sudo.
fn user() -> u32 {
    fs_user().0.unsigned_abs()
}

/// A folder that is another user's, or a link, is not used: what it says could not be trusted.
fn check_owner(folder: &Path) -> io::Result<()> {
    let about = fs::symlink_metadata(folder)?;
    match about.is_dir() && about.uid() == user() {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    options.mode(0o600).custom_flags(flags).open(path)
}

impl Entry {
    fn of(line: &str) -> Option<Entry> {
        let mut words = line.split(' ');
        let entry = Entry {
            pid: words.next()?.parse().ok()?,
            start: words.next()?.parse().ok()?,
            channel: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(entry)
    }

    fn line(&self) -> String {
        let Entry { pid, start, channel } = self;
        format!("{pid} {start} {channel}\n")
    }

    fn is_of_a_living_process(&self) -> bool {
        start_of(self.pid) == Some(self.start)
    }
}

/// When a process started; None for none. A zombie has ended: its files are closed.
fn start_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain spaces and parentheses (proc(5)): fields are counted after its end.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    // The 22nd, of which the first two are before, and the third was the state.
    fields.nth(18)?.parse().ok().filter(|_| !matches!(state, "Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str) -> (PathBuf, ChannelRecord) {
        let folder = std::env::temp_dir().join(format!("warifu-channels-{}-{name}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        let record = ChannelRecord::at(&folder, 0x8801);
        (folder, record)
    }

    #[test]
    fn channels_of_ended_processes_only() {
        let (folder, record) = record("ended");
        record.opened(1);
        assert!(record.orphans().is_empty(), "of this process");
        let mut child = process::Command::new("sleep").arg("60").spawn().unwrap();
        let start = start_of(child.id()).unwrap();
        record.change(|entries| entries.push(Entry { pid: child.id(), start, channel: 2 }));
        // The number of a process that has ended, used again by this one.
        let again = Entry { pid: process::id(), start: 1, channel: 3 };
        record.change(|entries| entries.push(again));
        assert_eq!(record.orphans(), [3]);
        record.closed(2);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(record.orphans(), [2, 3], "a living process's is not taken for closed");
        record.opened(3);
        assert_eq!(record.orphans(), [2], "a living process has the other by now");
        record.closed(2);
        record.closed(3);
        assert!(record.orphans().is_empty());
        record.closed(1);
        assert_eq!(record.read().unwrap(), []);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn damaged_and_missing_records() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let (folder, record) = record("damaged");
        assert!(record.orphans().is_empty());
        record.opened(1);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&record.path)), (0o700, 0o600));
        fs::write(&record.path, "1 2\nx\n4194305 7 9 9\n4194305 7 300\n4194305 7 2\n").unwrap();
        assert_eq!(record.orphans(), [2]);
        fs::remove_file(&record.path).unwrap();
        let other = folder.join("other");
        fs::write(&other, "4194305 7 2\n").unwrap();
        symlink(&other, &record.path).unwrap();
        assert!(record.orphans().is_empty());
        record.opened(1);
        assert_eq!(fs::read_to_string(&other).unwrap(), "4194305 7 2\n");
        assert!(fs::symlink_metadata(&record.path).unwrap().is_file(), "in place of the link");
        assert_eq!(mode(&record.path), 0o600);
        fs::remove_dir_all(&folder).unwrap();
    }
}
