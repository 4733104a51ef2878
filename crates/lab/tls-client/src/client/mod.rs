// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lab's client: many connections in an open loop from one thread.
//!
//! Connections begin at times of their own, whether or not earlier ones have ended, so that a
//! slow one delays no other. Each trial's socket and TLS object are made before its clock
//! starts. Times are CLOCK_MONOTONIC.

mod config;
mod connection;
mod engine;
mod outcome;
mod sessions;
mod wire;

pub use config::Config;
pub use engine::run;
pub use outcome::{Outcome, Sizes};
pub use warifu_open_loop::{Ended, Totals};
