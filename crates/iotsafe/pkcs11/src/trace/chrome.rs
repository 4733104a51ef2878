// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Trace events of Chrome, which Perfetto and chrome://tracing show: one JSON array that is valid
//! after every event, even if a process is killed, and that several processes append to.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use super::open_private;
use crate::slot::lock;

const BEGIN: &str = "[\n";
const END: &str = "\n]\n";
/// How long an event waits for another process to write. Only a stopped process takes longer, and a
/// signature must not wait for it: the event is dropped.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_micros(50);

/// A file with an array of events.
pub(super) struct Array(Mutex<File>);

impl Array {
    /// Creates a file, or opens one to append to.
    pub(super) fn open(path: &Path) -> io::Result<Array> {
        let mut options = OpenOptions::new();
        let file = open_private(options.read(true).write(true).truncate(false), path)?;
        if file.metadata()?.len() > 0 && !with_lock(&file, || Ok(ends_as_ours(&file)))? {
            let text = "not a trace of this module: remove it";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(Array(Mutex::new(file)))
    }

    /// Appends an event: one line of JSON.
    pub(super) fn push(&self, event: &str) -> io::Result<()> {
        // The lock of the file excludes other processes, this one other threads.
        let file = lock(&self.0);
        with_lock(&file, || append(&file, event))
    }
}

fn append(file: &File, event: &str) -> io::Result<()> {
    let end = file.metadata()?.len().checked_sub(END.len() as u64);
    let Some(end) = end else {
        return file.write_all_at(format!("{BEGIN}{event}{END}").as_bytes(), 0);
    };
    file.write_all_at(format!(",\n{event}{END}").as_bytes(), end).inspect_err(|_| {
        // The disk is full: restore the end of the file.
        let _ = file.write_all_at(END.as_bytes(), end);
        let _ = file.set_len(end + END.len() as u64);
    })
}

/// Runs `work` with the file locked against other processes.
fn with_lock<T>(file: &File, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let until = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(PAUSE),
            Err(error) => return Err(error.into()),
        }
    }
    let result = work();
    let _ = file.unlock(); // closing the file would do it too
    result
}

fn ends_as_ours(file: &File) -> bool {
    let mut tail = [0; END.len()];
    let end = file.metadata().ok().and_then(|data| data.len().checked_sub(tail.len() as u64));
    end.is_some_and(|end| file.read_exact_at(&mut tail, end).is_ok()) && tail == *END.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("warifu-{}-{name}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    fn events(path: &Path) -> Vec<serde_json::Value> {
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    #[test]
    fn trace_is_valid_after_every_event() {
        let path = path("whole.json");
        let first = Array::open(&path).unwrap();
        for at in 0..10 {
            first.push(&format!("{{\"at\":{at}}}")).unwrap();
            assert_eq!(events(&path).len(), at + 1);
        }
        drop(first);
        Array::open(&path).unwrap().push("{}").unwrap();
        assert_eq!(events(&path).len(), 11);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn concurrent_writers() {
        let path = path("many.json");
        // Each with a file of its own, as processes have.
        let writers = (0..8).map(|writer| {
            let array = Array::open(&path).unwrap();
            thread::spawn(move || {
                for _ in 0..100 {
                    array.push(&format!("{{\"writer\":{writer}}}")).unwrap();
                }
            })
        });
        writers.collect::<Vec<_>>().into_iter().for_each(|writer| writer.join().unwrap());
        let events = events(&path);
        for writer in 0..8 {
            let count = events.iter().filter(|event| event["writer"] == writer).count();
            assert_eq!(count, 100);
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn foreign_file_is_not_overwritten() {
        let path = path("other.json");
        fs::write(&path, "{\"mine\": 1}").unwrap();
        assert!(Array::open(&path).is_err_and(|error| error.to_string().contains("remove it")));
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"mine\": 1}");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn stopped_writer_does_not_block_others() {
        let path = path("stopped.json");
        let array = Array::open(&path).unwrap();
        array.push("{}").unwrap();
        let stopped = File::open(&path).unwrap();
        stopped.lock().unwrap();
        assert!(array.push("{}").is_err());
        stopped.unlock().unwrap();
        assert_eq!(events(&path).len(), 1);
        fs::remove_file(path).unwrap();
    }
}
