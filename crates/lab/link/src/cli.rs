// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line: a configuration from JSON, from flags, or from JSON overridden by flags.

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;
use std::io::BufRead;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use warifu_link::Config;
use warifu_model::{BitsPerSecond, Loss, Nanos, Probability};
use warifu_os::VERSION;

const AFTER_HELP: &str = r#"Try it (as root):
  ip netns add left; ip netns add right
  warifu-link --name-a left --name-b right --rtt-ms 60 --loss 0.02 --seed 1 --ignore-stdin &
  ip netns exec left ping -c 5 10.9.0.2
  kill %1        # prints the report; the devices are gone with the program

Control lines on stdin, one JSON object each; the end of stdin means stop:
  {"command":"report"}    report, and open a new window
  {"command":"set","link":{"delay_a_to_b_ns":75000000},"seed":7}
                          flush, and go on with these impairments; the seed is optional
  {"command":"stop"}      report once more and end

With --packet-log, or "packet_log" in the configuration, what became of each packet is in that file
whenever a report has been given: 48 bytes a packet after a header of 16, little-endian.

Events on stdout, one JSON object each: ready, report, set, error (a control line that cannot be
obeyed), stopped. A report says whether its window is accepted; do not use what was measured in a
window that is not.

Exit code: 0 stopped as asked; 1 the link failed, or a precision check missed or a window of it was
rejected; 2 the configuration cannot run."#;

/// An emulated link between two network namespaces, with delay, jitter, rate, queue and loss, that
/// reports its own lateness.
#[derive(Debug, Parser)]
#[command(version = VERSION, after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// Print version and build as JSON, for programs.
    #[arg(long, exclusive = true)]
    build: bool,
    #[command(subcommand)]
    command: Option<Sub>,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Subcommand)]
enum Sub {
    /// Measure the link itself on this machine: round trips, loss, rates, throughput, forwarding
    /// overhead. Needs root and a quiet machine.
    Precision(PrecisionOptions),
    /// Keep the processors of a virtual machine from being given back to its host, by running
    /// nothing on them at the lowest priority, until stdin ends. What is measured on them otherwise
    /// waits for the host. Says on stdout, as JSON, that it does (`ready`), or ends and says why it
    /// does not (`not_kept`): on a machine of its own, or where others would wait for it.
    Awake {
        /// Only say whether this is a virtual machine.
        #[arg(long)]
        check: bool,
    },
}

#[derive(Debug, Args)]
struct Run {
    /// Configuration in JSON: a file, `-` for the first JSON value on stdin (control lines follow
    /// it), or the JSON itself.
    #[arg(long, value_name = "FILE|-|JSON")]
    config: Option<String>,
    /// Namespace of end A.
    #[arg(long)]
    name_a: Option<String>,
    /// Namespace of end B.
    #[arg(long)]
    name_b: Option<String>,
    /// Address of end A, in the same /24 as end B's [default: 10.9.0.1].
    #[arg(long)]
    address_a: Option<Ipv4Addr>,
    /// Address of end B [default: 10.9.0.2].
    #[arg(long)]
    address_b: Option<Ipv4Addr>,
    /// Longest IP packet, in bytes [default: 1500].
    #[arg(long)]
    mtu: Option<u32>,
    /// Seed of loss and jitter [default: 0].
    #[arg(long)]
    seed: Option<u64>,
    /// Congestion control of the routes, such as cubic [default: the kernel's].
    #[arg(long)]
    congestion_control: Option<String>,
    /// Initial congestion window of the routes, in segments [default: the kernel's].
    #[arg(long)]
    initcwnd: Option<u32>,
    /// Round-trip time, half of it each way, in milliseconds.
    #[arg(long)]
    rtt_ms: Option<f64>,
    /// Rate of both directions, in bits of IP packet per second.
    #[arg(long)]
    rate_bps: Option<u64>,
    /// Packets that each direction's drop-tail queue holds.
    #[arg(long)]
    queue_packets: Option<u64>,
    /// Probability, from 0 to 1, with which each packet is lost.
    #[arg(long)]
    loss: Option<f64>,
    /// A new file for what became of each packet; its format is in the crate's `packet_log`.
    #[arg(long, value_name = "FILE")]
    packet_log: Option<PathBuf>,
    /// Do not ask for SCHED_FIFO and locked memory.
    #[arg(long)]
    no_realtime: bool,
    /// Take no control lines; run until a signal comes.
    #[arg(long)]
    ignore_stdin: bool,
    /// Only check the configuration, and print it with its defaults.
    #[arg(long)]
    check: bool,
}

