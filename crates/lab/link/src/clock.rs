// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When the kernel received a packet.

use crate::sys;
use rustix::time::ClockId;
use std::os::fd::AsFd;
use warifu_model::Nanos;
use warifu_os::clock::now;

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
