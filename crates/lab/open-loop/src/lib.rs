// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the lab's timed clients share.
//!
//! A client runs many trials in an open loop from one thread: trials begin at times of their own,
//! whether or not earlier ones have ended, so that a slow one delays no other. How a trial is run
//! is the client's own.
//!
//! - [`Pace`] says when trials begin, and [`Schedule`] keeps to it.
//! - [`Totals`] and [`Meter`] say what a run did so far.
//! - [`Program`] reads a configuration, runs it, and maps its end to an exit code.
#![warn(clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod pace;
mod program;
mod schedule;
mod totals;

pub use pace::{Clear, Pace};
pub use program::{Program, parse, write_line};
pub use schedule::Schedule;
pub use totals::{Ended, Meter, Totals};

use std::time::Duration;

/// How often timeouts and requests to stop are checked.
pub const TICK: Duration = Duration::from_millis(100);

/// A duration in ns.
#[must_use]
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
