// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The link between real namespaces. What is asserted of time is only what no slow machine can
//! break: nothing comes early.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Ends, numbered, run_tests, trial, until};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use warifu_link::loss::LossState;
use warifu_link::packet_log::RECORD_BYTES;
use warifu_link::queue::serialisation_time;
use warifu_link::random::{Direction, Streams};
use warifu_link::report::DirectionReport;
use warifu_link::{Config, Link, LinkConfig, LinkError, netns};
use warifu_model::{BitsPerSecond, Loss, Nanos, Probability};
use warifu_os::clock::now;

const DELAY: Nanos = Nanos::from_millis(20);
const HALF: Nanos = Nanos::from_millis(10);

/// Every packet that came in is accounted for.
fn conserved(direction: &DirectionReport) {
    let c = &direction.counters;
    let dropped =
        c.dropped_by_loss + c.dropped_by_script + c.dropped_by_queue + c.dropped_by_overload;
    let gone = dropped + c.oversize + c.undeliverable + c.flushed + c.delivered;
    assert_eq!(
        c.packets_in + direction.under_way_at_start,
        gone + direction.under_way_at_end,
        "{direction:?}"
    );
}

/// A TCP connection from A to B.
fn tcp(ends: &Ends) -> (TcpStream, TcpStream) {
    let bind = || Ok(TcpListener::bind("10.9.0.2:0").unwrap());
    let listener = netns::enter(ends.b.name(), bind).unwrap();
    let address = listener.local_addr().unwrap();
    let connect = || Ok(TcpStream::connect(address).unwrap());
    let client = netns::enter(ends.a.name(), connect).unwrap();
    (client, listener.accept().unwrap().0)
}

fn packets_arrive_after_their_delay() {
    let ends = Ends::new();
    let delays = LinkConfig { delay_a_to_b: DELAY, delay_b_to_a: HALF, ..LinkConfig::default() };
    let mut link = Link::start(&ends.config(delays)).unwrap();
    // The timer is set earlier by a median of real wake-ups, and never by more than it is first.
    assert!((1..=100_000).contains(&link.scheduler().wake_up_ns), "{:?}", link.scheduler());
    let (a, b) = ends.udp();
    let mut packet = [0_u8; 64];
    for _ in 0..20 {
        for (from, to, delay) in [(&a, &b, DELAY), (&b, &a, HALF)] {
            let sent = now();
            from.send(&packet).unwrap();
            to.recv(&mut packet).unwrap();
            assert!(now() - sent >= delay);
        }
    }
    let report = link.report().unwrap();
    for direction in [&report.a_to_b, &report.b_to_a] {
        conserved(direction);
        assert_eq!(direction.counters.delivered, 20);
        assert_eq!(direction.counters.bytes_delivered, 20 * (64 + 28));
        assert_eq!(direction.lateness_us.n, 20);
    }
    // At most one wait for each packet, each shorter than the timer is set earlier.
    let most_us = 40.0 * link.scheduler().wake_up_ns as f64 / 1e3;
    assert!(report.spun_us <= most_us, "{} of {most_us}", report.spun_us);
    assert_eq!(link.report().unwrap().a_to_b.counters.packets_in, 0, "a report opens a new window");
}

fn seed_replays_losses_in_both_directions() {
    let ends = Ends::new();
    let loss = Loss::GilbertElliott {
        good_to_bad: Probability(0.05),
        bad_to_good: Probability(0.3),
        loss_good: Probability(0.01),
        loss_bad: Probability(0.7),
    };
    let lossy = LinkConfig { loss, ..LinkConfig::default() };
    let mut link = Link::start(&ends.config(lossy.clone())).unwrap();
    let (a, b) = ends.udp();
    for seed in [7, 7, 8] {
        link.set(lossy.clone(), Some(seed)).unwrap();
        for (from, to, direction) in [(&a, &b, Direction::AToB), (&b, &a, Direction::BToA)] {
            let mut state = LossState::new(loss);
            let mut streams = Streams::new(seed, direction);
            let expected: Vec<u32> =
                (0..200).filter(|_| !state.next_is_lost(&mut streams.loss)).collect();
            assert!((100..200).contains(&expected.len()));
            assert_eq!(numbered(from, to, 200, expected.len()), expected);
        }
        let report = link.report().unwrap();
        conserved(&report.a_to_b);
        assert_eq!(report.seed, seed);
        assert!(report.a_to_b.counters.dropped_by_loss > 0);
    }
}

