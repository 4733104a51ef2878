// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Trials that are processes: the software baseline, and a program that begins anew.

use std::io::Write;
use std::process::{Command, Stdio};

use serde::Deserialize;
use warifu_os::{Clock, SystemClock};
use warifu_pkcs11_client::Caller;

use super::config::{Config, Mode};
use super::nanos;
use crate::error::BenchError;

/// Runs a command to its end, ns (papers/1, Table 2: "the whole openssl dgst command").
///
/// # Errors
/// It cannot be run, or fails.
pub fn command(words: &[String], clock: &dyn Clock) -> Result<u64, BenchError> {
    let failed = |why: String| BenchError::Program { what: words.join(" "), why };
    let (program, arguments) = words.split_first().ok_or_else(|| failed("is empty".into()))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let begin = clock.now();
    let done = command.output().map_err(|error| failed(error.to_string()))?;
    let took = clock.now() - begin;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(failed(said.lines().next().unwrap_or("failed without a message").to_owned()));
    }
    Ok(nanos(took))
}

/// What a fresh process reports of its one trial.
#[derive(Debug, Deserialize)]
struct Line {
    times_ns: Vec<(String, u64)>,
}

/// One trial of a new process of this program: the calls it made, with C_Initialize and the
/// search for the token before them, and the life of the whole process.
///
/// # Errors
/// It cannot be run, or fails.
pub fn fresh(config: &Config, found: &Caller) -> Result<Vec<(String, u64)>, BenchError> {
    let failed = |why: String| BenchError::Program { what: "a fresh process".into(), why };
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let (token, key) = (found.token().info.label.clone(), found.key().label.clone());
    let one = Config {
        modes: vec![Mode::Fresh],
        trials: 1,
        token: Some(token),
        key: Some(key),
        ..config.clone()
    };
    let request = serde_json::to_vec(&one).map_err(|error| failed(error.to_string()))?;
    let begin = SystemClock.now();
    let mut child = Command::new(program)
        .args(["token", "--one"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        // A child that did not read has said why.
        let _ = input.write_all(&request);
    }
    let done = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    let life = nanos(SystemClock.now() - begin);
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let last = said.lines().last().unwrap_or("failed without a message");
        return Err(failed(last.trim_start_matches("warifu-calibrate-bench: ").to_owned()));
    }
    let line: Line =
        serde_json::from_slice(&done.stdout).map_err(|error| failed(error.to_string()))?;
    let mut times = line.times_ns;
    times.push(("process".to_owned(), life));
    Ok(times)
}
