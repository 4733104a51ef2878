// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time as a number, so that everything below the I/O shell can be stepped by a test.

use std::ops::{Add, Sub};

/// Nanoseconds: a duration, or an instant since an epoch that the caller chose (the shell uses `CLOCK_MONOTONIC`).
///
/// Arithmetic saturates: a link with a rate of 1 bit/s may owe more time than fits, and "never" is then the right answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Zero: the epoch, or no time at all.
    pub const ZERO: Nanos = Nanos(0);
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    /// The time from `other` to `self`, zero if `other` is the later one.
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}
