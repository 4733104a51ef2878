// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often each function of the transform is called, for how many bytes, how long it takes, and
//! what it refuses. Counted always; timed, and written when the domain ends, where
//! `WARIFU_DDS_COUNTERS` names a file.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::error::{Error, Result};

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
const CAUSES: [&str; 5] = ["malformed", "forged", "replayed", "not_as_agreed", "other"];

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
    /// Timed and written if a file is named.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file, ..Self::default() }
    }

    /// Makes a call about so many bytes.
    pub fn count<T>(
        &self,
        site: Site,
        bytes: usize,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let counts = &self.sites[site as usize];
        let begun = self.file.is_some().then(Instant::now);
        let given = call();
        if let Some(begun) = begun {
            let took_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            counts.time_ns.fetch_add(took_ns, Ordering::Relaxed);
        }
        counts.calls.fetch_add(1, Ordering::Relaxed);
        counts.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Err(error) = &given {
            counts.refused[cause(error)].fetch_add(1, Ordering::Relaxed);
        }
        given
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

    /// Adds the lines to the file, if there is one.
    pub fn write(&self, process: u32, aead: &str) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut file = OpenOptions::new().create(true).append(true).open(file)?;
        // At once, so that lines of two processes do not mix (O_APPEND).
        file.write_all(self.lines(process, aead).as_bytes())
    }
}

const fn cause(error: &Error) -> usize {
    match error {
        Error::Malformed(_) => 0,
        Error::Forged(_) => 1,
        Error::Replayed => 2,
        Error::Protection(_) => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_bytes_and_refusals_are_counted_by_site_and_cause() {
        let counters = Counters::new(None);
        counters.count(Site::DecodePayload, 100, || Ok(())).expect("it is given on");
        let refused =
            counters.count(Site::DecodePayload, 50, || Err::<(), _>(Error::Forged("tag")));
        assert_eq!(refused, Err(Error::Forged("tag")));
        let _ = counters.count(Site::DecodeMessage, 7, || Err::<(), _>(Error::Replayed));
        assert_eq!(
            counters.lines(12, "AES-256-GCM"),
            "{\"process\":12,\"aead\":\"AES-256-GCM\",\"site\":\"decode_serialized_payload\",\
             \"calls\":2,\"bytes\":150,\"time_ns\":0,\"refused\":{\"malformed\":0,\"forged\":1,\
             \"replayed\":0,\"not_as_agreed\":0,\"other\":0}}\n\
             {\"process\":12,\"aead\":\"AES-256-GCM\",\"site\":\"decode_rtps_message\",\
             \"calls\":1,\"bytes\":7,\"time_ns\":0,\"refused\":{\"malformed\":0,\"forged\":0,\
             \"replayed\":1,\"not_as_agreed\":0,\"other\":0}}\n"
        );
    }

    #[test]
    fn sites_are_counted_in_the_order_of_their_names() {
        for (index, (site, _)) in Site::ALL.into_iter().enumerate() {
            assert_eq!(site as usize, index);
        }
    }
}
