// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where random bytes come from: the system's generator, or a test's.

use aws_lc_rs::rand::{SecureRandom, SystemRandom};

use crate::error::{Error, Result};

/// A source of random bytes.
pub trait Random: Send + Sync {
    /// Fills all of `bytes`, or fails.
    fn fill(&self, bytes: &mut [u8]) -> Result<()>;
}

/// AWS-LC's generator, which the system seeds.
pub struct System(SystemRandom);

impl System {
    /// Ready for use.
    pub fn new() -> Self {
        Self(SystemRandom::new())
    }
}

impl Default for System {
    fn default() -> Self {
        Self::new()
    }
}

impl Random for System {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        self.0.fill(bytes).map_err(|_| Error::Random)
    }
}
