// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lab's client against a real OpenSSL server on loopback, for every kind of
//! beginning and end of a connection.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{Manner, Server, stack_json, variant};
use warifu_model::{Authentication, KeyShare, Keyword, Session, TlsVersion};
use warifu_tls_client::client::{Config, Ended, Outcome, Totals, run};
use warifu_tls_client::{Exchange, From, Pki, Variant};

const TRIALS: u32 = 12;

fn config(server: &Server, variant: Option<&Variant>, more: &str) -> Config {
    let stack = variant.map_or("null".into(), stack_json);
    let pki = server.pki_folder();
    Config::parse(&format!(
        r#"{{"stack": {stack}, "pki": {pki:?}, "address": "{}", "trials": {TRIALS},
            "rate_per_second": 500, "spread": 0.5, "seed": 3, "sessions": 4{more}}}"#,
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
    row[key].as_u64().unwrap_or_else(|| panic!("{key} in {row}"))
}

/// Messages of each end: name and length on the wire without a signature, B.
struct Expected {
    client: Vec<(&'static str, usize)>,
    server: Vec<(&'static str, usize)>,
}

/// What the client writes and reads up to the first byte of the response, from a recording.
fn expected(variant: &Variant, config: &Config) -> Expected {
    let pki = Pki::generate(variant.certificate, variant.chain_length).unwrap();
    let exchange = Exchange { request: config.request(), response_bytes: common::RESPONSE.len() };
    let recording = warifu_tls_client::record_exchange(variant, &pki, &exchange).unwrap();
    let of = |from: From| -> Vec<(&'static str, usize)> {
        let sent = recording.messages.iter();
        // Each message without its signature, whose length varies.
        sent.filter(|message| message.from == from && message.name != "Alert")
            .map(|message| {
                (message.name, message.wire_bytes - message.signature_bytes.unwrap_or(0))
            })
            .collect()
    };
    Expected { client: of(From::Client), server: of(From::Server) }
}

fn kinds() -> Vec<Variant> {
    let mut all = Vec::new();
    for authentication in [Authentication::Server, Authentication::Mutual] {
        for &tls in TlsVersion::ALL {
            for &session in Session::ALL.iter().filter(|session| session.fits(tls)) {
                all.push(variant(tls, session, authentication));
            }
        }
    }
    for session in [Session::Full, Session::PskDheKe, Session::EarlyData] {
        let mut prepared = variant(TlsVersion::Tls13, session, Authentication::Mutual);
        prepared.key_share = KeyShare::Prepared;
        all.push(prepared);
    }
    all
}

#[test]
fn byte_counts_match_recordings_for_every_kind_of_connection() {
    for variant in kinds() {
        let server = Server::start(Manner::Tls(variant.clone()));
        let config = config(&server, Some(&variant), r#", "timeout_s": 60"#);
        let (rows, ended, totals) = outcomes(&config);
        assert_eq!(ended, Ended::Done);
        assert_eq!((totals.reported, totals.failed), (TRIALS, 0), "{variant:?} {rows:?}");
        let mut trials: Vec<u64> = rows.iter().map(|row| number(row, "trial")).collect();
        trials.sort_unstable();
        assert_eq!(trials, (0..u64::from(TRIALS)).collect::<Vec<_>>());
        let expected = expected(&variant, &config);
        for row in &rows {
            let sum = |messages: &[(_, usize)]| messages.iter().map(|(_, bytes)| bytes).sum();
            check(row, &variant, sum(&expected.client), sum(&expected.server));
            check_sizes(row, &variant, &expected);
        }
    }
}

fn check(row: &serde_json::Value, variant: &Variant, client_bytes: usize, server_bytes: usize) {
    let times = ["connect_ns", "handshake_ns", "first_ns", "done_ns"];
    let times = times.map(|key| number(row, key));
    assert!(times[0] > 0 && times.is_sorted(), "{variant:?} {row}");
    assert_eq!(row["resumed"], variant.session.is_resumed(), "{variant:?} {row}");
    assert_eq!(row["early_data"], variant.session == Session::EarlyData, "{variant:?} {row}");
    assert!(number(row, "port") > 0 && number(row, "rto_us") > 0 && number(row, "cwnd") > 0);
    let signatures: Vec<u64> =
        row["signatures"].as_array().unwrap().iter().filter_map(|length| length.as_u64()).collect();
    let ends = if variant.authentication == Authentication::Mutual { 2 } else { 1 };
    let expected = if variant.session.is_resumed() { 0 } else { ends };
    assert_eq!(signatures.len(), expected, "{variant:?} {row}");
    // The server's signature comes first.
    let of_server = signatures.first().copied().unwrap_or(0) as usize;
    let of_client = signatures.get(1).copied().unwrap_or(0) as usize;
    assert_eq!(number(row, "sent_all") as usize, client_bytes + of_client, "{variant:?} {row}");
    // A ticket is a block longer or shorter by chance, and one that comes after the response
    // may not have been read.
    let received = number(row, "received_all") as usize;
    let all = server_bytes + of_server;
    let tickets = if variant.session == Session::EarlyData { 1_000 } else { 2 * 16 };
    assert!(received <= all + 2 * 16 && received + tickets >= all, "{all} {variant:?} {row}");
    assert!(number(row, "received") <= number(row, "received_all"));
    // On a busy machine a loss probe may go out before the peer has run.
    let again = number(row, "syn_timeouts") + number(row, "retransmissions");
    assert!(again <= number(row, "retransmitted"), "{row}");
}

/// What is told of messages is what went over the wire, byte for byte, in the order of the RFCs.
fn check_sizes(row: &serde_json::Value, variant: &Variant, expected: &Expected) {
    let of = |end: &str| -> Vec<(String, u64)> {
        serde_json::from_value(row["sizes"][end].clone()).unwrap()
    };
    let (client, server) = (of("client"), of("server"));
    for (messages, bytes) in [(&client, "sent_all"), (&server, "received_all")] {
        let sum: u64 = messages.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(sum, number(row, bytes), "{variant:?} {row}");
    }
    let names = |messages: &[(&'static str, usize)]| -> Vec<&'static str> {
        messages.iter().map(|(name, _)| *name).collect()
    };
    let told = |messages: &[(String, u64)]| -> Vec<String> {
        messages.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(told(&client), names(&expected.client), "{variant:?}");
    // What came after the response may not have been read.
    let (told, names) = (told(&server), names(&expected.server));
    assert!(told.len() <= names.len() && told == names[..told.len()], "{told:?} {names:?}");
    assert!(told.iter().any(|name| name == "ApplicationData"), "{told:?}");
    for ((name, bytes), (_, plain)) in client.iter().zip(&expected.client) {
        let signature = *bytes as usize - plain;
        assert!((name == "CertificateVerify") == (signature > 0), "{name} {variant:?} {row}");
    }
}

/// The joint of a trial with what a link logged of it: port and time.
#[test]
fn port_and_start_are_those_of_the_connection() {
    let server = Server::start(Manner::Plain(common::RESPONSE));
    let before = warifu_os::clock::now().0;
    let (rows, ..) = outcomes(&config(&server, None, r#", "timeout_s": 60"#));
    let after = warifu_os::clock::now().0;
    let starts: Vec<u64> = rows.iter().map(|row| number(row, "start_ns")).collect();
    assert!(starts.iter().all(|&start| before < start && start < after), "{starts:?}");
    let mut ports: Vec<u64> = rows.iter().map(|row| number(row, "port")).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), TRIALS as usize, "{rows:?}");
}

#[test]
fn plain_http_without_handshake() {
    let server = Server::start(Manner::Plain(common::RESPONSE));
    let config = config(&server, None, r#", "timeout_s": 60"#);
    let (rows, _, totals) = outcomes(&config);
    assert_eq!((totals.reported, totals.failed), (TRIALS, 0), "{rows:?}");
    for row in &rows {
        assert_eq!(number(row, "connect_ns"), number(row, "handshake_ns"));
        assert_eq!(number(row, "sent_all") as usize, config.request().len());
        assert_eq!(number(row, "received_all") as usize, common::RESPONSE.len());
    }
}

/// The first connection of a process is not like the others: it is made, and not reported.
#[test]
fn one_connection_comes_before_those_that_are_measured() {
    let server = Server::start(Manner::Plain(common::RESPONSE));
    let (rows, ..) = outcomes(&config(&server, None, r#", "timeout_s": 60"#));
    assert_eq!(rows.len(), TRIALS as usize);
    assert_eq!(server.accepted(), TRIALS + 1);
}

#[test]
fn failed_connections_report_a_reason() {
    let tls = variant(TlsVersion::Tls13, Session::Full, Authentication::Mutual);
    for (manner, tls, word) in [
        (Manner::Refuses, Some(&tls), "refused"),
        (Manner::Refuses, None, "refused"),
        (Manner::Closes, Some(&tls), "closed"),
        (Manner::Closes, None, "closed"),
        (Manner::Resets, Some(&tls), "reset"),
        (Manner::Resets, None, "reset"),
        (Manner::Silent, Some(&tls), "timeout"),
        (Manner::Silent, None, "timeout"),
        (Manner::Plain(common::NOT_FOUND), None, "the server answered \"HTTP/1.1 404 Not Found\""),
        // A server of another authority.
        (Manner::Foreign(tls.clone()), Some(&tls), "certificate verify failed"),
        // A server that speaks another version: it sends an alert.
        (
            Manner::Tls(variant(TlsVersion::Tls12, Session::Full, Authentication::Mutual)),
            Some(&tls),
            "alert protocol version",
        ),
    ] {
        let server = Server::start(manner.clone());
        let timeout = if matches!(manner, Manner::Silent) { 0.2 } else { 60.0 };
        let config = config(&server, tls, &format!(r#", "timeout_s": {timeout}"#));
        let (rows, ended, totals) = outcomes(&config);
        assert_eq!(ended, Ended::Done, "{manner:?}");
        assert_eq!((totals.reported, totals.failed), (TRIALS, TRIALS), "{manner:?} {rows:?}");
        for row in rows {
            let error = row["error"].as_str().unwrap();
            assert!(error.contains(word), "{manner:?}: {error}");
            assert_eq!(number(&row, "done_ns"), 0, "{manner:?}");
        }
    }
}

/// Connections to nowhere: connect() says at once that there is no way to a broadcast address.
fn to_nowhere(server: &Server, variant: Option<&Variant>, more: &str) -> Config {
    let address = "255.255.255.255:443".parse().unwrap();
    Config { address, ..config(server, variant, &format!(r#", "timeout_s": 60{more}"#)) }
}

#[test]
fn connection_that_fails_at_once_is_reported_at_once() {
    let server = Server::start(Manner::Refuses);
    let config = Config { trials: 1, ..to_nowhere(&server, None, "") };
    let before = std::time::Instant::now();
    for _ in 0..50 {
        let (rows, _, totals) = outcomes(&config);
        assert_eq!((totals.reported, totals.failed), (1, 1), "{rows:?}");
    }
    // Each would wait a tenth of a second for sockets that there are not.
    let seconds = before.elapsed().as_secs_f64();
    assert!(seconds < 4.0, "{seconds}");
}

#[test]
fn sessions_that_fail_at_once_end_the_run() {
    let resumes = variant(TlsVersion::Tls13, Session::PskDheKe, Authentication::Server);
    let server = Server::start(Manner::Refuses);
    let config = to_nowhere(&server, Some(&resumes), "");
    let error = run(&config, &mut Vec::new(), &mut |_| {}, &AtomicBool::new(false));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("no session to resume"), "{error}");
}

#[test]
fn server_that_contradicts_the_variant_ends_the_run() {
    let resumes = variant(TlsVersion::Tls13, Session::PskDheKe, Authentication::Server);
    let early = variant(TlsVersion::Tls13, Session::EarlyData, Authentication::Server);
    for (serves, asks, word) in [
        // Its tickets are no tickets of this server's.
        (Manner::Forgetful(resumes.clone()), &resumes, "refused an earlier one"),
        (Manner::Tls(resumes.clone()), &early, "ssl_early_data on"),
    ] {
        let server = Server::start(serves);
        let config = config(&server, Some(asks), r#", "timeout_s": 60"#);
        let error = run(&config, &mut Vec::new(), &mut |_| {}, &AtomicBool::new(false));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn stopped_run_keeps_reported_lines() {
    let variant = variant(TlsVersion::Tls13, Session::Full, Authentication::Server);
    let server = Server::start(Manner::Tls(variant.clone()));
    let mut config = config(&server, Some(&variant), r#", "timeout_s": 60"#);
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

/// The columns that Python reads.
#[test]
fn outcome_columns() {
    let row = serde_json::to_value(Outcome::default()).unwrap();
    for key in ["trial", "late_ns", "connect_ns", "handshake_ns", "first_ns", "sent", "received"] {
        assert!(row[key].is_u64(), "{key}");
    }
    assert!(row.get("error").is_none());
}
