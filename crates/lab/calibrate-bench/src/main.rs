// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bench as a program: its configuration on standard input, one line of JSON for the token
//! and one for each trial on standard output.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warifu_calibrate_bench::{BenchError, Config, Ended, Event, VERSION, run};
use zeroize::Zeroizing;

const HELP: &str = "\
warifu-calibrate-bench: times the calls of a signature in any PKCS#11 module

usage: warifu-calibrate-bench < CONFIG.json > TRIALS.ndjson

CONFIG is one JSON object, so that no PIN is among the arguments:
  module        the shared library, or instead
  virtual_card  {\"profile\": FILE, \"seed\": 0}: our module over a card on the virtual clock
  token, key    labels, where there are several; pin
  modes         some of \"local_sw\", \"sign_only\", \"total\", \"fresh\"
  trials        of each mode
  seed          decides the order of the modes (0)
  software      the command of local_sw, a list of words

Each line has event token, or event trial with mode, trial and times_ns: [[call, ns], ..].
Exit code 0, 2 for a mistake in the configuration, 3 if it cannot run, 130 if interrupted.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let one = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        // One trial of a process of its own; the bench calls itself so.
        ["--one"] => true,
        ["--version"] => {
            println!("warifu-calibrate-bench {}", VERSION);
            return ExitCode::SUCCESS;
        }
        ["--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match work(one) {
        Ok(Ended::Done) => ExitCode::SUCCESS,
        Ok(Ended::Stopped) => ExitCode::from(130),
        Err(error) => {
            eprintln!("warifu-calibrate-bench: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn work(one: bool) -> Result<Ended, BenchError> {
    let mut text = Zeroizing::new(String::new());
    io::stdin().read_to_string(&mut text).map_err(|error| {
        BenchError::Config(format!("the configuration cannot be read: {error}"))
    })?;
    let config = Config::parse(&text)?;
    let mut output = io::stdout().lock();
    let mut tell = |event: &Event| {
        let mut line = serde_json::to_vec(event).unwrap_or_default();
        line.push(b'\n');
        output.write_all(&line).and_then(|()| output.flush()).map_err(BenchError::Output)
    };
    if one {
        tell(&warifu_calibrate_bench::run::one_fresh(&config)?)?;
        return Ok(Ended::Done);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).map_err(BenchError::Output)?;
    }
    run(&config, &mut tell, &stop)
}
