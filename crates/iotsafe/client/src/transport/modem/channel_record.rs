// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which processes have which channels open behind a modem. A process that is killed cannot close
//! its channel, nothing resets the card, and after three of them nobody has a channel left until
//! the modem restarts. So each writes its channels down, and the next one closes those of processes
//! that have ended. Whoever holds the lock of the line may use the record.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;

use rustix::fs::OFlags;
use warifu_os::secure_variable;

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
        let folder = secure_variable("XDG_RUNTIME_DIR").unwrap_or_else(|| "/run".to_owned());
        ChannelRecord::at(&Path::new(&folder).join("warifu"), device)
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

    /// The channels of processes that have ended.
    #[must_use]
    pub fn orphans(&self) -> Vec<u8> {
        let entries = self.read().unwrap_or_default();
        let orphans = entries.iter().filter(|entry| !entry.is_of_a_living_process());
        orphans.map(|entry| entry.channel).collect()
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
        if let Some(folder) = self.path.parent()
            && !folder.exists()
        {
            fs::DirBuilder::new().mode(0o700).create(folder)?;
        }
        let lines: String = entries.iter().map(Entry::line).collect();
        self.open(OpenOptions::new().write(true).create(true).truncate(true))?
            .write_all(lines.as_bytes())
    }

    fn read(&self) -> io::Result<Vec<Entry>> {
        let mut text = String::new();
        self.open(OpenOptions::new().read(true))?
            .take(RECORD_MAX_BYTES)
            .read_to_string(&mut text)?;
        Ok(text.lines().filter_map(Entry::of).collect())
    }

    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        options.mode(0o600).custom_flags(flags).open(&self.path)
    }
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
        fs::remove_dir_all(&folder).unwrap();
    }
}
