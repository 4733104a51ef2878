// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program whose stderr is full: its calls still return their errors.

#![allow(clippy::disallowed_methods, reason = "a test program of its own")]

use std::env;
use std::fs::File;
use std::process::{self, Command, Stdio};

use cryptoki_sys::CKR_TOKEN_NOT_PRESENT;
use warifu_pkcs11::functions::general_purpose::{InitialiseArgs, current, initialise};
use warifu_pkcs11::rv::Rv;

/// Set in the environment of the child process.
const PROGRAM: &str = "WARIFU_TEST_PROGRAM";
/// The exit code of a success; not one of the test runner.
const SUCCESS: i32 = 42;

#[test]
fn full_stderr() {
    if env::var_os(PROGRAM).is_some() {
        initialise(InitialiseArgs::default()).unwrap();
        let said = current().unwrap().slots()[0].info().err();
        process::exit(if said == Some(Rv(CKR_TOKEN_NOT_PRESENT)) { SUCCESS } else { 1 });
    }
    let name = "full_stderr";
    let full = File::options().write(true).open("/dev/full").unwrap();
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(PROGRAM, "1")
        .env("WARIFU_CARD", "unix:/missing/card.sock")
        .env_remove("WARIFU_PKCS11_QUIET")
        .stdout(Stdio::null())
        .stderr(full)
        .status();
    assert_eq!(status.unwrap().code(), Some(SUCCESS));
}
