// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The only place where this crate looks at a clock.

use crate::sys;
use rustix::time::{ClockId, Timespec};
use std::os::fd::AsFd;
use warifu_model::Nanos;

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

/// When the packet last received from a socket came into its network stack: without the time that
/// its receiver took to wake up. `None` the first time that a socket is asked; its packets are
/// stamped from then on, once the kernel has got round to it.
#[must_use]
pub fn received_at(socket: impl AsFd) -> Option<Nanos> {
    let stamp = sys::socket_stamp(socket.as_fd()).ok()?;
    // The stamp is on the wall clock. Its distance to the monotonic one is read here and now.
    let wall = rustix::time::clock_gettime(ClockId::Realtime);
    let ago = (wall.tv_sec - stamp.tv_sec) * 1_000_000_000 + (wall.tv_nsec - stamp.tv_nsec);
    Some(now() - Nanos(u64::try_from(ago).unwrap_or(0)))
}

/// An instant as the kernel takes it.
pub(crate) fn timespec(instant: Nanos) -> Timespec {
    Timespec {
        tv_sec: (instant.0 / 1_000_000_000) as i64,
        tv_nsec: (instant.0 % 1_000_000_000) as _,
    }
}
