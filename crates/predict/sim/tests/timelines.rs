// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mechanisms of Linux's TCP as packet timelines, with the packets of a script dropped.
//!
//! Each golden was compared with the running kernel: `tests/kernel/` runs the same exchange
//! over the emulated link with the same packets dropped, and captures both ends. `make golden`
//! writes them anew.

mod common;

use std::fmt::Write;
use std::path::Path;

use warifu_sim::{CaseModel, simulate_packets};

/// One trial of the reference model, without random loss.
fn timeline(up: &[u64], down: &[u64]) -> String {
    let catalog = common::catalog("100 us");
    let case = common::case(common::REFERENCE, &catalog);
    let model = CaseModel::compile(&case, &catalog).unwrap();
    let mut text = String::new();
    for event in simulate_packets(&model, up, down, 1) {
        writeln!(text, "{event}").unwrap();
    }
    text
}

fn check(name: &str, up: &[u64], down: &[u64]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/timelines").join(name);
    let path = path.with_extension("txt");
    let found = timeline(up, down);
    if std::env::var_os("WARIFU_UPDATE_GOLDENS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(expected == found, "{name}: expected\n{expected}\nfound\n{found}");
}

macro_rules! goldens {
    ($($(#[$doc:meta])* $name:ident: up $up:expr, down $down:expr;)+) => {
        $($(#[$doc])* #[test] fn $name() { check(stringify!($name), &$up, &$down); })+
    };
}

goldens! {
    nothing_lost: up [], down [];
    /// The SYN again after 1 s, on a tick of 32 ms.
    syn_lost: up [0], down [];
    /// Four times 1 s, then doubling; the window begins at one segment.
    five_syns_lost: up [0, 1, 2, 3, 4], down [];
    /// Both ends' timers run; the SYN-ACK echoes the first SYN's time stamp.
    syn_ack_lost: up [], down [0];
    /// Data makes up for the lost acknowledgement.
    last_ack_lost: up [1], down [];
    /// A lone segment: the probe takes the place of the timeout.
    client_hello_lost: up [2], down [];
    client_hello_and_its_probe_lost: up [2, 3], down [];
    acknowledgement_lost: up [], down [1];
    server_flight_lost: up [], down [2];
    /// The second of two is lost: the delayed acknowledgement of the first, then the timeout.
    last_of_flight_lost: up [5], down [];
    /// The first of two is lost: repaired after a quarter round trip's patience.
    first_of_flight_lost: up [4], down [];
    whole_flight_lost: up [4, 5], down [];
    middle_of_answer_lost: up [], down [4];
    end_of_answer_lost: up [], down [5];
    both_directions_lose: up [4], down [3];
}
