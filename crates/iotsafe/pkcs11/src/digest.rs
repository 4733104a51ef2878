// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Digests in parts.

use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use warifu_iotsafe_client::Hash;

/// A digest under way.
#[derive(Clone)]
pub enum Digest {
    /// SHA-1, for CKM_ECDSA_SHA1 alone.
    Sha1(Sha1),
    /// SHA-256.
    Sha256(Sha256),
    /// SHA-384.
    Sha384(Sha384),
    /// SHA-512.
    Sha512(Sha512),
}

impl Digest {
    /// Begins a digest.
    #[must_use]
    pub fn new(hash: Hash) -> Digest {
        match hash {
            Hash::Sha256 => Digest::Sha256(Sha256::new()),
            Hash::Sha384 => Digest::Sha384(Sha384::new()),
            Hash::Sha512 => Digest::Sha512(Sha512::new()),
        }
    }

    /// Begins SHA-1, which cards do not have.
    #[must_use]
    pub fn sha1() -> Digest {
        Digest::Sha1(Sha1::new())
    }

    /// Adds data.
    pub fn update(&mut self, data: &[u8]) {
        match self {
            Digest::Sha1(state) => state.update(data),
            Digest::Sha256(state) => state.update(data),
            Digest::Sha384(state) => state.update(data),
            Digest::Sha512(state) => state.update(data),
        }
    }

    /// The digest of the data so far.
    #[must_use]
    pub fn value(&self) -> Vec<u8> {
        match self.clone() {
            Digest::Sha1(state) => state.finalize().to_vec(),
            Digest::Sha256(state) => state.finalize().to_vec(),
            Digest::Sha384(state) => state.finalize().to_vec(),
            Digest::Sha512(state) => state.finalize().to_vec(),
        }
    }

    /// Its length, bytes.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        match self {
            Digest::Sha1(_) => 20,
            Digest::Sha256(_) => 32,
            Digest::Sha384(_) => 48,
            Digest::Sha512(_) => 64,
        }
    }
}
