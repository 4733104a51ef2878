// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `warifu-card-server`: the virtual card as a program, driven by one JSON object on stdin.
#![warn(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde::Serialize;
use serde::de::DeserializeOwned;
use warifu_card_server::{ServerError, serve};

/// The virtual IoT SAFE card: a development tool, whose keys are in a file and not in a chip.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Verb {
    /// Serve a card until a signal comes.
    Serve,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Nothing that this program makes is for others.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let result = match cli.verb {
        Verb::Serve => request().and_then(|request| serve::run(&request, print_line)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("warifu-card-server: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Reads the request from stdin, to its end.
fn request<T: DeserializeOwned>() -> Result<T, ServerError> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| ServerError::Request(format!("stdin: {error}: expected JSON")))?;
    let mut json = serde_json::Deserializer::from_str(&text);
    serde_path_to_error::deserialize(&mut json)
        .map_err(|error| ServerError::Request(format!("stdin: {error}: see --help")))
}

/// Prints one JSON object on a line of stdout, at once.
fn print_line(value: &impl Serialize) {
    let mut stdout = std::io::stdout().lock();
    if let Ok(text) = serde_json::to_string(value) {
        // Nobody may be reading; what was asked for is done all the same.
        let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    }
}
