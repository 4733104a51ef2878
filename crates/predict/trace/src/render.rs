// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A case as text that a person can read: the client on the left, the server on the right,
//! what they send in between. 80 columns, no colour.

use std::fmt::Write;

use warifu_model::{Case, Dds, DdsCrypto, Direction, Keyword, Operation, Pattern, Role, Tls};

use crate::order::in_order;
use crate::protocol::{self, Framing};
use crate::scenario::Scenario;
use crate::trace::{Bytes, Message, Party, Step, Trace};

/// Columns of the whole.
const WIDTH: usize = 80;
/// Width of the two outer columns and of the middle one. They overlap, since a row with much to say
/// in one has little or nothing in the others.
const SIDE: usize = 32;
const MIDDLE: usize = 36;
/// Where the middle column and the server's begin.
const MIDDLE_AT: usize = 16;
const SERVER_AT: usize = WIDTH - SIDE;

/// One case for people and for golden files.
pub fn render(case: &Case, scenario: &Scenario) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for line in describe(case) {
        let _ = writeln!(text, "{}", fit(&line, WIDTH));
    }
    let framing = protocol::framing(case.stack.protocol());
    for (index, trace) in scenario.preparation.iter().enumerate() {
        let count = scenario.preparation.len();
        let _ = writeln!(text, "\nPreparation {} of {count}, not measured", index + 1);
        connection(&mut text, trace, framing);
    }
    for (index, episode) in scenario.episodes.iter().enumerate() {
        let _ = match scenario.episodes.len() {
            1 => writeln!(text, "\nThe measured connection"),
            count => writeln!(text, "\nMeasured connection {} of {count}", index + 1),
        };
        connection(&mut text, &episode.trace, framing);
    }
    text
}

fn describe(case: &Case) -> Vec<String> {
    let mut lines = match case.stack.tls() {
        Some(tls) => describe_tls(case, tls),
        None => vec![case.stack.protocol().name().to_uppercase()],
    };
    let Pattern { path, response_body, request_body, .. } = &case.pattern;
    match case.stack.dds() {
        Some(dds) => {
            lines.extend(describe_dds(dds));
            lines.push(format!("topic rt{path}, sample and answer {response_body} B"));
        }
        None if *request_body == 0 => {
            lines.push(format!("GET {path}, response body {response_body} B"));
        }
        None => {
            let method = if case.stack.coap().is_some() { "PUT" } else { "POST" };
            let bodies = format!("request body {request_body} B, response body {response_body} B");
            lines.push(format!("{method} {path}, {bodies}"));
        }
    }
    lines
}

fn describe_tls(case: &Case, tls: &Tls) -> Vec<String> {
    vec![
        format!(
            "{}, TLS {}, session {}, authentication {}",
            case.stack.protocol().name().to_uppercase(),
            tls.version.name(),
            tls.session.name(),
            tls.authentication.name()
        ),
        format!(
            "{}, {}, key share {}",
            tls.cipher_suite.name(),
            tls.group.name(),
            tls.key_share.name()
        ),
        match tls.psk {
            Some(psk) => format!(
                "key from outside, {}, its identity {} B; no certificate",
                psk.mode.name(),
                psk.identity_bytes
            ),
            None => format!(
                "certificates {}: server {}, client {}",
                tls.certificate.name(),
                sizes(&tls.server_certificate_bytes),
                sizes(&tls.client_certificate_bytes)
            ),
        },
        format!(
            "key store {}, its session {}",
            case.key_store.profile,
            if case.key_store.session_open { "open" } else { "to be opened" }
        ),
        format!("server name {}", tls.server_name.as_deref().unwrap_or("none")),
    ]
}

fn describe_dds(dds: &Dds) -> Vec<String> {
    if dds.crypto == DdsCrypto::None {
        return vec!["without DDS Security".into()];
    }
    vec![
        format!("DDS Security, plugin {}, {}", dds.crypto.name(), dds.aead.name()),
        format!(
            "data {}, metadata {}, rtps {}",
            dds.data_protection.name(),
            dds.metadata_protection.name(),
            dds.rtps_protection.name()
        ),
    ]
}

fn sizes(chain: &[u16]) -> String {
    match chain {
        [] => "none".into(),
        sizes => {
            let sizes: Vec<String> = sizes.iter().map(u16::to_string).collect();
            format!("{} B", sizes.join(" + "))
        }
    }
}

fn connection(text: &mut String, trace: &Trace, framing: Framing) {
    row(text, "client", &format!("content + {}, B", framing.overhead), "server");
    let _ = writeln!(text, "{}", "-".repeat(WIDTH));
    let order = match in_order(trace) {
        Ok(order) => order,
        Err(stuck) => {
            let _ = writeln!(text, "{stuck}");
            return;
        }
    };
    for &(party, step) in &order {
        match step {
            Step::Open { .. } => row(text, "  TCP opens", "<-- SYN, SYN-ACK, ACK -->", ""),
            Step::Send { first, count, .. } => {
                let range = first.0 as usize..(first.0 + count) as usize;
                for message in &trace.messages[range] {
                    row(text, "", &on_the_wire(message), "");
                }
            }
            Step::Close { .. } => match party.role {
                Role::Client => row(text, "  TCP closes", "FIN -->", ""),
                Role::Server => row(text, "", "<-- FIN", "  TCP closes"),
            },
            Step::Receive { .. } => {}
            other => {
                let cell = cell(other);
                match party.role {
                    Role::Client => row(text, &cell, "", ""),
                    Role::Server => row(text, "", "", &cell),
                }
            }
        }
    }
    totals(text, trace, &order, framing);
}

