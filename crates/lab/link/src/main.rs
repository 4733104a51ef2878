// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `warifu-link`: the emulated link as a program, driven by JSON lines.
#![warn(clippy::unwrap_used)]

mod cli;
mod precision;

use clap::Parser;
use cli::{Cli, Mode};
use serde::Serialize;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use warifu_link::awake::{Awake, NotKept, is_virtual};
use warifu_link::{Command, Config, LinkError, run};

/// A control line that could not be obeyed, told on stdout among the other events.
#[derive(Serialize)]
struct Refusal {
    event: &'static str,
    message: String,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Not in the match, which would hold the lock while another thread waits for control lines.
    let mode = cli.mode(&mut std::io::stdin().lock());
    let result = match mode {
        Ok(Mode::Build) => {
            println!("{}", warifu_os::build_json("warifu-link"));
            Ok(ExitCode::SUCCESS)
        }
        Ok(Mode::Check(config)) => {
            print_line(&config);
            Ok(ExitCode::SUCCESS)
        }
        Ok(Mode::Precision(options)) => precision::main(&options)
            .map(|passed| if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        Ok(Mode::Awake { check: true }) => {
            print_line(&AwakeEvent::Check { virtual_machine: is_virtual() });
            Ok(ExitCode::SUCCESS)
        }
        Ok(Mode::Awake { check: false }) => keep_awake().map(|()| ExitCode::SUCCESS),
        Ok(Mode::Run { config, obey_stdin }) => forward(&config, obey_stdin),
        Err(message) => {
            eprintln!("warifu-link: {message}");
            return ExitCode::from(2);
        }
    };
    result.unwrap_or_else(|error| {
        eprintln!("warifu-link: {error}");
        ExitCode::FAILURE
    })
}

/// What `awake` says.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum AwakeEvent {
    /// Processors are kept awake from now on.
    Ready { processors: Vec<usize> },
    /// They are left as they are.
    NotKept { why: String },
    /// What `--check` asks for.
    Check { virtual_machine: bool },
}

/// Keeps the processors awake until stdin ends, a signal comes or the parent dies; ends at once
/// where they are to be left as they are.
fn keep_awake() -> Result<(), LinkError> {
    let os = |doing: &str, source| LinkError::Os { doing: doing.to_owned(), source };
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
        .map_err(|errno| os("prctl PR_SET_PDEATHSIG", errno.into()))?;
    let (tell, end) = mpsc::channel();
    stop_on_signals(tell.clone()).map_err(|source| os("waiting for signals", source))?;
    let awake = match Awake::begin() {
        Ok(awake) => awake,
        Err(NotKept::Failed(source)) => return Err(os("keeping processors awake", source)),
        Err(why) => {
            print_line(&AwakeEvent::NotKept { why: why.to_string() });
            return Ok(());
        }
    };
    print_line(&AwakeEvent::Ready { processors: awake.processors().to_vec() });
    std::thread::spawn(move || {
        // What comes is of no account.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let _ = tell.send(Command::Stop {});
    });
    let _ = end.recv();
    Ok(())
}

/// Forwards until told to stop by a command, the end of stdin, a signal or the death of the parent.
fn forward(config: &Config, obey_stdin: bool) -> Result<ExitCode, LinkError> {
    let (commands, receiver) = mpsc::channel();
    let os = |doing: &str, source| LinkError::Os { doing: doing.to_owned(), source };
    stop_on_signals(commands.clone()).map_err(|source| os("waiting for signals", source))?;
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
        .map_err(|errno| os("prctl PR_SET_PDEATHSIG", errno.into()))?;
    if obey_stdin {
        let commands = commands.clone();
        std::thread::spawn(move || obey(std::io::stdin().lock(), &commands));
    }
    // If nobody reads stdout any more, there is nobody left to report to, and the signals and stdin
    // still end the run.
    run(config, &receiver, commands, |event| print_line(&event))?;
    Ok(ExitCode::SUCCESS)
}

fn stop_on_signals(commands: Sender<Command>) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            // Gone means that the run is ending already.
            let _ = commands.send(Command::Stop {});
        }
    });
    Ok(())
}

/// Passes on control lines until stdin ends, which means stop.
fn obey(mut lines: impl BufRead, commands: &Sender<Command>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            continue;
        }
        match Command::parse(&text) {
            Ok(command) => {
                if commands.send(command).is_err() {
                    return;
                }
            }
            Err(error) => print_line(&Refusal { event: "error", message: error.to_string() }),
        }
    }
    let _ = commands.send(Command::Stop {});
}

/// Prints one JSON object on a line of stdout, at once.
fn print_line(value: &impl Serialize) {
    let mut stdout = std::io::stdout().lock();
    if let Ok(text) = serde_json::to_string(value) {
        let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    }
}
