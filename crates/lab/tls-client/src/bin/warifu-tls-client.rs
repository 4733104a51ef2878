// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lab's client as a program: its configuration on standard input, one line of JSON for each
//! connection on standard output, progress on standard error.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warifu_tls_client::VERSION;
use warifu_tls_client::client::{Config, Ended, run};

const HELP: &str = "\
warifu-tls-client: opens many HTTPS connections at their own pace and times each

usage: warifu-tls-client < CONFIG.json > TRIALS.ndjson

CONFIG is one JSON object:
  variant          the TLS choices, see below; null speaks plain HTTP
  pki              a folder that `warifu-tls pki` made
  address          \"10.9.0.2:8443\"
  trials           how many connections
  rate_per_second  how many begin in a second
  spread           pauses vary evenly by this share of their mean, 0 to 1 (0)
  timeout_s        when a connection without a response counts as failed
  seed             decides the pauses (0)
  path             of the GET request (\"/\")
  sessions         how many are got beforehand for variants that resume (16)
  alone            the next begins a pause after the one before has ended (false)
variant:
  {\"tls\": \"1.3\", \"session\": \"full\", \"authentication\": \"mutual\",
   \"group\": \"secp256r1\", \"certificate\": \"ecdsa_secp256r1\", \"chain_length\": 1,
   \"cipher_suite\": \"TLS_AES_128_GCM_SHA256\", \"key_share\": \"fresh\", \"nagle\": false}

Each line has the trial's number and, in ns from just before connect(): connect_ns,
handshake_ns, first_ns (first byte of the response), done_ns; sent and received bytes; or error.
Exit code 0, 2 for a mistake in the configuration, 3 if it cannot run, 130 if interrupted.
";

fn main() -> ExitCode {
    if std::env::args().len() > 1 {
        let asked = std::env::args().any(|argument| argument == "--help" || argument == "-h");
        if std::env::args().any(|argument| argument == "--version") {
            println!("warifu-tls-client {}, {}", VERSION, openssl::version::version());
            return ExitCode::SUCCESS;
        }
        print!("{HELP}");
        return if asked { ExitCode::SUCCESS } else { ExitCode::from(2) };
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
    let mut output = io::stdout().lock();
    let trials = config.trials;
    let mut progress = |totals: warifu_tls_client::client::Totals| {
        let _ = writeln!(
            io::stderr(),
            "{} of {trials} connections, {} failed, begun at most {:.3} ms late, \
             {:.0} % of a processor used",
            totals.reported,
            totals.failed,
            totals.latest_ns as f64 / 1e6,
            100.0 * totals.cpu_ns as f64 / totals.elapsed_ns.max(1) as f64
        );
    };
    match run(&config, &mut output, &mut progress, &stop) {
        Ok((Ended::Done, _)) => ExitCode::SUCCESS,
        Ok((Ended::Stopped, _)) => ExitCode::from(130),
        Err(error) => fail(3, &error.to_string()),
    }
}

fn fail(code: u8, why: &str) -> ExitCode {
    eprintln!("warifu-tls-client: {why}");
    ExitCode::from(code)
}