/// What `precision` is to do.
#[derive(Clone, Debug, Args)]
pub struct PrecisionOptions {
    /// What to measure [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<Section>,
    /// Seed of the loss streams.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What to print on stdout.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Log what becomes of each packet to this new file meanwhile, to see what that costs.
    #[arg(long, value_name = "FILE")]
    pub packet_log: Option<PathBuf>,
    /// Also write the JSON result to this file.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A part of the precision measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// Round trips of 60 and 150 ms, about 25 s.
    Rtt,
    /// Loss of 2 and 5 %, both directions, about 10 s.
    Loss,
    /// Rates from 250 kbit/s to 100 Mbit/s, both directions, about 40 s.
    Rate,
    /// TCP at no delay, both directions, about 10 s.
    Throughput,
    /// One-way latency at no delay, idle and busy, beside the loopback device's, about 25 s.
    Overhead,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people.
    Table,
    /// One JSON object.
    Json,
}

/// What the command line asks for.
pub enum Mode {
    /// Forward.
    Run {
        /// The link.
        config: Box<Config>,
        /// Whether stdin gives commands.
        obey_stdin: bool,
    },
    /// Say which build it is.
    Build,
    /// Print the configuration.
    Check(Box<Config>),
    /// Measure the link itself.
    Precision(PrecisionOptions),
    /// Keep the processors awake.
    Awake {
        /// Only say whether this is a virtual machine.
        check: bool,
    },
}

impl Cli {
    /// Resolves the command line; reads a configuration from `stdin` if told to.
    pub fn mode(self, stdin: &mut impl BufRead) -> Result<Mode, String> {
        if self.build {
            return Ok(Mode::Build);
        }
        match self.command {
            Some(Sub::Precision(options)) => return Ok(Mode::Precision(options)),
            Some(Sub::Awake { check }) => return Ok(Mode::Awake { check }),
            None => {}
        }
        let config = Box::new(self.run.config(stdin)?);
        if self.run.check {
            return Ok(Mode::Check(config));
        }
        Ok(Mode::Run { config, obey_stdin: !self.run.ignore_stdin })
    }
}

impl Run {
    fn config(&self, stdin: &mut impl BufRead) -> Result<Config, String> {
        let mut config =
            match (&self.config, &self.name_a, &self.name_b) {
                (Some(source), ..) => {
                    let (name, text) = read(source, stdin)?;
                    Config::parse(&text).map_err(|error| format!("{name}: {error}"))?
                }
                (None, Some(name_a), Some(name_b)) => Config::between(name_a, name_b),
                (None, ..) => return Err(
                    "namespaces are missing: give --config, or --name-a and --name-b; see --help"
                        .to_owned(),
                ),
            };
        self.override_in(&mut config)?;
        config.check().map_err(|error| error.to_string())?;
        Ok(config)
    }

    fn override_in(&self, config: &mut Config) -> Result<(), String> {
        fn put<T: Clone>(to: &mut T, from: Option<&T>) {
            if let Some(value) = from {
                to.clone_from(value);
            }
        }
        put(&mut config.name_a, self.name_a.as_ref());
        put(&mut config.name_b, self.name_b.as_ref());
        put(&mut config.address_a, self.address_a.as_ref());
        put(&mut config.address_b, self.address_b.as_ref());
        put(&mut config.mtu, self.mtu.as_ref());
        put(&mut config.seed, self.seed.as_ref());
        config.congestion_control =
            self.congestion_control.clone().or(config.congestion_control.take());
        config.initcwnd = self.initcwnd.or(config.initcwnd);
        config.packet_log = self.packet_log.clone().or(config.packet_log.take());
        config.realtime &= !self.no_realtime;
        let link = &mut config.link;
        if let Some(rtt_ms) = self.rtt_ms {
            if !(0.0..=7_200_000.0).contains(&rtt_ms) {
                return Err(format!(
                    "--rtt-ms is {rtt_ms}: expected milliseconds from 0 to 7200000"
                ));
            }
            let rtt_ns = (rtt_ms * 1e6).round() as u64;
            (link.delay_a_to_b, link.delay_b_to_a) = (Nanos(rtt_ns / 2), Nanos(rtt_ns.div_ceil(2)));
        }
        if let Some(rate_bps) = self.rate_bps {
            let rate = BitsPerSecond::new(rate_bps)
                .map_err(|why| format!("--rate-bps is {rate_bps}: {why}"))?;
            (link.rate_a_to_b, link.rate_b_to_a) = (Some(rate), Some(rate));
        }
        link.queue_packets = self.queue_packets.or(link.queue_packets);
        if let Some(probability) = self.loss {
            link.loss = Loss::Independent { probability: Probability(probability) };
        }
        Ok(())
    }
}