fn jitter_with_and_without_keep_order() {
    let ends = Ends::new();
    let jittery = |keep_order| LinkConfig {
        jitter: vec![Nanos::ZERO, Nanos::from_millis(5)],
        keep_order,
        ..LinkConfig::default()
    };
    let mut link = Link::start(&ends.config(jittery(true))).unwrap();
    let (a, b) = ends.udp();
    let in_order: Vec<u32> = (0..100).collect();
    assert_eq!(numbered(&a, &b, 100, 100), in_order);
    link.set(jittery(false), None).unwrap();
    let mut received = numbered(&a, &b, 100, 100);
    assert_ne!(received, in_order, "100 packets sent within 5 ms in order by chance: 1 in 100!");
    received.sort_unstable();
    assert_eq!(received, in_order);
}

fn full_queue_drops_newest_and_rate_is_a_ceiling() {
    let ends = Ends::new();
    let rate = BitsPerSecond(1_000_000);
    let slow =
        LinkConfig { rate_a_to_b: Some(rate), queue_packets: Some(10), ..LinkConfig::default() };
    let mut link = Link::start(&ends.config(slow)).unwrap();
    let (a, b) = ends.udp();
    let start = now();
    // 12 ms each on the wire, so the last of those that fit arrives after 120 ms.
    let packet = [0_u8; 1472];
    for _ in 0..30 {
        a.send(&packet).unwrap();
    }
    let mut buffer = [0_u8; 1500];
    for number in 1..=10 {
        b.recv(&mut buffer).unwrap();
        assert!(now() - start >= serialisation_time(1500 * number, rate));
    }
    let report = link.report().unwrap();
    conserved(&report.a_to_b);
    assert!(report.a_to_b.counters.dropped_by_queue >= 1);
}

fn drop_script_drops_its_segments() {
    let ends = Ends::new();
    // A's first is the SYN, B's first the SYN-ACK; then comes the ACK, then A's data, which is lost
    // once.
    let script = LinkConfig {
        drop_script_a_to_b: vec![0, 3],
        drop_script_b_to_a: vec![0],
        ..LinkConfig::default()
    };
    let mut link = Link::start(&ends.config(script)).unwrap();
    let (a, b) = ends.udp();
    assert_eq!(numbered(&a, &b, 5, 5).len(), 5, "UDP is neither counted nor dropped");
    let (mut client, mut server) = tcp(&ends);
    client.write_all(b"hello").unwrap();
    let mut text = [0_u8; 5];
    server.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"hello", "TCP has repaired it");
    let report = link.report().unwrap();
    assert_eq!(report.a_to_b.counters.dropped_by_script, 2);
    assert_eq!(report.b_to_a.counters.dropped_by_script, 1);
    conserved(&report.a_to_b);
    conserved(&report.b_to_a);
}

