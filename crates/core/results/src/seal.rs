// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What tells a file that was cut, damaged or exchanged from the one that was written: its length
//! and its SHA-256, taken while it is written, so that no file is read again for it.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Length and hash of a file, as the manifest keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// Length, bytes.
    pub bytes: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

/// SHA-256 of `data`, hexadecimal.
pub(crate) fn sha256(data: &[u8]) -> String {
    hex(&Sha256::digest(data))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Hashes what passes through it to `inner`.
pub(crate) struct Sealing<W> {
    inner: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Sealing<W> {
    pub(crate) fn new(inner: W) -> Sealing<W> {
        Sealing { inner, hash: Sha256::new(), bytes: 0 }
    }

    /// Where it writes.
    pub(crate) fn inner(&self) -> &W {
        &self.inner
    }

    /// The seal of all that was written until now.
    pub(crate) fn sealed(&self) -> Sealed {
        Sealed { bytes: self.bytes, sha256: hex(&self.hash.clone().finalize()) }
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(data)?;
        self.hash.update(&data[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes three bytes at a time, as a file may.
    struct Slow(Vec<u8>);

    impl Write for Slow {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let count = data.len().min(3);
            self.0.extend_from_slice(&data[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn partial_writes_are_hashed() {
        let mut sealing = Sealing::new(Slow(Vec::new()));
        sealing.write_all(b"abcdefgh").unwrap();
        assert_eq!(sealing.inner().0, b"abcdefgh");
        assert_eq!(sealing.sealed(), Sealed { bytes: 8, sha256: sha256(b"abcdefgh") });
        // FIPS 180-4, "abc".
        assert!(sha256(b"abc").starts_with("ba7816bf8f01cfea"));
    }
}
