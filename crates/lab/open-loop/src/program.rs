// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client as a program: its configuration on standard input, one line of JSON for each trial on
//! standard output, progress on standard error.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use serde::de::DeserializeOwned;
use warifu_os::Log;

use crate::totals::{Ended, Totals};

/// What a client's program says of itself.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// What `--version` prints after the name.
    pub version: String,
    /// What `--help` prints.
    pub help: &'static str,
    /// What its trials are called in progress lines: `connections`.
    pub trials: &'static str,
}

impl Program {
    /// Reads the configuration, runs it and reports progress.
    ///
    /// `trials` says how many trials a configuration has. Exit code 0, 2 for a mistake in the
    /// arguments or the configuration, 3 if it cannot run, 130 if it was interrupted.
    pub fn main<Config, Error: Display>(
        &self,
        parse: impl FnOnce(&str) -> Result<Config, Error>,
        trials: impl FnOnce(&Config) -> u32,
        run: impl FnOnce(
            &Config,
            &mut dyn Write,
            &mut dyn FnMut(Totals),
            &AtomicBool,
        ) -> Result<(Ended, Totals), Error>,
    ) -> ExitCode {
        match std::env::args().nth(1).as_deref() {
            None => {}
            Some("--version") => {
                println!("{} {}", self.name, self.version);
                return ExitCode::SUCCESS;
            }
            Some("--build") => {
                println!("{}", warifu_os::build_json(self.name));
                return ExitCode::SUCCESS;
            }
            Some("--help" | "-h") => {
                print!("{}", self.help);
                return ExitCode::SUCCESS;
            }
            Some(argument) => {
                Log::new(self.name).line(format_args!(
                    "unknown argument {argument:?}: it takes a configuration on standard input, \
                     see --help"
                ));
                return ExitCode::from(2);
            }
        }
        let log = Log::new(self.name);
        let fail = |code: u8, why: &dyn Display| {
            log.line(why);
            ExitCode::from(code)
        };
        let mut text = String::new();
        if let Err(error) = io::stdin().read_to_string(&mut text) {
            return fail(2, &format!("cannot read the configuration: {error}"));
        }
        let config = match parse(&text) {
            Ok(config) => config,
            Err(error) => return fail(2, &error),
        };
        let trials = trials(&config);
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            if let Err(error) = signal_hook::flag::register(signal, stop.clone()) {
                return fail(3, &format!("cannot catch signals: {error}"));
            }
        }
        let mut progress = |totals: Totals| {
            // A closed standard error stops no run.
            let _ =
                writeln!(io::stderr(), "{} of {trials} {}, {totals}", totals.reported, self.trials);
        };
        match run(&config, &mut io::stdout().lock(), &mut progress, &stop) {
            Ok((Ended::Done, _)) => ExitCode::SUCCESS,
            Ok((Ended::Stopped, _)) => ExitCode::from(130),
            Err(error) => fail(3, &error),
        }
    }
}

/// Reads a configuration; an error names the key.
pub fn parse<Config: DeserializeOwned>(text: &str) -> Result<Config, String> {
    let mut from = serde_json::Deserializer::from_str(text);
    let config = serde_path_to_error::deserialize(&mut from)
        .map_err(|error| format!("{}: {}", error.path(), error.inner()))?;
    from.end().map_err(|error| format!("after the configuration: {error}"))?;
    Ok(config)
}

/// Writes an outcome as a line of JSON, at once.
pub fn write_line(output: &mut dyn Write, outcome: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(outcome)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Config {
        #[allow(dead_code)]
        trials: u32,
    }

    #[test]
    fn parse_errors_name_the_key() {
        let message = |text| parse::<Config>(text).unwrap_err();
        assert!(message(r#"{"trials": "many"}"#).starts_with("trials: "));
        assert!(message(r#"{"trials": 1} x"#).starts_with("after the configuration: "));
        assert!(parse::<Config>(r#"{"trials": 1}"#).is_ok());
    }

    #[test]
    fn outcome_is_one_line() {
        let mut output = Vec::new();
        write_line(&mut output, &serde_json::json!({"trial": 1})).unwrap();
        assert_eq!(output, b"{\"trial\":1}\n");
    }
}
