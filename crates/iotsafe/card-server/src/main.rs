// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `warifu-card-server`: the virtual card as a program, driven by one JSON object on stdin.
#![warn(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde::Serialize;
use serde::de::DeserializeOwned;
use warifu_card_server::LOG;
use warifu_card_server::{ServerError, csr, personalise, serve};
use zeroize::Zeroizing;

const AFTER_HELP: &str = r#"The request is a JSON object on stdin, so that no PIN is in the
arguments; `warifu card` writes it from flags. Try it:
  echo '{"state":"card.state"}' | warifu-card-server create
  echo '{"state":"card.state","socket":"card.sock","at":true}' | warifu-card-server serve

Keys, those in [] optional:
  create  state, [label, quirks, curve, pin {digits, [scope, tries]}]
  import  state, [certificate, ca, key]
  list    state
  reset   state, [unblock_pin, pin, remove_pin, erase]
  csr     state or socket, subject, [pin]
  serve   state, [socket, at, at_commands all|ccho, link, pcsc, pcscd_dir, vpcd,
          timing {profile, [seed]}, faults, with_parent, files_of {user, group}]

Answers on stdout, one JSON object a line; `serve` prints the events ready and stopped, and ends on
SIGINT, SIGTERM or SIGHUP.

Exit code: 0 done; 2 invalid request; 3 something missing, or the state file cannot be used."#;

/// The virtual IoT SAFE card: a development tool, whose keys are in a file and not in a chip.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Verb {
    /// Make a card, with a client key made on it.
    Create,
    /// Store certificates, or a key for development.
    Import,
    /// Show what a card holds.
    List,
    /// Set the PIN or the whole card back.
    Reset,
    /// Have the card sign a certificate request.
    Csr,
    /// Serve a card until a signal comes.
    Serve,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Nothing that this program makes is for others.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let result = match cli.verb {
        Verb::Create => done(personalise::create),
        Verb::Import => done(personalise::import),
        Verb::List => done(personalise::list),
        Verb::Reset => done(personalise::reset),
        Verb::Csr => done(csr::csr),
        Verb::Serve => request().and_then(|request| serve::run(&request, print_line, print_line)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            LOG.line(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

/// Does what stdin asks for and prints what came of it.
fn done<T: DeserializeOwned, A: Serialize>(
    work: impl FnOnce(&T) -> Result<A, ServerError>,
) -> Result<(), ServerError> {
    print_line(&work(&request()?)?);
    Ok(())
}

/// Reads the request from stdin, to its end.
fn request<T: DeserializeOwned>() -> Result<T, ServerError> {
    // A PIN may be among it.
    let mut text = Zeroizing::new(String::new());
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
