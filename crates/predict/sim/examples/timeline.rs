// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packet timelines of two small programs, for comparison with captures of the running kernel.
//!
//! Reads one JSON object from stdin, for example
//! `{"settings": "[link]\nprofile = \"loopback\"\nrtt = \"60 ms\"", "client": [["send", 236],
//! ["receive", 993]], "server": [["receive", 236], ["send", 993]], "drop_up": [], "drop_down":
//! [], "hold_up": [[2, 40]], "hold_down": [], "seeds": 100, "cost": "100 us"}`
//! and prints one JSON list for each seed, of
//! `[time_ns, "up"|"down", flags, seq, len, ack, [[start, end], ...], dropped]`.
//! A packet that is held takes so many milliseconds longer than the others. Programs know
//! `["send", bytes]`, `["receive", bytes]` (the peer's next send has that many), `["close", 0]` and
//! `["wait_ms", time]`.

use std::io::Read;

use serde::Deserialize;
use serde_json::json;
use warifu_model::{Catalog, Nanos, ProfileKind};
use warifu_sim::{CaseModel, Heading, PacketEvent, simulate_packets};

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/exchange.rs"]
mod exchange;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    settings: String,
    client: Vec<(String, u32)>,
    server: Vec<(String, u32)>,
    drop_up: Vec<u64>,
    drop_down: Vec<u64>,
    #[serde(default)]
    hold_up: Vec<(u64, u64)>,
    #[serde(default)]
    hold_down: Vec<(u64, u64)>,
    seeds: u64,
    cost: String,
    /// `TCP_MAX_QUICKACKS` of the kernel profile `grows`.
    quick_acks: u8,
}

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("a question on stdin");
    let question: Question = serde_json::from_str(&text).expect("a question in JSON");
    let mut catalog = common::catalog(&question.cost);
    add_kernel(&mut catalog, question.quick_acks);
    let case = common::case(&question.settings, &catalog);
    let tcp = case.stack.tcp().expect("a stack over TCP").clone();
    let trace = exchange::trace([&question.client, &question.server], tcp);
    let held = |script: &[(u64, u64)]| -> Vec<(u64, Nanos)> {
        script.iter().map(|&(packet, ms)| (packet, Nanos::from_millis(ms))).collect()
    };
    let model = CaseModel::with_trace(&case, &trace, &catalog)
        .expect("a case that compiles")
        .with_held(&held(&question.hold_up), &held(&question.hold_down));
    for seed in 0..question.seeds {
        let events = simulate_packets(&model, &question.drop_up, &question.drop_down, seed);
        println!("{}", serde_json::Value::Array(events.iter().map(line).collect()));
    }
}

/// The kernel `grows`: Linux 6.18 with another number of quick acknowledgements.
fn add_kernel(catalog: &mut Catalog, quick_acks: u8) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../profiles/tcp/linux-6.18.toml");
    let text = std::fs::read_to_string(path).expect("a readable profile");
    let ours = text.replace("name = \"linux-6.18\"", "name = \"grows\"").replace(
        "tcp_max_quickacks = { value = 16",
        &format!("tcp_max_quickacks = {{ value = {quick_acks}"),
    );
    assert_ne!(text, ours, "the profile is worded as it was");
    catalog.add(ProfileKind::Tcp, "grows", &ours, path).expect("a valid profile");
}

fn line(event: &PacketEvent) -> serde_json::Value {
    let heading = if event.heading == Heading::Up { "up" } else { "down" };
    let PacketEvent { time_ns, flags, seq, len, ack, sack, dropped, .. } = event;
    json!([time_ns, heading, flags, seq, len, ack, sack, dropped])
}
