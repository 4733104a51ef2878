// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs under a debugger: gdb's remote protocol, and that pauses change nothing.

mod client;
mod hostile;
mod pauses;
mod protocol;
#[path = "../common/test_programs.rs"]
mod test_programs;

use warifu_m3::session::{Session, Setup};

/// More than any of these programs executes.
const MOST: u64 = 10_000_000;

fn session(file: &[u8]) -> Session {
    let setup = Setup { chip: "mps2-an385".into(), ..Setup::default() };
    Session::new(file, &setup).expect("it can be run")
}