fn cell(step: &Step) -> String {
    match step {
        Step::Mark(mark) => format!("* {}", mark.name()),
        Step::Compute { operation, .. } => match operation {
            Operation::Tls(_, direction, message) => made_or_processed(*direction, message.name()),
            Operation::Coap(_, direction, message) => made_or_processed(*direction, message.name()),
            Operation::Dds(_, direction, message) => made_or_processed(*direction, message.name()),
            Operation::Sign(_) => "  sign".into(),
            Operation::System(_, call) => format!("  system {}", call.name()),
        },
        Step::KeyStore { call, .. } => format!("  key store {}", call.name()),
        Step::Accept { .. } => "  TCP open".into(),
        Step::Wait { duration } => format!("  wait {} ms", duration.as_millis_f64()),
        Step::Deadline { duration } => format!("  deadline {} ms", duration.as_millis_f64()),
        Step::Open { .. } | Step::Send { .. } | Step::Receive { .. } | Step::Close { .. } => {
            String::new()
        }
    }
}

fn made_or_processed(direction: Direction, message: &str) -> String {
    match direction {
        Direction::Send => format!("  make {message}"),
        Direction::Receive => format!("  process {message}"),
    }
}

/// The direction, the label, and the bytes: content + what carries it.
fn on_the_wire(message: &Message) -> String {
    let least = message.bytes.fixed - message.overhead;
    let most = message.bytes.most() - message.overhead;
    let bytes = format!("{} + {}", span(least, most), message.overhead);
    let room = MIDDLE - 4 - bytes.len() - 1;
    let label = fit(&message.label, room);
    match message.from.role {
        Role::Client => format!("{label:<room$} {bytes} -->"),
        Role::Server => format!("<-- {label:<room$} {bytes}"),
    }
}

/// What a party sent before the other spoke, or in all.
#[derive(Clone, Copy)]
struct Flight {
    from: Party,
    writes: usize,
    messages: usize,
    bytes: Bytes,
    overhead: u32,
}

impl Flight {
    fn new(from: Party) -> Flight {
        Flight { from, writes: 0, messages: 0, bytes: Bytes::default(), overhead: 0 }
    }

    fn add(&mut self, other: Flight) {
        self.writes += other.writes;
        self.messages += other.messages;
        self.bytes = self.bytes + other.bytes;
        self.overhead += other.overhead;
    }
}

/// What each party sent before the other spoke, then all in each direction.
fn totals(text: &mut String, trace: &Trace, order: &[(Party, &Step)], framing: Framing) {
    let mut flights: Vec<Flight> = Vec::new();
    for &(party, step) in order {
        let Step::Send { first, count, .. } = step else { continue };
        let messages = &trace.messages[first.0 as usize..(first.0 + count) as usize];
        if flights.last().is_none_or(|flight| flight.from != party) {
            flights.push(Flight::new(party));
        }
        if let Some(flight) = flights.last_mut() {
            flight.add(Flight {
                from: party,
                writes: 1,
                messages: messages.len(),
                bytes: messages.iter().map(|message| message.bytes).sum(),
                overhead: messages.iter().map(|message| message.overhead).sum(),
            });
        }
    }
    let Framing { overhead, messages } = framing;
    let _ =
        writeln!(text, "\nflight  from    writes  {messages:<8} bytes         of which {overhead}");
    for (index, flight) in flights.iter().enumerate() {
        total(text, &(index + 1).to_string(), flight);
    }
    for party in [Party::CLIENT, Party::SERVER] {
        let mut all = Flight::new(party);
        flights.iter().filter(|flight| flight.from == party).for_each(|flight| all.add(*flight));
        total(text, "all", &all);
    }
}

fn total(text: &mut String, name: &str, flight: &Flight) {
    let Flight { from, writes, messages, bytes, overhead } = *flight;
    let (from, bytes) = (from.name(), span(bytes.fixed, bytes.most()));
    let _ = writeln!(text, "{name:<7} {from:<7} {writes:<7} {messages:<8} {bytes:<13} {overhead}");
}

fn span(least: u32, most: u32) -> String {
    if least == most { least.to_string() } else { format!("{least}..{most}") }
}

fn row(text: &mut String, client: &str, middle: &str, server: &str) {
    let mut line = fit(client, if middle.is_empty() { SIDE } else { MIDDLE_AT });
    if !middle.is_empty() {
        line = format!("{line:<MIDDLE_AT$}{middle}");
    }
    if !server.is_empty() {
        line = format!("{line:<SERVER_AT$}{}", fit(server, SIDE));
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

/// The text, cut where it does not fit.
fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(3)).collect();
    format!("{kept}...")
}
