// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What Warifu's programs take from the operating system.
//!
//! - [`Alarm`]: a timer among the descriptors that a program waits for.
//! - [`clock`]: the machine's clocks, and [`Clock`] where time is an argument.
//! - [`secure_variable`]: the environment, for libraries that setuid programs may load.
//! - [`set_fs_user`]: files as the user for whom root works.
//! - [`Log`]: lines for people on stderr.
//! - [`printable`]: text of others, for a terminal.
//! - [`DeadlineStream`]: reading and writing a file descriptor by a deadline.
//! - [`TurnQueue`]: mutual exclusion, users in rotation, with a timeout.
//! - [`VERSION`]: what `--version` says of programs that time something, and [`BUILD_PROFILE`],
//!   which [`build_json`] says to programs.
#![warn(clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alarm;
pub mod clock;
mod deadline_stream;
mod environment;
mod fs_user;
mod log;
mod printable;
mod turn_queue;

pub use alarm::Alarm;
pub use clock::{Clock, SystemClock, VirtualClock};
pub use deadline_stream::DeadlineStream;
pub use environment::{is_privileged_start, secure_variable};
pub use fs_user::{RootFsGuard, fs_user, refuse_proc, set_fs_user};
pub use log::Log;
pub use printable::printable;
pub use turn_queue::{Turn, TurnQueue};

/// `release`, or `development` with overflow checks and debug assertions, which is not timed.
pub const BUILD_PROFILE: &str = if cfg!(debug_assertions) { "development" } else { "release" };

/// What `--build` prints of a program, for those that must not time a development build:
/// `{"program":"warifu-link","version":"0.1.0","build":"release"}`.
pub fn build_json(program: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(r#"{{"program":"{program}","version":"{version}","build":"{BUILD_PROFILE}"}}"#)
}

/// What `--version` says, and that a development build, which nothing should be timed with, is one.
pub const VERSION: &str = if cfg!(debug_assertions) {
    concat!(env!("CARGO_PKG_VERSION"), " (development build)")
} else {
    env!("CARGO_PKG_VERSION")
};
