// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CoAP exchanges packet by packet, with the packets of a script dropped, and what holds for every
//! seed.

mod common;

use warifu_model::{Catalog, Metric};
use warifu_sim::{CaseModel, Heading, Outcome, PacketEvent, Simulator, simulate_packets};

const MS: u64 = 1_000_000;
/// IPv4 and UDP headers; a CoAP header and a token of one byte; `/data`; a marker and 64 B.
const REQUEST_BYTES: u32 = 28 + 5 + 5;
const RESPONSE_BYTES: u32 = 28 + 5 + 65;

fn model(message_type: &str, link: &str, catalog: &Catalog) -> CaseModel {
    let settings = format!(
        "[link]\nprofile = \"loopback\"\n{link}\n[stack]\nprotocol = \"coap\"\n\
         message_type = \"{message_type}\"\n[pattern]\nkind = \"request\"\npath = \"/data\"\n\
         response_body = \"64 B\"\n"
    );
    CaseModel::compile(&common::case(&settings, catalog), catalog).unwrap()
}

fn packets(link: &str, up: &[u64], down: &[u64], seed: u64) -> Vec<PacketEvent> {
    let catalog = common::catalog("100 us");
    simulate_packets(&model("CON", link, &catalog), up, down, seed)
}

/// The times of all packets of a direction, ns.
fn times(events: &[PacketEvent], heading: Heading) -> Vec<u64> {
    events.iter().filter(|event| event.heading == heading).map(|event| event.time_ns).collect()
}

/// Whether a pause is one of libcoap's first timeouts times `factor`, with the timers' lateness.
fn is_timeout(pause: u64, factor: u64) -> bool {
    (0..=32).any(|step| {
        let timeout = ((2_000 * (64 + step) + 32) >> 6) * MS * factor;
        (timeout + 20_000..=timeout + 70_000).contains(&pause)
    })
}

#[test]
fn exchange_without_loss() {
    let events = packets("rtt = \"60 ms\"", &[], &[], 1);
    let seen: Vec<_> = events.iter().map(|one| (one.heading, one.len, one.again)).collect();
    assert_eq!(seen, [(Heading::Up, REQUEST_BYTES, false), (Heading::Down, RESPONSE_BYTES, false)]);
}

#[test]
fn lost_request_is_sent_again() {
    let events = packets("rtt = \"60 ms\"", &[0, 1], &[], 1);
    let up = times(&events, Heading::Up);
    assert_eq!(events.iter().map(|one| one.again).collect::<Vec<_>>(), [false, true, true, false]);
    let first = up[1] - up[0];
    assert!(is_timeout(first, 1), "{first}");
    assert!(is_timeout(up[2] - up[1], 2));
    assert_eq!(times(&events, Heading::Down).len(), 1);
}

/// The server keeps no record of message IDs: it works again for the second copy.
#[test]
fn lost_response_is_made_anew() {
    let events = packets("rtt = \"60 ms\"", &[], &[0], 1);
    let (up, down) = (times(&events, Heading::Up), times(&events, Heading::Down));
    assert_eq!((up.len(), down.len()), (2, 2));
    assert!(is_timeout(up[1] - up[0], 1));
    assert_eq!(down[1] - up[1], down[0] - up[0]);
    // A response made anew is no retransmission.
    assert!(events.iter().filter(|one| one.heading == Heading::Down).all(|one| !one.again));
}

#[test]
fn request_and_response_lost() {
    let events = packets("rtt = \"60 ms\"", &[0], &[0], 1);
    let (up, down) = (times(&events, Heading::Up), times(&events, Heading::Down));
    assert_eq!((up.len(), down.len()), (3, 2));
    assert!(is_timeout(up[2] - up[1], 2));
}

#[test]
fn duplicate_is_answered_again() {
    // Longer than thrice the longest first timeout: the request leaves three times, or twice.
    let events = packets("rtt = \"9500 ms\"", &[], &[], 1);
    let (up, down) = (times(&events, Heading::Up), times(&events, Heading::Down));
    assert_eq!(up.len(), 3);
    assert!(down.len() >= 2, "{down:?}");
    for (request, response) in up.iter().zip(&down) {
        assert_eq!(response - request, down[0] - up[0]);
    }
}

