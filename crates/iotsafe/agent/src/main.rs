// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `warifu-agent`: holds IoT SAFE cards for short-lived programs.
#![warn(clippy::unwrap_used)]

mod commands;
mod start;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use warifu_agent::LOG;
use warifu_agent::jwt::LIFETIME_MAX_S;

const AFTER_HELP: &str = "\
Try it, with a virtual card:
  warifu card create && warifu card serve &
  warifu agent start --card unix:$XDG_RUNTIME_DIR/warifu/card.sock &
  export WARIFU_CARD=agent
  pkcs11-tool --module libwarifu_pkcs11.so --list-objects
  warifu token --audience https://example.org --lifetime 3600

A configuration (--config, TOML) names several cards and other users:
  socket = \"/run/warifu-agent.sock\"
  metrics = \"127.0.0.1:9464\"
  [[card]]
  name = \"meter\"            # WARIFU_CARD=agent:/run/warifu-agent.sock,meter
  address = \"pcsc\"
  pin = \"credential:sim-pin\" # or ask, or file:/path
  pin_lifetime_s = 28800
  idle_close_s = 300
  [[caller]]
  uid = 33
  keys = [\"client\"]
  may = [\"sign\", \"token\"]   # also derive, generate, replace, random, verify, login

Exit code: 0 done; 2 invalid arguments or request; 3 machine, card or agent unavailable.";

/// Holds IoT SAFE cards: session, login, tokens signed ahead, retries, metrics.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Hold cards until a signal ends it.
    Start(StartArgs),
    /// Show what a running agent holds, as JSON.
    Status(AgentSocket),
    /// Show the metrics of a running agent in Prometheus' format.
    Metrics(AgentSocket),
    /// Stop a running agent.
    Stop(AgentSocket),
    /// Print a JSON Web Token signed by a card.
    Token(TokenArgs),
}

#[derive(Args, Debug)]
struct AgentSocket {
    /// The agent's socket; $XDG_RUNTIME_DIR/warifu-agent.sock by default.
    #[arg(long)]
    socket: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct StartArgs {
    #[command(flatten)]
    agent: AgentSocket,
    /// Address of a card: unix:/path, pcsc, pcsc:READER, csim:/dev/ttyX. May be repeated.
    #[arg(long, value_name = "ADDRESS")]
    card: Vec<String>,
    /// Source of the first card's PIN: ask, file:/path or credential:NAME (systemd).
    #[arg(long, value_name = "SOURCE")]
    pin: Option<String>,
    /// Configuration file, TOML; other options override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Serve metrics over HTTP at this address, such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<String>,
    /// End with the process that started this one.
    #[arg(long, hide = true)]
    with_parent: bool,
}

#[derive(Args, Debug)]
struct TokenArgs {
    /// Address of the card; by default $WARIFU_CARD, or else the agent. A card without an agent is
    /// opened for this one token.
    #[arg(long, value_name = "ADDRESS")]
    card: Option<String>,
    /// The `aud` claim; may be repeated.
    #[arg(long)]
    audience: Vec<String>,
    /// From `iat` to `exp`, s.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = lifetime)]
    lifetime: u32,
    /// The `iss` claim.
    #[arg(long)]
    issuer: Option<String>,
    /// The `sub` claim.
    #[arg(long)]
    subject: Option<String>,
    /// The `kid` of the header.
    #[arg(long)]
    key_id: Option<String>,
    /// Another claim, NAME=VALUE; VALUE is JSON, or else a string. May be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    claim: Vec<String>,
    /// Label of the key, or its id in hexadecimal; by default the first suitable one.
    #[arg(long, default_value = "")]
    key: String,
    /// Source of the PIN, without an agent: ask, file:/path or credential:NAME.
    #[arg(long, value_name = "SOURCE")]
    pin: Option<String>,
    /// Timeout, s.
    #[arg(long, default_value_t = 10)]
    timeout: u32,
}

fn lifetime(text: &str) -> Result<u32, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=LIFETIME_MAX_S).contains(seconds));
    seconds.ok_or_else(|| format!("expected 1 to {LIFETIME_MAX_S} s, which is a year"))
}

/// The exit code and message of a failed command.
struct Failure(u8, String);

impl Failure {
    fn usage(text: impl ToString) -> Failure {
        Failure(2, text.to_string())
    }

    fn environment(text: impl ToString) -> Failure {
        Failure(3, text.to_string())
    }
}

/// Prints help and version as they are, errors in one line.
fn report_parse_error(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    let text = error.to_string();
    // The usage and a hint at --help follow.
    let what = text.split("\n\n").next().unwrap_or_default();
    let what: Vec<&str> = what.split_whitespace().collect();
    let what = what.join(" ");
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    LOG.line(format_args!("{what}: see `warifu-agent --help`"));
    ExitCode::from(2)
}

/// A PIN in this process's memory is in no core file, and no debugger of the same user reads it
/// (PR_SET_DUMPABLE, prctl(2)).
fn keep_memory_private() -> rustix::io::Result<()> {
    use rustix::process::{DumpableBehavior, Resource, Rlimit};
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(Resource::Core, none)
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report_parse_error(&error),
    };
    // Files and sockets of this program are private.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    if let Err(error) = keep_memory_private() {
        LOG.line(format_args!("the PIN could be in a core file: {error}"));
    }
    let result = match cli.verb {
        Verb::Start(args) => start::start(&args),
        Verb::Status(agent) => commands::status(&agent),
        Verb::Metrics(agent) => commands::metrics(&agent),
        Verb::Stop(agent) => commands::stop(&agent),
        Verb::Token(args) => commands::token(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(code, text)) => {
            LOG.line(text);
            ExitCode::from(code)
        }
    }
}
