// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lab's CoAP client against servers on loopback, for every way in which an exchange can end.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{BODY, Manner, Server, message_id, message_type};
use warifu_coap_client::{Config, Ended, Totals, run};

const TRIALS: u32 = 12;
/// CON without a random part, so that the first timeout is a second.
const SECOND: &str = r#""stack": {"protocol": "coap", "message_type": "CON",
    "ack_timeout": 1000000000, "ack_random_factor_percent": 100, "max_retransmit": 4}"#;
const CON: &str = r#""stack": {"protocol": "coap", "message_type": "CON",
    "ack_timeout": 2000000000, "ack_random_factor_percent": 150, "max_retransmit": 4}"#;
/// CON whose first timeout is beyond any test's.
const CON_ONCE: &str = r#""stack": {"protocol": "coap", "message_type": "CON",
    "ack_timeout": 60000000000, "ack_random_factor_percent": 100, "max_retransmit": 4}"#;
const NON: &str = r#""stack": {"protocol": "coap", "message_type": "NON",
    "ack_timeout": 2000000000, "ack_random_factor_percent": 150, "max_retransmit": 4}"#;

fn config(server: &Server, more: &str) -> Config {
    Config::parse(&format!(
        r#"{{"address": "{}", "trials": {TRIALS}, "rate_per_second": 500, "spread": 0.5,
            "seed": 3, "datagrams": true, {more}}}"#,
        server.address()
    ))
    .unwrap()
}

