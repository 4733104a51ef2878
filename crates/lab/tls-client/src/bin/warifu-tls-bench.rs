// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times every TLS message over memory: configuration on standard input, one JSON report on
//! standard output, progress on standard error.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warifu_tls_client::VERSION;
use warifu_tls_client::bench::{Config, run};

const HELP: &str = "\
warifu-tls-bench: how long each TLS message takes to make or to process on this machine

usage: warifu-tls-bench < CONFIG.json > REPORT.json

CONFIG is one JSON object:
  variants        a list of TLS choices, see warifu-tls-client --help
  warm            connections of each without pauses
  cold            connections of each with a pause before each wake-up
  gap_ms          that pause (10)
  response_bytes  length of the response with its head (1065)
  primitives      repetitions of each stand-alone operation (0)

Times are of the thread's processor clock and of the wall's, 21 evenly spaced quantiles in ns.
Exit code 0, 2 for a mistake in the configuration, 3 if it cannot run, 130 if interrupted (what
was measured until then is reported).
";

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => {}
        Some("--version") => {
            println!("warifu-tls-bench {}, {}", VERSION, openssl::version::version());
            return ExitCode::SUCCESS;
        }
        Some(argument) => {
            print!("{HELP}");
            let asked = matches!(argument, "--help" | "-h");
            return if asked { ExitCode::SUCCESS } else { ExitCode::from(2) };
        }
    }
    let mut text = String::new();
    if let Err(error) = io::stdin().read_to_string(&mut text) {
        return fail(2, &format!("the configuration cannot be read: {error}"));
    }
    let config = match Config::parse(&text) {
        Ok(config) => config,
        Err(error) => return fail(2, &error.to_string()),
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        if let Err(error) = signal_hook::flag::register(signal, stop.clone()) {
            return fail(3, &format!("signals cannot be caught: {error}"));
        }
    }
    let mut progress = |round: u32, rounds: u32| {
        if round.is_multiple_of(10) || round == rounds {
            let _ = writeln!(io::stderr(), "{round} of {rounds} rounds");
        }
    };
    let report = match run(&config, &mut progress, &stop) {
        Ok(report) => report,
        Err(error) => return fail(3, &error.to_string()),
    };
    match serde_json::to_writer(io::stdout().lock(), &report) {
        Ok(()) if report.stopped => ExitCode::from(130),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(3, &format!("the report cannot be written: {error}")),
    }
}

fn fail(code: u8, why: &str) -> ExitCode {
    eprintln!("warifu-tls-bench: {why}");
    ExitCode::from(code)
}