/// The configuration's text, and what to call it in messages.
fn read(source: &str, stdin: &mut impl BufRead) -> Result<(String, String), String> {
    if source.trim_start().starts_with('{') {
        return Ok(("--config".to_owned(), source.to_owned()));
    }
    if source != "-" {
        let text = std::fs::read_to_string(source)
            .map_err(|error| format!("--config {source}: {error}; expected a JSON file"))?;
        return Ok((source.to_owned(), text));
    }
    // Reads up to the closing brace and no further: control lines follow.
    let mut deserializer = serde_json::Deserializer::from_reader(stdin);
    let value = serde_json::Value::deserialize(&mut deserializer)
        .map_err(|error| format!("stdin: {error}"))?;
    Ok(("stdin".to_owned(), value.to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn mode(arguments: &[&str], stdin: &str) -> Result<Mode, String> {
        let mut words = vec!["warifu-link"];
        words.extend(arguments);
        Cli::try_parse_from(words).map_err(|error| error.to_string())?.mode(&mut stdin.as_bytes())
    }

    fn config(arguments: &[&str], stdin: &str) -> Config {
        match mode(arguments, stdin).unwrap() {
            Mode::Run { config, .. } | Mode::Check(config) => *config,
            Mode::Precision(_) | Mode::Awake { .. } | Mode::Build => panic!("no run"),
        }
    }

    #[test]
    fn flags_without_config() {
        let config = config(
            &[
                "--name-a",
                "a",
                "--name-b",
                "b",
                "--rtt-ms",
                "0.000003",
                "--loss",
                "0.5",
                "--rate-bps",
                "8",
            ],
            "",
        );
        let delays = (config.link.delay_a_to_b, config.link.delay_b_to_a);
        assert_eq!(delays, (Nanos(1), Nanos(2)));
        assert_eq!(config.link.loss, Loss::Independent { probability: Probability(0.5) });
        assert_eq!(config.link.rate_b_to_a, Some(BitsPerSecond(8)));
    }

    #[test]
    fn flags_override_config_from_argument_and_stdin() {
        let json = r#"{"name_a":"a","name_b":"b","seed":1,
            "mtu":1000}"#;
        let mut rest = format!("{json}\n{{\"command\":\"stop\"}}\n");
        let mut stdin = rest.as_bytes();
        let cli = Cli::try_parse_from(["warifu-link", "--config", "-", "--seed", "2"]).unwrap();
        let Mode::Run { config: from_stdin, obey_stdin } = cli.mode(&mut stdin).unwrap() else {
            panic!("no run")
        };
        assert!(obey_stdin);
        assert_eq!((from_stdin.seed, from_stdin.mtu), (2, 1000));
        rest = String::from_utf8(stdin.to_vec()).unwrap();
        assert_eq!(rest.trim(), r#"{"command":"stop"}"#, "control lines are left for later");
        assert_eq!(config(&["--config", json, "--seed", "2"], ""), *from_stdin);
    }

    #[test]
    fn mistakes_name_flag_or_key() {
        for (arguments, expected) in [
            (vec![], "namespaces are missing"),
            (vec!["--config", "{}"], "--config: missing field `name_a`"),
            (vec!["--config", "/nonexistent.json"], "--config /nonexistent.json"),
            (vec!["--config", "-"], "stdin: "),
            (
                vec!["--name-a", "a", "--name-b", "b", "--loss", "1.2"],
                "link.loss.probability is 1.2",
            ),
            (vec!["--name-a", "a", "--name-b", "b", "--rtt-ms", "NaN"], "--rtt-ms is NaN"),
            (vec!["--name-a", "a", "--name-b", "b", "--rate-bps", "0"], "--rate-bps is 0: "),
            (vec!["--name-a", "a", "--name-b", "b", "--mtu", "10"], "mtu is 10"),
        ] {
            let message = mode(&arguments, "").err().unwrap();
            assert!(message.contains(expected), "{arguments:?}: {message}");
        }
    }

    #[test]
    fn command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