#[test]
fn exchange_is_given_up_after_31_first_timeouts() {
    let catalog = common::catalog("100 us");
    let dead = model("CON", "rtt = \"60 ms\"\nloss = \"99.999 %\"", &catalog);
    let events = simulate_packets(&dead, &[0, 1, 2, 3, 4], &[], 3);
    let up = times(&events, Heading::Up);
    assert_eq!(up.len(), 5);
    for (index, pair) in up.windows(2).enumerate() {
        assert!(is_timeout(pair[1] - pair[0], 1 << index));
    }
    let mut outcome = Outcome::default();
    Simulator::new().run(&dead, 3, &mut outcome);
    assert!(outcome.connections[0].failed);
}

#[test]
fn lost_non_is_not_sent_again() {
    let catalog = common::catalog("100 us");
    let dead = model("NON", "rtt = \"60 ms\"\nloss = \"99.999 %\"", &catalog);
    assert_eq!(simulate_packets(&dead, &[0], &[], 3).len(), 1);
    let mut outcome = Outcome::default();
    Simulator::new().run(&dead, 3, &mut outcome);
    assert!(outcome.connections[0].failed);
}

/// Not a nanosecond is lost, and the link carries each copy, whatever was lost.
#[test]
fn stages_add_up() {
    let catalog = common::catalog("100 us");
    for message_type in ["CON", "NON"] {
        for link in ["rtt = \"0 ms\"", "rtt = \"60 ms\"\nloss = \"30 %\"", "rtt = \"5 s\""] {
            let model = model(message_type, link, &catalog);
            let mut simulator = Simulator::new();
            let mut outcome = Outcome::default();
            for seed in 0..200 {
                simulator.run(&model, seed, &mut outcome);
                for connection in outcome.connections.iter().filter(|one| !one.failed) {
                    let total = connection.value(Metric::CoapExchange);
                    assert_eq!(connection.stages.iter().sum::<u64>(), total);
                    let again = connection.value(Metric::CoapRetransmitted);
                    assert!(connection.value(Metric::PacketsLink) >= 2 + again);
                    assert!(again == 0 || message_type == "CON");
                    let sent = u64::from(REQUEST_BYTES - 28);
                    assert_eq!(connection.value(Metric::BytesClientSent), sent);
                }
            }
        }
    }
}

/// A request or its response is lost with probability 1 - 0.9^2; then it is sent again.
#[test]
fn retransmissions_are_as_frequent_as_losses() {
    let catalog = common::catalog("0 ms");
    let model = model("CON", "rtt = \"60 ms\"\nloss = \"10 %\"", &catalog);
    let mut simulator = Simulator::new();
    let mut outcome = Outcome::default();
    let (mut again, trials) = (0, 20_000);
    for seed in 0..trials {
        simulator.run(&model, seed, &mut outcome);
        again += u64::from(outcome.connections[0].value(Metric::CoapRetransmitted) > 0);
    }
    let share = again as f64 / trials as f64;
    // Five standard deviations of 0.28 %; one in 4000 exchanges fails.
    assert!((share - 0.19).abs() < 0.014, "{share}");
}

/// All costs are constant here, so trials without loss may stand for one another, but not where the
/// response takes about as long as the first timeout, which is drawn.
#[test]
fn round_trip_as_long_as_the_first_timeout() {
    let catalog = common::catalog("100 us");
    let model = model("CON", "rtt = \"2500 ms\"\nloss = \"0 %\"", &catalog);
    let (mut simulator, mut outcome) = (Simulator::new(), Outcome::default());
    let again = |seed: u64| {
        simulator.run(&model, seed, &mut outcome);
        outcome.connections[0].value(Metric::CoapRetransmitted)
    };
    let sent_again: u64 = (0..400).map(again).sum();
    // The first timeout is uniform from 2 to 3 s: half of 400, and five standard deviations of 10.
    assert!((150..=250).contains(&sent_again), "{sent_again}");
}
