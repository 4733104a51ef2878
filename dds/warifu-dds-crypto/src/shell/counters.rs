// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often each function of the transform is called, for how many bytes, how long it takes, and
//! what it refuses: written when the domain ends, where `WARIFU_DDS_COUNTERS` names a file, and
//! else not counted, which would cost a short message more than its copy.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{self, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::error::Error;

type Result<T, E = Error> = std::result::Result<T, E>;

/// Environment variable: a file, to which each domain of each process adds its lines.
pub const COUNTERS_VARIABLE: &str = "WARIFU_DDS_COUNTERS";

/// Where something is protected, or its protection taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// `encode_serialized_payload`.
    EncodePayload,
    /// `encode_datawriter_submessage`.
    EncodeWriterSubmessage,
    /// `encode_datareader_submessage`.
    EncodeReaderSubmessage,
    /// `encode_rtps_message`.
    EncodeMessage,
    /// `decode_serialized_payload`.
    DecodePayload,
    /// `decode_datawriter_submessage`.
    DecodeWriterSubmessage,
    /// `decode_datareader_submessage`.
    DecodeReaderSubmessage,
    /// `decode_rtps_message`.
    DecodeMessage,
    /// `preprocess_secure_submsg`.
    Preprocess,
}

impl Site {
    const ALL: [(Self, &str); 9] = [
        (Self::EncodePayload, "encode_serialized_payload"),
        (Self::EncodeWriterSubmessage, "encode_datawriter_submessage"),
        (Self::EncodeReaderSubmessage, "encode_datareader_submessage"),
        (Self::EncodeMessage, "encode_rtps_message"),
        (Self::DecodePayload, "decode_serialized_payload"),
        (Self::DecodeWriterSubmessage, "decode_datawriter_submessage"),
        (Self::DecodeReaderSubmessage, "decode_datareader_submessage"),
        (Self::DecodeMessage, "decode_rtps_message"),
        (Self::Preprocess, "preprocess_secure_submsg"),
    ];
}

/// Why a call was refused, as far as it is counted.
const CAUSES: [&str; 6] =
    ["malformed", "forged", "replayed", "not_as_agreed", "unknown_key", "other"];

/// Above this a file is not added to: a process of each domain adds about 2 KiB.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// One domain's.
#[derive(Default)]
pub struct Counters {
    sites: [Counts; Site::ALL.len()],
    file: Option<PathBuf>,
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    bytes: AtomicU64,
    time_ns: AtomicU64,
    refused: [AtomicU64; CAUSES.len()],
}

impl Counters {
    /// Of a domain that will write them there. The file is made now, so that one that cannot be
    /// written to is known before hours have been counted, and opened again at the end: a program
    /// that becomes a daemon closes what it has not opened itself.
    pub fn to(file: PathBuf) -> io::Result<Self> {
        // The program may change its folder.
        let file = path::absolute(file)?;
        open(&file)?;
        Ok(Self { file: Some(file), ..Self::default() })
    }

    /// Makes a call about so many bytes.
    #[inline]
    pub fn count<T>(
        &self,
        site: Site,
        bytes: usize,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if self.file.is_none() {
            return call();
        }
        let begun = Instant::now();
        let given = call();
        let took_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.add(site, bytes, took_ns, given.as_ref().err());
        given
    }

    fn add(&self, site: Site, bytes: usize, took_ns: u64, refused: Option<&Error>) {
        let counts = &self.sites[site as usize];
        add(&counts.calls, 1);
        add(&counts.bytes, bytes as u64);
        add(&counts.time_ns, took_ns);
        if let Some(error) = refused {
            add(&counts.refused[cause(error)], 1);
        }
    }

    /// A line of JSON for each function that was called. `aead` is the domain's.
    pub fn lines(&self, process: u32, aead: &str) -> String {
        let mut lines = String::new();
        for (site, name) in Site::ALL {
            let counts = &self.sites[site as usize];
            let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let calls = number(&counts.calls);
            if calls == 0 {
                continue;
            }
            let (bytes, time_ns) = (number(&counts.bytes), number(&counts.time_ns));
            // Names that are ours need no escapes; writing to a string does not fail.
            let _ = write!(
                lines,
                "{{\"process\":{process},\"aead\":\"{aead}\",\"site\":\"{name}\",\"calls\":{calls},\
                 \"bytes\":{bytes},\"time_ns\":{time_ns},\"refused\":{{"
            );
            for (index, (cause, counter)) in CAUSES.iter().zip(&counts.refused).enumerate() {
                let comma = if index == 0 { "" } else { "," };
                let _ = write!(lines, "{comma}\"{cause}\":{}", number(counter));
            }
            lines.push_str("}}\n");
        }
        lines
    }

