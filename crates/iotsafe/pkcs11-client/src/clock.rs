// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What calls are timed on.

use std::time::Instant;

/// A clock in ns from some beginning; it does not go back.
pub trait Clock {
    /// The present, ns.
    fn now_ns(&self) -> u64;
}

/// The machine's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic(Instant);

impl Monotonic {
    /// A clock that begins now.
    #[must_use]
    pub fn start() -> Monotonic {
        Monotonic(Instant::now())
    }
}

impl Clock for Monotonic {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
