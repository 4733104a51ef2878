// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The only place where this crate looks at a clock.

use crate::time::Nanos;
use rustix::time::{ClockId, Timespec};

/// The present on CLOCK_MONOTONIC, the same in every process and namespace of the machine.
#[must_use]
pub fn now() -> Nanos {
    let time = rustix::time::clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Sleeps until an instant of CLOCK_MONOTONIC, or returns at once if it has passed.
pub fn sleep_until(instant: Nanos) {
    // A signal wakes the sleeper early; the absolute time makes it safe to go back.
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &timespec(instant)).is_err()
        && now() < instant
    {}
}

/// An instant as the kernel takes it.
pub(crate) fn timespec(instant: Nanos) -> Timespec {
    Timespec {
        tv_sec: (instant.0 / 1_000_000_000) as i64,
        tv_nsec: (instant.0 % 1_000_000_000) as _,
    }
}
