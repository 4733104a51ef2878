// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace of each call and each command to the card, with start and duration.
//!
//! It contains no PIN, no key material and no data: calls have a name and a return value, commands
//! a header, lengths and a status word.

mod chrome;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cryptoki_sys::CK_RV;
use serde_json::json;
use warifu_card::ins;
use warifu_iotsafe_client::transport::Exchange;

use crate::functions::general_purpose::LOG;
use crate::rv;

/// A trace file. Processes may share it.
pub struct Trace {
    sink: Sink,
    pid: u32,
    /// The wall clock and the monotonic one, read together.
    epoch: (Duration, Instant),
    path: PathBuf,
    /// An event that could not be written was reported.
    reported: AtomicBool,
}

enum Sink {
    /// One line for each event, appended in one write.
    Lines(File),
    /// Trace events of Chrome.
    Chrome(chrome::Array),
}

/// Why a trace cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}: correct or unset WARIFU_PKCS11_TRACE", path = .path.display())]
pub struct TraceError {
    path: PathBuf,
    error: io::Error,
}

impl TraceError {
    /// Whether the error is temporary: the disk is full, or another process that writes to the file
    /// is stopped. The program continues without a trace then.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull, WouldBlock};
        matches!(self.error.kind(), QuotaExceeded | StorageFull | WouldBlock)
    }
}

impl Trace {
    /// Opens a trace to append to; a name ending in `.json` selects the format of Chrome.
    ///
    /// # Errors
    /// The file cannot be written, or is not a trace.
    pub fn open(path: &Path) -> Result<Arc<Trace>, TraceError> {
        let failed = |error| TraceError { path: path.to_owned(), error };
        let sink = if path.extension().is_some_and(|extension| extension == "json") {
            let array = chrome::Array::open(path).map_err(failed)?;
            array.push(&name_of_process()).map_err(failed)?;
            Sink::Chrome(array)
        } else {
            let file = open_private(OpenOptions::new().append(true), path);
            Sink::Lines(file.map_err(failed)?)
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Arc::new(Trace {
            sink,
            pid: process::id(),
            epoch: (now, Instant::now()),
            path: path.to_owned(),
            reported: AtomicBool::new(false),
        }))
    }

    /// Whether a process has opened it.
    pub(crate) fn is_of(&self, pid: u32) -> bool {
        self.pid == pid
    }

    /// Records a call that has returned.
    pub fn call(&self, name: &str, start: Instant, value: CK_RV) {
        let value = match rv::name(value) {
            "CKR_?" => format!("CKR {value:#x}"),
            name => name.to_owned(),
        };
        self.event("call", name, &value, start, start.elapsed());
    }

    /// Records an exchange with the card or the agent.
    pub fn exchange(&self, exchange: &Exchange) {
        let Exchange { name, header, command_bytes, answer_bytes, sw, start, duration } = *exchange;
        if let Some(name) = name {
            let what = format!("{command_bytes} B > {answer_bytes} B");
            return self.event("agent", name, &what, start, duration);
        }
        let name = header.map_or("reset", |[_, ins, ..]| command(ins));
        let header =
            header.map(|[cla, ins, p1, p2]| format!("{cla:02X}{ins:02X}{p1:02X}{p2:02X} "));
        let sw = sw.map_or_else(|| "no answer".to_owned(), |sw| format!("{sw:04X}"));
        let header = header.unwrap_or_default();
        let what = format!("{header}{command_bytes} B > {answer_bytes} B {sw}");
        self.event("apdu", name, &what, start, duration);
    }

    fn event(&self, kind: &str, name: &str, what: &str, start: Instant, duration: Duration) {
        let since = self.epoch.0 + start.saturating_duration_since(self.epoch.1);
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let (pid, thread) = (self.pid, thread_number());
        let written = match &self.sink {
            Sink::Lines(file) => {
                let (at, took) = (since.as_secs_f64(), micros(duration) / 1e3);
                let line = format!("{at:.6} {pid} {thread} {took:>11.3} ms {kind} {name} {what}\n");
                { file }.write_all(line.as_bytes())
            }
            Sink::Chrome(array) => {
                let (ts, dur, args) = (micros(since), micros(duration), json!({ "result": what }));
                let event = json!({
                    "ph": "X", "cat": kind, "name": name, "pid": pid, "tid": thread,
                    "ts": ts, "dur": dur, "args": args,
                });
                array.push(&event.to_string())
            }
        };
        // A full disk must not make a signature fail.
        if let Err(error) = written
            && !self.reported.swap(true, Ordering::Relaxed)
        {
            LOG.line(format_args!("{}: the trace lacks events: {error}", self.path.display()));
        }
    }
}

