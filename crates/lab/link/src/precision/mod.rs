// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `warifu-link precision`: the link measured by programs of its own, on the machine where it will
//! be used.

mod awake;
mod outcome;
mod probe;
mod sections;

use crate::cli::{Format, PrecisionOptions, Section};
use awake::KeptAwake;
use outcome::Outcome;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use warifu_link::netns::Namespace;
use warifu_link::{Config, Link, LinkError};
use warifu_model::Probability;

const ALL: [Section; 5] =
    [Section::Rtt, Section::Loss, Section::Rate, Section::Throughput, Section::Overhead];

/// The P99 of the link's lateness is held to its bound, as the lab holds it for a part of a
/// measurement.
const LATE_FRACTION_MAX: Probability = Probability(0.01);

/// A link between two fresh namespaces. The link goes first when this is dropped.
struct Bench {
    link: Link,
    a: Namespace,
    b: Namespace,
    config: Config,
    awake: KeptAwake,
}

/// Measures and prints; whether every check passed.
///
/// # Errors
/// Missing rights or tools, or a file that cannot be written.
pub fn main(options: &PrecisionOptions) -> Result<bool, LinkError> {
    let mut bench = Bench::new(options)?;
    let mut outcome = Outcome::new(
        options.seed,
        bench.link.scheduler().clone(),
        bench.awake.processors().to_vec(),
    );
    let sections = if options.only.is_empty() { ALL.to_vec() } else { options.only.clone() };
    for section in sections {
        eprintln!("measuring {section:?} ...");
        match section {
            Section::Rtt => sections::rtt(&mut bench, &mut outcome)?,
            Section::Loss => sections::loss(&mut bench, &mut outcome)?,
            Section::Rate => sections::rate(&mut bench, &mut outcome)?,
            Section::Throughput => sections::throughput(&mut bench, &mut outcome)?,
            Section::Overhead => sections::overhead(&mut bench, &mut outcome)?,
        }
    }
    let json = outcome.json();
    match options.format {
        Format::Table => print!("{}", outcome.table()),
        Format::Json => println!("{json}"),
    }
    if let Some(path) = &options.output {
        write_output(path, &(json + "\n")).map_err(|source| LinkError::Os {
            doing: format!("writing --output {}", path.display()),
            source,
        })?;
    }
    Ok(outcome.passed())
}

/// Writes a file, also in the place of an earlier one; through no link, which another user may have
/// laid for root to write elsewhere.
fn write_output(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).custom_flags(libc::O_NOFOLLOW);
    let mut file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => {
            io::Error::other("this is a symbolic link, which is not followed: name the file itself")
        }
        _ => error,
    })?;
    file.write_all(text.as_bytes())
}

impl Bench {
    fn new(options: &PrecisionOptions) -> Result<Bench, LinkError> {
        let names = ["a", "b"].map(|end| format!("warifu-precision-{}-{end}", std::process::id()));
        clean_up_on_signals(names.clone())?;
        let [a, b] = names;
        let (a, b) = (Namespace::create(&a)?, Namespace::create(&b)?);
        let config = Config {
            seed: options.seed,
            packet_log: options.packet_log.clone(),
            congestion_control: Some("cubic".to_owned()),
            initcwnd: Some(10),
            late_fraction_max: LATE_FRACTION_MAX,
            ..Config::between(a.name(), b.name())
        };
        let awake = KeptAwake::begin()?;
        let link = Link::start(&config)?;
        Ok(Bench { link, a, b, config, awake })
    }
}

/// Deletes the namespaces when told to end: a signal would leave them, since nothing is dropped
/// then.
fn clean_up_on_signals(names: [String; 2]) -> Result<(), LinkError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|source| LinkError::Os { doing: "waiting for signals".to_owned(), source })?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            for name in names {
                drop(Namespace::adopt(&name));
            }
            // As a shell tells an end by a signal.
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn output_replaces_a_file_and_follows_no_link() {
        let folder = std::env::temp_dir().join(format!("warifu-output-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.join(name));
        for text in ["an earlier one", "this"] {
            write_output(&file, text).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let error = write_output(&link, "other").unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "this");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
