// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What Warifu's programs take from the operating system.
//!
//! - [`clock`]: the machine's clocks, and [`Clock`] where time is an argument.
//! - [`Log`]: lines for people on stderr.
//! - [`DeadlineStream`]: reading and writing a file descriptor by a deadline.
//! - [`TurnQueue`]: mutual exclusion in the order of arrival, with a timeout.
#![warn(clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod clock;
mod deadline_stream;
mod log;
mod turn_queue;

pub use clock::{Clock, SystemClock, VirtualClock};
pub use deadline_stream::DeadlineStream;
pub use log::Log;
pub use turn_queue::{Turn, TurnQueue};
