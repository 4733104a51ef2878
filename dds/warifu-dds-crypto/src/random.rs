// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where random bytes come from: the system's generator, or a test's.

use crate::error::{Error, Result};

/// A source of random bytes.
pub trait Random: Send + Sync {
    /// Fills all of `bytes`, or fails.
    fn fill(&self, bytes: &mut [u8]) -> Result<()>;
}

/// The kernel's generator. AWS-LC's own, which it seeds, first gathers jitter for a tenth of a
/// second.
pub struct System;

impl Random for System {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        getrandom::fill(bytes).map_err(|_| Error::Random)
    }
}