/// Each packet of a connection is in the log, in the order in which the link got it, with its fate
/// and its delay.
fn log_tells_each_packets_fate() {
    let ends = Ends::new();
    let folder = std::env::temp_dir().join(format!("warifu-link-log-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("packets");
    let script = LinkConfig {
        delay_a_to_b: HALF,
        delay_b_to_a: HALF,
        drop_script_a_to_b: vec![0, 3],
        ..LinkConfig::default()
    };
    let config = Config { packet_log: Some(path.clone()), ..ends.config(script) };
    let mut link = Link::start(&config).unwrap();
    let (mut client, mut server) = tcp(&ends);
    client.write_all(b"hello").unwrap();
    let mut text = [0_u8; 5];
    server.read_exact(&mut text).unwrap();
    let ports = [client.local_addr().unwrap().port(), server.local_addr().unwrap().port()];
    let report = link.report().unwrap();
    let content = std::fs::read(&path).unwrap();
    let records: Vec<&[u8]> = content[16..].chunks(RECORD_BYTES).collect();
    let (a, b) = (&report.a_to_b.counters, &report.b_to_a.counters);
    assert_eq!(records.len() as u64, a.packets_in + b.packets_in);
    let number =
        |record: &[u8], at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
    for record in &records {
        let found = [28, 30].map(|at| u16::from_le_bytes([record[at], record[at + 1]]));
        assert_eq!((found, record[37]), (ports, 6));
        let (arrival, due) = (number(record, 0), number(record, 8));
        assert_eq!(due, if record[39] == 0 { arrival + HALF.0 } else { 0 });
    }
    // SYN, SYN again, ACK, data, data again: the first and the fourth are dropped by the script.
    let up: Vec<(u8, u8)> =
        records.iter().filter(|r| r[38] == 0).map(|r| (r[39], r[32])).take(5).collect();
    assert_eq!(up, [(2, 0), (0, 0), (0, 0), (2, 5), (0, 5)]);
    let error = Link::start(&config).unwrap_err().to_string();
    assert!(error.contains("device") && error.contains("exists"), "{error}");
    link.stop().unwrap();
    let error = Link::start(&config).unwrap_err().to_string();
    assert!(error.starts_with("creating packet_log"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

fn set_flushes_packets_under_way() {
    let ends = Ends::new();
    let far = LinkConfig { delay_a_to_b: Nanos::from_secs(3_600), ..LinkConfig::default() };
    let mut link = Link::start(&ends.config(far.clone())).unwrap();
    let (a, b) = ends.udp();
    for _ in 0..5 {
        a.send(b"never").unwrap();
    }
    until("five packets' coming under way", || link.report().unwrap().a_to_b.under_way_at_end == 5);
    let closed = link.set(LinkConfig::default(), None).unwrap();
    assert_eq!((closed.a_to_b.counters.flushed, closed.a_to_b.under_way_at_start), (5, 5));
    conserved(&closed.a_to_b);
    a.send(b"at once").unwrap();
    let mut buffer = [0_u8; 16];
    assert_eq!(b.recv(&mut buffer).unwrap(), 7);
    let wrong = LinkConfig { queue_bytes: Some(0), ..LinkConfig::default() };
    assert!(matches!(link.set(wrong, None), Err(LinkError::Config(_))));
    assert_eq!(link.stop().unwrap().a_to_b.counters.delivered, 1);
}

fn routes_are_configured_and_stop_removes_devices() {
    let ends = Ends::new();
    let config = Config {
        mtu: 1280,
        congestion_control: Some("reno".to_owned()),
        initcwnd: Some(3),
        device_b: "right".to_owned(),
        ..ends.config(LinkConfig::default())
    };
    let link = Link::start(&config).unwrap();
    let arguments = ["-n", ends.b.name(), "route", "show"];
    let routes = std::process::Command::new("ip").args(arguments).output().unwrap();
    let routes = String::from_utf8(routes.stdout).unwrap();
    assert!(routes.contains("dev right") && routes.contains("congctl reno"), "{routes}");
    assert!(routes.contains("initcwnd 3"), "{routes}");
    let (a, _b) = ends.udp();
    assert!(a.send(&[0; 1252]).is_ok());
    netns::enter(ends.a.name(), || {
        assert_eq!(
            std::fs::read_to_string("/proc/sys/net/ipv4/tcp_no_metrics_save").unwrap(),
            "1\n"
        );
        Ok(())
    })
    .unwrap();
    assert_eq!(Ends::devices(&ends.b), ["lo", "right"]);
    link.stop().unwrap();
    assert_eq!(Ends::devices(&ends.a), ["lo"]);
    assert_eq!(Ends::devices(&ends.b), ["lo"]);
}

fn start_errors_name_the_fix() {
    let ends = Ends::new();
    let config = ends.config(LinkConfig::default());
    let message = |config: &Config| Link::start(config).unwrap_err().to_string();

    let missing = Config { name_b: "warifu-no-such".to_owned(), ..config.clone() };
    assert!(message(&missing).contains("ip netns add warifu-no-such"));
    let unknown = Config { congestion_control: Some("nosuch".to_owned()), ..config.clone() };
    assert!(message(&unknown).contains("this kernel offers"), "{}", message(&unknown));
    assert_eq!(Ends::devices(&ends.a), ["lo"], "a failed start leaves nothing");

    let _up = Link::start(&config).unwrap();
    let taken = message(&config);
    assert!(taken.contains("\"tun0\" exists already") && taken.contains("device_a"), "{taken}");
}

fn deleted_device_is_reported() {
    let ends = Ends::new();
    let link = Link::start(&ends.config(LinkConfig::default())).unwrap();
    netns::ip_batch(ends.b.name(), "link del dev tun0\n").unwrap();
    // The forwarding thread has ended or is about to; asking it either way gives its reason.
    let mut link = link;
    let mut error = String::new();
    until("the link's end", || {
        error = link.report().err().map(|error| error.to_string()).unwrap_or_default();
        !error.is_empty()
    });
    assert!(error.contains("was it, or its namespace, deleted?"), "{error}");
}

fn main() -> ExitCode {
    run_tests(vec![
        trial!(packets_arrive_after_their_delay, needs_root: true),
        trial!(seed_replays_losses_in_both_directions, needs_root: true),
        trial!(jitter_with_and_without_keep_order, needs_root: true),
        trial!(full_queue_drops_newest_and_rate_is_a_ceiling, needs_root: true),
        trial!(drop_script_drops_its_segments, needs_root: true),
        trial!(log_tells_each_packets_fate, needs_root: true),
        trial!(set_flushes_packets_under_way, needs_root: true),
        trial!(routes_are_configured_and_stop_removes_devices, needs_root: true),
        trial!(start_errors_name_the_fix, needs_root: true),
        trial!(deleted_device_is_reported, needs_root: true),
    ])
}
