// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times the calls of a signature as papers/1 does (its Table 2), in any module.
//!
//! `warifu-calibrate-bench` is driven by one JSON object on standard input, so that no PIN is among
//! the arguments, and writes a line of JSON for each trial.

pub mod config;
pub mod error;
pub mod run;
pub mod software;
pub mod virtual_card;

pub use config::Config;
pub use error::BenchError;
pub use run::{Ended, Event, run};

/// What `--version` says, and that a development build, which nothing should be timed with, is one.
pub const VERSION: &str = if cfg!(debug_assertions) {
    concat!(env!("CARGO_PKG_VERSION"), " (development build)")
} else {
    env!("CARGO_PKG_VERSION")
};