    /// Adds the lines to the file, if there is one; an error comes with its name.
    pub fn write(&self, process: u32, aead: &str) -> Result<(), (&Path, io::Error)> {
        let Some(path) = &self.file else { return Ok(()) };
        // At once, so that lines of two processes do not mix (O_APPEND).
        let write = |mut file: File| file.write_all(self.lines(process, aead).as_bytes());
        open(path).and_then(write).map_err(|error| (path.as_path(), error))
    }
}

/// Opens a file to add to it: a regular one, made for the user alone, no link, and no pipe that
/// nobody reads.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if found.len() > MAX_FILE_BYTES {
        return Err(io::Error::other("it has more than 64 MiB already"));
    }
    Ok(file)
}

/// Stays at the greatest number rather than beginning again at 0.
fn add(counter: &AtomicU64, number: u64) {
    let sum = |before: u64| Some(before.saturating_add(number));
    let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
}

const fn cause(error: &Error) -> usize {
    match error {
        Error::Malformed(_) => 0,
        Error::Forged(_) => 1,
        Error::Replayed => 2,
        Error::Protection(_) | Error::NotForUs(_) => 3,
        Error::UnknownKey => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    /// A folder of a test's own, by its name.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a new folder");
        folder
    }

    #[test]
    fn calls_bytes_and_refusals_are_counted_by_site_and_cause() {
        let folder = folder("counters-of-sites");
        let file = folder.join("counters.jsonl");
        let counters = Counters::to(file.clone()).expect("a new file");
        assert_eq!(fs::metadata(&file).expect("it is there").mode() & 0o777, 0o600);
        counters.count(Site::DecodePayload, 100, || Ok(())).expect("it is given on");
        let refused =
            counters.count(Site::DecodePayload, 50, || Err::<(), _>(Error::Forged("tag")));
        assert_eq!(refused, Err(Error::Forged("tag")));
        let _ = counters.count(Site::DecodeMessage, 7, || Err::<(), _>(Error::Replayed));
        for site in [Site::DecodePayload, Site::DecodeMessage] {
            counters.sites[site as usize].time_ns.store(3, Ordering::Relaxed);
        }
        counters.write(12, "AES-256-GCM").expect("written");
        assert_eq!(
            fs::read_to_string(&file).expect("readable"),
            "{\"process\":12,\"aead\":\"AES-256-GCM\",\"site\":\"decode_serialized_payload\",\
             \"calls\":2,\"bytes\":150,\"time_ns\":3,\"refused\":{\"malformed\":0,\"forged\":1,\
             \"replayed\":0,\"not_as_agreed\":0,\"unknown_key\":0,\"other\":0}}\n\
             {\"process\":12,\"aead\":\"AES-256-GCM\",\"site\":\"decode_rtps_message\",\
             \"calls\":1,\"bytes\":7,\"time_ns\":3,\"refused\":{\"malformed\":0,\"forged\":0,\
             \"replayed\":1,\"not_as_agreed\":0,\"unknown_key\":0,\"other\":0}}\n"
        );
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_sum_stays_at_the_greatest_number() {
        let counter = AtomicU64::new(u64::MAX - 1);
        add(&counter, 5);
        assert_eq!(counter.load(Ordering::Relaxed), u64::MAX);
    }

    #[test]
    fn only_a_regular_file_that_is_no_link_is_written_to() {
        let folder = folder("counters-of-files");
        let (file, link, pipe) = (folder.join("file"), folder.join("link"), folder.join("pipe"));
        fs::write(&file, "before\n").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let name = CString::new(pipe.as_os_str().as_encoded_bytes()).expect("a path");
        // SAFETY: a text that ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for refused in [&link, &pipe, &folder, &folder.join("no/such/folder")] {
            assert!(Counters::to(refused.clone()).is_err(), "{}", refused.display());
        }
        // Nor a pipe that somebody reads.
        let reads = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&pipe);
        let reads = reads.expect("a reader");
        assert!(Counters::to(pipe).is_err());
        drop(reads);
        // Nor one that is as long as it may get.
        let long = OpenOptions::new().write(true).open(&file).expect("a file");
        long.set_len(MAX_FILE_BYTES + 1).expect("a hole");
        assert!(Counters::to(file).is_err());
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn sites_are_counted_in_the_order_of_their_names() {
        for (index, (site, _)) in Site::ALL.into_iter().enumerate() {
            assert_eq!(site as usize, index);
        }
    }
}
