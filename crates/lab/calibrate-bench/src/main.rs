// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The benches of `warifu calibrate` as a program: configuration on standard input, results as
//! JSON on standard output, progress on standard error.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warifu_calibrate_bench::{BenchError, ciphers, tls, token};
use zeroize::Zeroizing;

const HELP: &str = "\
warifu-calibrate-bench: what `warifu calibrate` times

usage: warifu-calibrate-bench tls     < CONFIG.json > REPORT.json
       warifu-calibrate-bench ciphers < CONFIG.json > REPORT.json
       warifu-calibrate-bench token   < CONFIG.json > TRIALS.ndjson

tls    how long each TLS message takes to make or to process on this machine. CONFIG:
  variants        a list of TLS choices, see warifu-tls-client --help
  warm            connections of each without pauses
  cold            connections of each with a pause before each wake-up
  gap_ms          that pause (10)
  rested          connections of each without pauses, each after a rest (0)
  rest_ms         that rest (500); before it other data go through the caches
  response_bytes  length of the response with its head (1065)
  primitives      repetitions of each stand-alone operation (0)
Times are of the thread's processor clock and of the wall's, 21 evenly spaced quantiles in ns.

ciphers  how long those of DDS Security take: of Warifu's plugin with a key that is set up already,
and of OpenSSL with one for each message; beside them the P-256 of its authentication. CONFIG:
  readings  of each call and length
  lengths   of messages, B
Times are medians of the wall's clock in ns.

token  how long the calls of a signature take in any PKCS#11 module. CONFIG:
  module        the shared library, or instead
  virtual_card  {\"profile\": FILE, \"seed\": 0}: our module over a card on the virtual clock
  token, key    labels, where there are several; pin
  modes         some of \"local_sw\", \"sign_only\", \"total\", \"fresh\"
  trials        of each mode
  seed          decides the order of the modes (0)
  software      the command of local_sw, a list of words
Each line has event token, or event trial with mode, trial and times_ns: [[call, ns], ..].

CONFIG is one JSON object on standard input, so that no PIN is among the arguments.
Exit code 0, 2 for a mistake in the configuration, 3 if it cannot run, 130 if interrupted (what
was measured until then is reported).
";

/// Whether a bench was interrupted before its end.
type Interrupted = bool;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["tls"] => tls_bench(),
        ["ciphers"] => ciphers_bench(),
        ["token"] => token_bench(),
        // One trial of a process of its own; the token bench calls itself so.
        ["token", "--one"] => one_fresh_trial(),
        ["--version"] => {
            let (own, openssl) = (warifu_tls_client::VERSION, openssl::version::version());
            println!("warifu-calibrate-bench {own}, {openssl}");
            return ExitCode::SUCCESS;
        }
        ["--build"] => {
            println!("{}", warifu_os::build_json("warifu-calibrate-bench"));
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
    match done {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(130),
        Err(error) => {
            eprintln!("warifu-calibrate-bench: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn tls_bench() -> Result<Interrupted, BenchError> {
    let config = tls::Config::parse(&configuration()?)?;
    let mut progress = |round: u32, rounds: u32| {
        if round.is_multiple_of(10) || round == rounds {
            let _ = writeln!(io::stderr(), "{round} of {rounds} rounds");
        }
    };
    let report = tls::run(&config, &mut progress, &*stop_on_signals()?)?;
    serde_json::to_writer(io::stdout().lock(), &report)
        .map_err(|error| BenchError::Output(error.into()))?;
    Ok(report.stopped)
}

fn ciphers_bench() -> Result<Interrupted, BenchError> {
    let report = ciphers::run(&ciphers::Config::parse(&configuration()?)?)?;
    serde_json::to_writer(io::stdout().lock(), &report)
        .map_err(|error| BenchError::Output(error.into()))?;
    Ok(false)
}

fn token_bench() -> Result<Interrupted, BenchError> {
    let config = token::Config::parse(&configuration()?)?;
    let ended = token::run(&config, &mut tell, &*stop_on_signals()?)?;
    Ok(ended == token::Ended::Stopped)
}

fn one_fresh_trial() -> Result<Interrupted, BenchError> {
    let config = token::Config::parse(&configuration()?)?;
    tell(&token::one_fresh(&config)?)?;
    Ok(false)
}

fn configuration() -> Result<Zeroizing<String>, BenchError> {
    let mut text = Zeroizing::new(String::new());
    io::stdin().read_to_string(&mut text).map_err(|error| {
        BenchError::Config(format!("the configuration cannot be read: {error}"))
    })?;
    Ok(text)
}

fn stop_on_signals() -> Result<Arc<AtomicBool>, BenchError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).map_err(BenchError::Signals)?;
    }
    Ok(stop)
}

/// Writes one line of JSON.
fn tell(event: &token::Event) -> Result<(), BenchError> {
    let mut line = serde_json::to_vec(event).map_err(|error| BenchError::Output(error.into()))?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line).and_then(|()| output.flush()).map_err(BenchError::Output)
}
