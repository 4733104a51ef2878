// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `warifu-agent`: holds IoT SAFE cards for programs that live shortly.
#![warn(clippy::unwrap_used)]

mod ask;
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
  may = [\"sign\", \"token\"]   # also derive, generate

Exit code: 0 done; 2 a mistake in what was asked; 3 this machine, the card or the agent is not there.";

/// Holds IoT SAFE cards: session, login, tokens signed ahead, retries, metrics.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Hold cards until a signal comes.
    Start(StartArgs),
    /// Show what a running agent holds, as JSON.
    Status(Where),
    /// Show a running agent's metrics, as Prometheus reads them.
    Metrics(Where),
    /// End a running agent.
    Stop(Where),
    /// Print a JSON Web Token that a card has signed.
    Token(TokenArgs),
}

#[derive(Args, Debug)]
struct Where {
    /// The agent's socket; $XDG_RUNTIME_DIR/warifu-agent.sock by default.
    #[arg(long)]
    socket: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct StartArgs {
    #[command(flatten)]
    place: Where,
    /// Where the card is: unix:/path, pcsc, pcsc:READER, csim:/dev/ttyX. May be given again.
    #[arg(long, value_name = "ADDRESS")]
    card: Vec<String>,
    /// Where the first card's PIN comes from: ask, file:/path or credential:NAME (systemd).
    #[arg(long, value_name = "SOURCE")]
    pin: Option<String>,
    /// A configuration, TOML; what is given beside it counts.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Give metrics over HTTP there, such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<String>,
    /// End with the process that started this one.
    #[arg(long, hide = true)]
    with_parent: bool,
}

#[derive(Args, Debug)]
struct TokenArgs {
    /// Where the card is: $WARIFU_CARD, else the agent. A card without an agent is opened and
    /// closed for this one token.
    #[arg(long, value_name = "ADDRESS")]
    card: Option<String>,
    /// Its `aud`; may be given again.
    #[arg(long)]
    audience: Vec<String>,
    /// From `iat` to `exp`, s.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = lifetime)]
    lifetime: u32,
    /// Its `iss`.
    #[arg(long)]
    issuer: Option<String>,
    /// Its `sub`.
    #[arg(long)]
    subject: Option<String>,
    /// `kid` of its header.
    #[arg(long)]
    key_id: Option<String>,
    /// Another claim, NAME=VALUE; VALUE is JSON, or else a text. May be given again.
    #[arg(long, value_name = "NAME=VALUE")]
    claim: Vec<String>,
    /// The key's label, or its id in hexadecimal; the first that can by default.
    #[arg(long, default_value = "")]
    key: String,
    /// Where the PIN comes from, without an agent: ask, file:/path or credential:NAME.
    #[arg(long, value_name = "SOURCE")]
    pin: Option<String>,
    /// How long to wait for it, s.
    #[arg(long, default_value_t = 10)]
    timeout: u32,
}

fn lifetime(text: &str) -> Result<u32, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=LIFETIME_MAX_S).contains(seconds));
    seconds.ok_or_else(|| format!("expected 1 to {LIFETIME_MAX_S} s, which is a year"))
}

/// Why it ends, and with which exit code.
struct Failure(u8, String);

impl Failure {
    fn usage(text: impl ToString) -> Failure {
        Failure(2, text.to_string())
    }

    fn environment(text: impl ToString) -> Failure {
        Failure(3, text.to_string())
    }
}

/// Help and version as the parser has them; a mistake as one line.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    let text = error.to_string();
    // The parser goes on with the usage and the way to --help.
    let what = text.split("\n\n").next().unwrap_or_default();
    let what: Vec<&str> = what.split_whitespace().collect();
    let what = what.join(" ");
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    LOG.line(format_args!("{what}: see `warifu-agent --help`"));
    ExitCode::from(2)
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    // Nothing that this program makes is for others.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let result = match cli.verb {
        Verb::Start(args) => start::start(&args),
        Verb::Status(place) => ask::status(&place),
        Verb::Metrics(place) => ask::metrics(&place),
        Verb::Stop(place) => ask::stop(&place),
        Verb::Token(args) => ask::token(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(code, text)) => {
            LOG.line(text);
            ExitCode::from(code)
        }
    }
}
