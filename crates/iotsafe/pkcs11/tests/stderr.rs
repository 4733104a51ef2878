// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program whose stderr takes nothing more: what went wrong is still what its call says.

use std::env;
use std::fs::File;
use std::process::{self, Command, Stdio};

use cryptoki_sys::CKR_TOKEN_NOT_PRESENT;
use warifu_pkcs11::library::{InitialiseArgs, current, initialise};
use warifu_pkcs11::rv::Rv;

/// In whose environment this is, is the program.
const PROGRAM: &str = "WARIFU_TEST_PROGRAM";
/// What it ends with when all was well; not what the test runner ends with.
const WELL: i32 = 42;

#[test]
fn an_error_that_nobody_can_be_told_of_is_still_its_calls() {
    if env::var_os(PROGRAM).is_some() {
        initialise(InitialiseArgs::default()).unwrap();
        let said = current().unwrap().slots()[0].info().err();
        process::exit(if said == Some(Rv(CKR_TOKEN_NOT_PRESENT)) { WELL } else { 1 });
    }
    let name = "an_error_that_nobody_can_be_told_of_is_still_its_calls";
    let full = File::options().write(true).open("/dev/full").unwrap();
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(PROGRAM, "1")
        .env("WARIFU_CARD", "unix:/missing/card.sock")
        .env_remove("WARIFU_PKCS11_QUIET")
        .stdout(Stdio::null())
        .stderr(full)
        .status();
    assert_eq!(status.unwrap().code(), Some(WELL));
}