/// Opens or creates a file that nobody else reads. A symbolic link is refused: whoever may write to
/// the folder could lead it to another file of this user.
fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let opened = options.create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path);
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("is a symbolic link, which is not followed"),
        _ => error,
    })
}

/// What the process is called, beside its number.
fn name_of_process() -> String {
    let name = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let args = json!({ "name": name.trim_end() });
    json!({ "ph": "M", "name": "process_name", "pid": process::id(), "args": args }).to_string()
}

/// A small number for this thread.
fn thread_number() -> u64 {
    use std::sync::atomic::AtomicU64;
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: u64 = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    }
    NUMBER.try_with(|number| *number).unwrap_or_default()
}

/// The command of an instruction, as GSMA IoT.05 and ISO 7816-4 name it.
fn command(instruction: u8) -> &'static str {
    match instruction {
        ins::PUT_PUBLIC_KEY_INIT => "PUT PUBLIC KEY - INIT",
        ins::PUT_PUBLIC_KEY_UPDATE => "PUT PUBLIC KEY - UPDATE",
        ins::COMPUTE_SIGNATURE_INIT => "COMPUTE SIGNATURE - INIT",
        ins::COMPUTE_SIGNATURE_UPDATE => "COMPUTE SIGNATURE - UPDATE",
        ins::VERIFY_SIGNATURE_INIT => "VERIFY SIGNATURE - INIT",
        ins::VERIFY_SIGNATURE_UPDATE => "VERIFY SIGNATURE - UPDATE",
        ins::COMPUTE_DH => "COMPUTE DH",
        ins::COMPUTE_PRF => "COMPUTE PRF",
        ins::HKDF_EXTRACT => "HKDF EXTRACT",
        ins::GENERATE_KEY_PAIR => "GENERATE KEY PAIR",
        ins::GET_DATA => "GET DATA",
        ins::READ_PUBLIC_KEY => "READ PUBLIC KEY",
        ins::GET_RANDOM => "GET RANDOM",
        ins::READ_FILE => "READ FILE",
        ins::VERIFY => "VERIFY",
        ins::MANAGE_CHANNEL => "MANAGE CHANNEL",
        ins::SELECT => "SELECT",
        ins::GET_RESPONSE => "GET RESPONSE",
        _ => "command",
    }
}

#[cfg(test)]
mod opening {
    use super::*;

    #[test]
    fn temporary_and_permanent_errors() {
        let folder = std::env::temp_dir().join(format!("warifu-trace-{}", process::id()));
        fs::create_dir(&folder).unwrap();
        let passes =
            |name: &str| Trace::open(&folder.join(name)).err().map(|error| error.is_temporary());
        assert_eq!(passes("good.json"), None);
        let other = File::open(folder.join("good.json")).unwrap();
        other.lock().unwrap();
        assert_eq!(passes("good.json"), Some(true));
        other.unlock().unwrap();
        assert_eq!(passes("good.json"), None);
        let full = chrome::Array::open(Path::new("/dev/full")).unwrap();
        let error = full.push("{}").unwrap_err();
        assert!(TraceError { path: PathBuf::new(), error }.is_temporary());
        assert_eq!(passes("none/trace.json"), Some(false));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn trace_is_private_and_follows_no_link() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = std::env::temp_dir().join(format!("warifu-trace-link-{}", process::id()));
        fs::create_dir(&folder).unwrap();
        for name in ["trace.txt", "trace.json"] {
            let (target, link) = (folder.join(name), folder.join(format!("link-{name}")));
            Trace::open(&target).unwrap();
            let mode = fs::metadata(&target).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
            symlink(folder.join("none"), &link).unwrap();
            let Err(error) = Trace::open(&link) else { panic!("{name} follows a link") };
            assert!(error.to_string().contains("is a symbolic link"), "{error}");
            assert!(!error.is_temporary() && !folder.join("none").exists());
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
