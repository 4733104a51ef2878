// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The simulated TCP beside captures of Linux that are kept in `vectors/linux-6.18-tcp`.

mod common;
#[path = "common/exchange.rs"]
mod exchange;

use std::path::Path;

use warifu_model::Nanos;
use warifu_sim::{CaseModel, Heading, PacketEvent, simulate_packets};

/// Positions relative to the kernel's ticks that are tried.
const SEEDS: u64 = 400;
/// What programs and link took that the simulation does not know, ms.
const EARLY_MS: f64 = 1.0;
const LATE_MS: f64 = 3.0;

/// A kept capture and what its link did.
#[derive(Default)]
struct Capture {
    rtt_ms: u64,
    drop_up: Vec<u64>,
    hold_up: Vec<(u64, Nanos)>,
    packets: Vec<Seen>,
}

/// A SYN or a segment of data as it left its sender.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    ms: f64,
    up: bool,
    seq: u32,
    end: u32,
}

#[test]
fn a_segment_lost_beside_a_late_one_waits_for_the_timeout() {
    check("late-then-lost.txt");
}

#[test]
fn a_segment_that_is_too_late_is_refused_for_its_stamp() {
    check("stamp-too-old.txt");
}

/// Holds each SYN and segment of data against the times that the simulation gives it.
fn check(name: &str) {
    let capture = Capture::read(name);
    let alike: Vec<Vec<Seen>> = simulate(&capture)
        .into_iter()
        .filter(|trial| {
            let same = |(a, b): (&Seen, &Seen)| (a.up, a.seq, a.end) == (b.up, b.seq, b.end);
            trial.len() == capture.packets.len() && trial.iter().zip(&capture.packets).all(same)
        })
        .collect();
    assert!(!alike.is_empty(), "{name}: the kernel sent other segments than any trial");
    for (index, packet) in capture.packets.iter().enumerate() {
        let times = alike.iter().map(|trial| trial[index].ms);
        let least = times.clone().fold(f64::INFINITY, f64::min);
        let most = times.fold(0.0, f64::max);
        let within = least - EARLY_MS <= packet.ms && packet.ms <= most + LATE_MS;
        assert!(within, "{name}: {packet:?}, simulated from {least:.3} to {most:.3} ms");
    }
}

fn simulate(capture: &Capture) -> Vec<Vec<Seen>> {
    let catalog = common::catalog("100 us");
    let settings = format!(
        "key_store = \"software\"\n[link]\nprofile = \"loopback\"\nrtt = \"{} ms\"\n\
         keep_order = false\n[stack]\nprotocol = \"https\"\ntls = \"1.3\"\n",
        capture.rtt_ms
    );
    let case = common::case(&settings, &catalog);
    let tcp = case.stack.tcp().expect("a stack over TCP").clone();
    let lines = |steps: &[(&str, u32)]| -> Vec<exchange::Line> {
        steps.iter().map(|&(word, number)| (word.to_owned(), number)).collect()
    };
    let client = [("send", 236), ("receive", 993), ("wait_ms", 20)];
    let client = lines(&[&client[..], &[("send", 2_999), ("send", 78), ("receive", 300)]].concat());
    let server = [("receive", 236), ("send", 993), ("receive", 2_999), ("receive", 78)];
    let server = lines(&[&server[..], &[("send", 300)]].concat());
    let trace = exchange::trace([&client, &server], tcp);
    let model = CaseModel::with_trace(&case, &trace, &catalog)
        .expect("a case that compiles")
        .with_held(&capture.hold_up, &[]);
    let trials = (0..SEEDS).map(|seed| simulate_packets(&model, &capture.drop_up, &[], seed));
    trials.map(|events| events.iter().filter_map(Seen::of).collect()).collect()
}

impl Seen {
    fn of(event: &PacketEvent) -> Option<Seen> {
        let up = event.heading == Heading::Up;
        let seen =
            Seen { ms: event.time_ns as f64 / 1e6, up, seq: event.seq, end: event.seq + event.len };
        (event.len > 0 || event.flags.contains('S')).then_some(seen)
    }
}

impl Capture {
    fn read(name: &str) -> Capture {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../vectors/linux-6.18-tcp");
        let text = std::fs::read_to_string(root.join(name)).expect("the capture is there");
        let mut capture = Capture::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |index: usize| words[index].parse::<u64>().expect("a number");
            match words[..] {
                ["#", "rtt", _, "ms"] => capture.rtt_ms = number(2),
                ["#", "drop", "up", _] => capture.drop_up.push(number(3)),
                ["#", "hold", "up", _, _, "ms"] => {
                    capture.hold_up.push((number(3), Nanos::from_millis(number(4))));
                }
                [ms, "ms", way, flags, "seq", range, ..] => {
                    let (seq, end) = range.split_once(':').unwrap_or((range, range));
                    let [seq, end] = [seq, end].map(|at| at.parse().expect("a number"));
                    if end > seq || flags.contains('S') {
                        let ms = ms.parse().expect("a time");
                        capture.packets.push(Seen { ms, up: way == ">", seq, end });
                    }
                }
                _ => panic!("{name}: {line:?} is no line of a capture"),
            }
        }
        assert!(capture.packets.len() > 6, "{name} holds a connection");
        capture
    }
}
