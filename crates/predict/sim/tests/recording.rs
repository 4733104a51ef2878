// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trial that is recorded goes as any other, and what is recorded of it is whole.

mod common;

use warifu_model::{Case, Catalog, Counter, Mark, Operation, Role};
use warifu_sim::{CarrierTimer, CaseModel, Doing, Outcome, Recording, Simulator, trial_seed};

/// Trials of each case: with losses of 2 % and more, many have some.
const TRIALS: u64 = 200;

const LOSSY: &str = "[link]\nprofile = \"loopback\"\nrtt = \"60 ms\"\nloss = \"5 %\"\n\
                     jitter = [\"0 ms\", \"1 ms\", \"40 ms\"]\nrate = \"100 kbit/s\"\n";

fn https(pattern: &str) -> String {
    format!(
        "key_store = \"iot-safe-sakomoto\"\n{LOSSY}[stack]\nprotocol = \"https\"\ntls = \"1.3\"\n\
         authentication = \"mutual\"\n[pattern]\nkind = \"request\"\n{pattern}\n"
    )
}

fn coap() -> String {
    format!("{LOSSY}[stack]\nprotocol = \"coap\"\n[pattern]\nkind = \"request\"\n")
}

fn dds() -> String {
    let stack = "[stack]\nprotocol = \"dds\"\ncrypto = \"none\"\n";
    format!(
        "[link]\nprofile = \"loopback\"\nrtt = \"5 ms\"\n{stack}[pattern]\n\
         kind = \"request\"\nresponse_body = \"20 KiB\"\n"
    )
}

/// Every connection of some trials of a case, each checked against the trial run as any other.
fn recordings(settings: &str) -> Vec<(Recording, Outcome, usize)> {
    let catalog: Catalog = common::catalog("100 us");
    let case: Case = common::case(settings, &catalog);
    let plain = CaseModel::compile(&case, &catalog).unwrap();
    let detailed = CaseModel::compile_to_record(&case, &catalog).unwrap();
    let (mut simulator, mut recorder) = (Simulator::new(), Simulator::new());
    let mut found = Vec::new();
    for trial in 0..TRIALS {
        let seed = trial_seed(7, &case.seed_id(), trial);
        let (mut expected, mut outcome) = (Outcome::default(), Outcome::default());
        simulator.run(&plain, seed, &mut expected);
        for connection in 0..plain.connections() {
            let recording = recorder.record(&detailed, seed, connection, &mut outcome);
            assert_eq!(outcome, expected, "{settings} trial {trial}");
            assert_eq!(recording.is_some(), !expected.connections[connection].failed);
            found.extend(recording.map(|of| (of, expected.clone(), connection)));
        }
    }
    assert!(found.len() as u64 > TRIALS / 2, "{}", found.len());
    found
}

/// What holds for every recording.
fn check((recording, outcome, connection): &(Recording, Outcome, usize)) {
    let of = &outcome.connections[*connection];
    let total = of.marks[Mark::FirstResponse as usize] - of.marks[Mark::Start as usize];
    assert_eq!(recording.total_ns, total);
    assert_eq!(recording.marks.first(), Some(&(Mark::Start, 0)));
    assert!(recording.marks.contains(&(Mark::FirstResponse, total)));
    // An end does one thing at a time.
    for role in [Role::Client, Role::Server] {
        let own: Vec<_> = recording.activities.iter().filter(|one| one.role == role).collect();
        for pair in own.windows(2) {
            assert!(pair[0].until_ns <= pair[1].from_ns, "{pair:?}");
        }
    }
    for packet in &recording.packets {
        assert_eq!(packet.packet.dropped, packet.packet.arrives_ns.is_none());
        for message in &recording.messages[packet.messages.clone()] {
            assert_eq!(message.role, packet.role);
        }
    }
    // Until the response is there, every packet is one that the metrics count.
    let counted = of.counters[Mark::FirstResponse as usize];
    let (packets, bytes) = recording
        .packets
        .iter()
        .filter(|one| one.packet.time_ns < total)
        .fold((0, 0), |(packets, bytes), one| (packets + 1, bytes + u64::from(one.packet.bytes)));
    let concurrent = outcome.connections.len() > 1;
    assert!(concurrent || packets >= counted[Counter::Packets as usize]);
    assert!(concurrent || bytes >= counted[Counter::PacketBytes as usize]);
}

#[test]
fn recorded_connections_of_https() {
    let all = recordings(&https(""));
    all.iter().for_each(check);
    let (recording, ..) = &all[0];
    let labels: Vec<&str> = recording.messages.iter().map(|of| of.label.as_str()).collect();
    assert!(labels.starts_with(&["ClientHello", "ServerHello"]), "{labels:?}");
    assert!(labels.contains(&"[GET /]") && labels.contains(&"[200 OK]"), "{labels:?}");
    let signs = |one: &&warifu_sim::Activity| matches!(one.doing, Doing::KeyStore(_));
    assert!(recording.activities.iter().any(|one| signs(&one)));
    let computes = |one: &warifu_sim::Activity| {
        matches!(one.doing, Doing::Operation(Operation::Tls(Role::Server, ..)))
    };
    assert!(recording.activities.iter().any(computes));
    // What a lost packet carried is sent again, after a timer or acknowledgements that tell.
    let lossy = all.iter().filter(|of| of.0.packets.iter().any(|of| of.packet.dropped));
    assert!(lossy.clone().count() > 20);
    let repaired =
        |of: &&(Recording, Outcome, usize)| of.0.packets.iter().any(|of| of.packet.again);
    assert!(lossy.clone().filter(repaired).count() > 10);
    let expired = |of: &&(Recording, Outcome, usize)| {
        of.0.timers.iter().any(|of| of.timer == CarrierTimer::Retransmit)
    };
    assert!(lossy.filter(expired).count() > 10);
}

#[test]
fn recorded_connections_of_several_at_once() {
    recordings(&https("concurrent = 4")).iter().for_each(check);
}

#[test]
fn recorded_exchanges_of_coap() {
    let all = recordings(&coap());
    all.iter().for_each(check);
    for (recording, ..) in &all {
        assert_eq!(recording.messages.len(), 2, "{:?}", recording.messages);
        assert!(recording.packets.iter().all(|of| of.messages.len() == 1));
    }
    assert!(all.iter().any(|(of, ..)| of.packets.iter().any(|of| of.packet.again)));
}

#[test]
fn recorded_samples_of_dds() {
    recordings(&dds()).iter().for_each(check);
}