fn outcomes(config: &Config) -> (Vec<serde_json::Value>, Ended, Totals) {
    let mut output = Vec::new();
    let (ended, totals) = run(config, &mut output, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    (lines(&output), ended, totals)
}

fn lines(output: &[u8]) -> Vec<serde_json::Value> {
    let text = std::str::from_utf8(output).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(row: &serde_json::Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"))
}

/// Runs all trials; each must succeed, and the columns must tell of what the server saw.
fn succeeds(manner: Manner, more: &str) -> Vec<serde_json::Value> {
    let server = Server::start(manner);
    let config = config(&server, &format!(r#""timeout_s": 60, {more}"#));
    let (rows, ended, totals) = outcomes(&config);
    assert_eq!((ended, totals.failed), (Ended::Done, 0), "{manner:?} {rows:?}");
    let mut trials: Vec<u64> = rows.iter().map(|row| number(row, "trial")).collect();
    trials.sort_unstable();
    assert_eq!(trials, (0..u64::from(TRIALS)).collect::<Vec<_>>());
    let seen = server.seen();
    assert_eq!(seen.len(), TRIALS as usize, "a port for each trial");
    for row in &rows {
        let datagrams = &seen[&(number(row, "port") as u16)];
        let bytes: usize = datagrams.iter().map(Vec::len).sum();
        assert_eq!(number(row, "sent_all") as usize, bytes, "{manner:?} {row}");
        let times = ["request_ns", "first_ns", "done_ns"].map(|key| number(row, key));
        assert!(times[0] > 0 && times.is_sorted(), "{manner:?} {row}");
        assert_eq!(number(row, "body_bytes") as usize, BODY.len());
    }
    rows
}

fn fails(manner: Manner, more: &str, word: &str) -> Vec<serde_json::Value> {
    let server = Server::start(manner);
    let (rows, ended, totals) = outcomes(&config(&server, more));
    assert_eq!(ended, Ended::Done, "{manner:?}");
    assert_eq!((totals.reported, totals.failed), (TRIALS, TRIALS), "{manner:?} {rows:?}");
    for row in &rows {
        assert_eq!(row["error"], word, "{manner:?} {row}");
        assert_eq!(number(row, "done_ns") > 0, manner == Manner::NotFound, "{manner:?} {row}");
    }
    rows
}

#[test]
fn piggybacked_response() {
    for more in [CON, NON] {
        for row in succeeds(Manner::Piggybacked, more) {
            // Header, token and nothing else; header, token, payload marker and body.
            assert_eq!((number(&row, "sent"), number(&row, "received")), (5, 5 + 1 + 8));
            assert_eq!(
                (number(&row, "datagrams_sent"), number(&row, "datagrams_received")),
                (1, 1)
            );
            assert_eq!((number(&row, "acknowledged_ns"), number(&row, "retransmitted")), (0, 0));
        }
    }
}

#[test]
fn separate_response_is_acknowledged_after_it_is_counted() {
    for row in succeeds(Manner::Separate, CON) {
        let acknowledged = number(&row, "acknowledged_ns");
        assert!(acknowledged > 0 && acknowledged <= number(&row, "first_ns"), "{row}");
        assert_eq!((number(&row, "datagrams_sent"), number(&row, "datagrams_received")), (1, 2));
        assert_eq!(number(&row, "sent_all") - number(&row, "sent"), 4, "an empty ACK");
    }
    for row in succeeds(Manner::Unacknowledged, CON) {
        assert_eq!((number(&row, "acknowledged_ns"), number(&row, "retransmitted")), (0, 0));
    }
}

#[test]
fn lost_con_is_sent_again_after_its_timeout() {
    let rows = succeeds(Manner::From(2), SECOND);
    for row in &rows {
        assert_eq!((number(row, "retransmitted"), number(row, "retransmitted_bytes")), (1, 5));
        assert_eq!((number(row, "sent"), number(row, "datagrams_sent")), (10, 2));
        let [first, second, _] = row["datagrams"].as_array().unwrap().as_slice() else {
            panic!("three datagrams: {row}");
        };
        assert_eq!(first["message_id"], second["message_id"]);
        let timeout_ns = number(second, "at_ns") - number(first, "at_ns");
        // libcoap counts in milliseconds, rounded.
        assert!(timeout_ns > 999_000_000, "{timeout_ns}");
    }
}

#[test]
fn second_response_changes_nothing() {
    for more in [CON, NON] {
        for row in succeeds(Manner::Twice, more) {
            assert_eq!((number(&row, "datagrams_received"), number(&row, "received")), (1, 14));
        }
    }
}

#[test]
fn second_response_is_taken_in_silence_while_the_port_is_kept() {
    for row in succeeds(Manner::Late, &format!(r#""linger_s": 3, {SECOND}"#)) {
        assert_eq!((number(&row, "datagrams_received"), number(&row, "received")), (1, 14));
        assert_eq!((number(&row, "received_all"), number(&row, "sent_all")), (28, 10));
    }
}

#[test]
fn failures_are_outcomes_with_a_word() {
    fails(Manner::NotFound, &format!("\"timeout_s\": 60, {CON}"), "the server answered 4.04");
    fails(Manner::Resets, &format!("\"timeout_s\": 60, {CON}"), "reset");
    // Nobody tells the sender of a NON: it waits all the time.
    fails(Manner::Resets, &format!("\"timeout_s\": 3, {NON}"), "reset");
    for row in fails(Manner::Silent, &format!("\"timeout_s\": 0.2, {NON}"), "timeout") {
        assert_eq!((number(&row, "sent"), number(&row, "received")), (5, 0));
    }
    fails(Manner::Silent, &format!("\"timeout_s\": 0.2, {CON}"), "timeout");
}

#[test]
fn con_is_given_up_after_max_retransmit() {
    let once = SECOND.replace("\"max_retransmit\": 4", "\"max_retransmit\": 1");
    let more = format!("\"timeout_s\": 60, {once}");
    for row in fails(Manner::Silent, &more, "not acknowledged") {
        assert_eq!((number(&row, "datagrams_sent"), number(&row, "retransmitted")), (2, 1));
    }
}

#[test]
fn closed_port_is_unreachable() {
    let port = port_without_socket();
    for more in [CON_ONCE, NON] {
        let text = format!(
            r#"{{"address": "127.0.0.1:{port}", "trials": 2, "rate_per_second": 500,
                "timeout_s": 3, {more}}}"#
        );
        let (rows, _, totals) = outcomes(&Config::parse(&text).unwrap());
        assert_eq!(totals.failed, 2, "{rows:?}");
        for row in rows {
            assert!(row["error"] == "unreachable" && number(&row, "unreachable") == 1, "{row}");
        }
    }
}

/// A free port that the kernel gives to nobody who asks for any (ip(7), ip_local_port_range), such
/// as a test in parallel.
fn port_without_socket() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let ends: Vec<u16> = range.split_whitespace().map(|end| end.parse().unwrap()).collect();
    let given_out = ends[0]..=ends[1];
    let is_free = |port: &u16| std::net::UdpSocket::bind(("127.0.0.1", *port)).is_ok();
    (1_024..=u16::MAX).filter(|port| !given_out.contains(port)).find(is_free).unwrap()
}

#[test]
fn request_is_what_the_configuration_says() {
    let server = Server::start(Manner::Piggybacked);
    let more = format!(r#""timeout_s": 60, {NON}, "path": "/a/bc?d=1", "token_bytes": 4"#);
    let (rows, ..) = outcomes(&config(&server, &more));
    let seen = server.seen();
    assert_eq!((rows.len(), seen.len()), (TRIALS as usize, TRIALS as usize));
    for datagrams in seen.values() {
        let [request] = datagrams.as_slice() else { panic!("one request: {datagrams:?}") };
        assert_eq!((request[0], request[1], message_type(request)), (0x54, 1, 1));
        // Uri-Path is option 11, Uri-Query option 15: RFC 7252 section 5.10.
        let options = [&[0xb1, b'a', 0x02, b'b', b'c', 0x43], &b"d=1"[..]].concat();
        assert_eq!(request[8..], options);
    }
}

#[test]
fn seed_decides_message_ids_and_tokens() {
    let requests = |seed: u64| {
        let server = Server::start(Manner::Piggybacked);
        let more = format!(r#""timeout_s": 60, "token_bytes": 4, {CON}"#);
        let mut config = config(&server, &more);
        config.seed = seed;
        let (rows, ..) = outcomes(&config);
        let seen = server.seen();
        let mut rows: Vec<_> = rows
            .iter()
            .map(|row| (number(row, "trial"), seen[&(number(row, "port") as u16)][0].clone()))
            .collect();
        rows.sort();
        rows
    };
    let (one, other) = (requests(3), requests(4));
    assert_eq!(one, requests(3));
    assert_ne!(one, other);
    let ids: std::collections::HashSet<u16> = one.iter().map(|row| message_id(&row.1)).collect();
    assert_eq!(ids.len(), TRIALS as usize, "each trial draws its own");
}

#[test]
fn concurrent_requests_are_under_way_together() {
    // None of four is answered before all four have come.
    succeeds(Manner::Together(4), &format!(r#""concurrent": 4, "alone": true, {CON}"#));
    let more = format!(r#""timeout_s": 0.2, "concurrent": 3, "alone": true, {NON}"#);
    fails(Manner::Together(13), &more, "timeout");
}

#[test]
fn another_body_ends_the_run() {
    let server = Server::start(Manner::Piggybacked);
    let config = config(&server, &format!(r#""timeout_s": 60, "body_bytes": 9, {CON}"#));
    let error = run(&config, &mut Vec::new(), &mut |_| {}, &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("has 8 B: body_bytes is 9"), "{error}");
}

#[test]
fn stopped_run_keeps_finished_exchanges() {
    let server = Server::start(Manner::Piggybacked);
    let mut config = config(&server, &format!(r#""timeout_s": 60, {CON}"#));
    config.trials = 100_000;
    let stop = AtomicBool::new(false);
    let mut output = StopAfter { lines: 5, seen: Vec::new(), stop: &stop };
    let (ended, totals) = run(&config, &mut output, &mut |_| {}, &stop).unwrap();
    assert_eq!(ended, Ended::Stopped);
    let rows = lines(&output.seen);
    assert!(rows.len() >= 5 && rows.len() == totals.reported as usize, "{totals:?}");
}

struct StopAfter<'a> {
    lines: usize,
    seen: Vec<u8>,
    stop: &'a AtomicBool,
}

impl std::io::Write for StopAfter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.seen.extend_from_slice(bytes);
        if self.seen.iter().filter(|&&byte| byte == b'\n').count() >= self.lines {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
