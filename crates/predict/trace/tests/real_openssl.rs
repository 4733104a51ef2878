// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The emulated bytes against the system's OpenSSL, message by message and write by write.

mod common;

use std::collections::HashMap;

use openssl::hash::MessageDigest;
use openssl::ssl::{Ssl, SslSession};
use openssl::x509::X509;
use openssl::x509::extension::SubjectAlternativeName;
use warifu_model::{
    Aead, Authentication, CertificateType, KeyShare, Keyword, Pattern, Role, Session, Tls,
    TlsVersion,
};
use warifu_tls_client::context::{ClientContext, ClientCredentials, server_context};
use warifu_tls_client::party::Party;
use warifu_tls_client::pki::{CLIENT_NAME, SERVER_NAME};
use warifu_tls_client::{Exchange, From, MessageRecord, Pki, Recording, Variant};
use warifu_trace::https::{emulate, emulate_first, request_text, response_head};
use warifu_trace::{Bytes, Party as TraceParty, SessionState, Step, Trace};

const RESPONSE_BODY: u32 = 846;

/// The same choices as the real half takes them.
fn variant(tls: &Tls) -> Variant {
    Variant {
        tls: tls.version,
        session: tls.session,
        authentication: tls.authentication,
        group: tls.group,
        certificate: tls.certificate,
        chain_length: tls.chain_length,
        cipher_suite: tls.cipher_suite,
        key_share: KeyShare::Fresh,
        nagle: false,
        server_name: tls.server_name.clone(),
        psk: tls.psk,
    }
}

/// The exchange that the emulation writes: its request, and its response's length.
fn exchange(tls: &Tls) -> Exchange {
    exchange_of(tls, &common::pattern(RESPONSE_BODY))
}

fn exchange_of(tls: &Tls, pattern: &Pattern) -> Exchange {
    let mut request = request_text(tls, pattern).into_bytes();
    request.resize(request.len() + pattern.request_body as usize, b'u');
    let response_bytes = response_head(tls, pattern).len() + pattern.response_body as usize;
    Exchange { request, response_bytes }
}

/// Whether `real` is a value that `bytes` can take with these signatures.
fn agrees(bytes: Bytes, signatures: &[usize], real: usize) -> bool {
    let varying = match bytes.ecdsa_signatures {
        0 => 0,
        count => {
            assert_eq!(usize::from(count), signatures.len());
            // Shorter signatures than 70 bytes are rare, but they are real.
            signatures.iter().map(|&length| length as i64 - 70).sum()
        }
    };
    (0..=bytes.uncertain_tickets)
        .any(|longer| i64::from(bytes.fixed) + varying + 16 * i64::from(longer) == real as i64)
}

/// The handshake message that a label stands for.
fn name(label: &str) -> String {
    let bare = label.trim_matches(['{', '}']);
    match bare.starts_with(['[', '(']) {
        true => "ApplicationData".into(),
        false => bare.split([' ', '}']).next().unwrap_or_default().into(),
    }
}

/// Pieces of one message are gathered, so that each item is a message.
fn messages(trace: &Trace, party: Role) -> Vec<(String, Bytes)> {
    let mut all: Vec<(String, Bytes)> = Vec::new();
    for message in trace.messages.iter().filter(|message| message.from == TraceParty::first(party))
    {
        let continued =
            ["(rest)", "(2 of", "(3 of", "(4 of"].iter().any(|mark| message.label.contains(mark));
        match all.last_mut() {
            Some((_, bytes)) if continued => *bytes = *bytes + message.bytes,
            _ => all.push((name(&message.label), message.bytes)),
        }
    }
    all
}

fn writes(trace: &Trace, party: Role) -> Vec<Bytes> {
    let mut all = Vec::new();
    for step in trace.steps(TraceParty::first(party)) {
        if let Step::Send { first, count, .. } = step {
            let range = first.0 as usize..(first.0 + count) as usize;
            all.push(trace.messages[range].iter().map(|message| message.bytes).sum());
        }
    }
    all
}

/// Runs the real exchange and compares all that both ends send, but for a close_notify at the end
/// that is not emulated. It is given three tries: one ticket in about 8,000 is a block shorter than
/// the usual two lengths, because its ticket_age_add begins with nine zeros.
fn compare(trace: &Trace, tls: &Tls, pki: &Pki) {
    compare_exchange(trace, tls, pki, &exchange(tls));
}

fn compare_exchange(trace: &Trace, tls: &Tls, pki: &Pki, exchange: &Exchange) {
    let mut difference = String::new();
    for _ in 0..3 {
        let recording = warifu_tls_client::record_exchange(&variant(tls), pki, exchange).unwrap();
        match differences(trace, &recording) {
            None => return,
            Some(found) => difference = found,
        }
    }
    panic!("{difference}\n{tls:?}");
}

fn differences(trace: &Trace, recording: &Recording) -> Option<String> {
    [(Role::Client, From::Client), (Role::Server, From::Server)].into_iter().find_map(
        |(party, from)| {
            let messages = different_messages(trace, recording, party, from);
            messages.or_else(|| different_writes(trace, recording, party, from))
        },
    )
}

fn different_messages(
    trace: &Trace,
    recording: &Recording,
    party: Role,
    from: From,
) -> Option<String> {
    let ours = messages(trace, party);
    let closes = ours.iter().any(|(name, _)| name == "Alert");
    let sent =
        |message: &&MessageRecord| message.from == from && (closes || message.name != "Alert");
    let real: Vec<_> = recording.messages.iter().filter(sent).collect();
    let real_names: Vec<_> = real.iter().map(|message| message.name).collect();
    let our_names: Vec<_> = ours.iter().map(|(name, _)| name.as_str()).collect();
    if our_names != real_names {
        return Some(format!("{party:?}: {our_names:?} emulated, {real_names:?} real"));
    }
    ours.iter().zip(&real).find_map(|((name, bytes), real)| {
        let signatures: Vec<usize> = real.signature_bytes.into_iter().collect();
        (!agrees(*bytes, &signatures, real.wire_bytes))
            .then(|| format!("{party:?} {name}: {bytes:?} emulated, {real:?} real"))
    })
}

fn different_writes(
    trace: &Trace,
    recording: &Recording,
    party: Role,
    from: From,
) -> Option<String> {
    let ours = writes(trace, party);
    let real: Vec<_> =
        recording.writes.iter().enumerate().filter(|(_, write)| write.from == from).collect();
    // close_notify is a write of its own.
    let closes =
        trace.steps(TraceParty::first(party)).iter().any(|step| matches!(step, Step::Close { .. }));
    if ours.len() + usize::from(!closes) != real.len() {
        return Some(format!("{party:?} writes: {ours:?} emulated, {real:?} real"));
    }
    ours.iter().zip(&real).find_map(|(bytes, &(at, real))| {
        let inside = |message: &&MessageRecord| message.last_write == at;
        let signatures: Vec<usize> = recording
            .messages
            .iter()
            .filter(inside)
            .filter_map(|message| message.signature_bytes)
            .collect();
        (!agrees(*bytes, &signatures, real.bytes))
            .then(|| format!("{party:?} write {at}: {bytes:?} emulated, {real:?} real"))
    })
}

fn pkis() -> HashMap<(CertificateType, u8), Pki> {
    let mut all = HashMap::new();
    for certificate in [CertificateType::EcdsaSecp256r1, CertificateType::Rsa2048] {
        for length in 1..=3 {
            let pki = Pki::generate(certificate, length).unwrap();
            all.insert((certificate, length), pki);
        }
    }
    all
}

#[test]
fn every_message_and_write_is_as_long_as_openssl_makes_it() {
    let pkis = pkis();
    for (key, pki) in &pkis {
        let sizes = pki.sizes().unwrap();
        let lab: Vec<u16> = sizes.server_chain_bytes.iter().map(|&size| size as u16).collect();
        assert_eq!(common::chain(key.0, key.1), lab, "{key:?}");
    }
    let stacks = common::every_tls();
    assert_eq!(stacks.len(), 864);
    for tls in &stacks {
        let pki = &pkis[&(tls.certificate, tls.chain_length)];
        let pattern = common::pattern(RESPONSE_BODY);
        let mut state = SessionState::default();
        if tls.session != Session::Full {
            (_, state) = emulate_first(&common::https(tls.clone()), &pattern, &state).unwrap();
        }
        let (trace, _) = emulate(&common::https(tls.clone()), &pattern, &state).unwrap();
        compare(&trace, tls, pki);
    }
}

/// By a key from outside: 10 suites and modes, both groups, names and three lengths of identities.
#[test]
fn every_message_by_psk_is_as_long_as_openssl_makes_it() {
    let pki = Pki::generate(CertificateType::EcdsaSecp256r1, 1).unwrap();
    let stacks = common::every_psk();
    assert_eq!(stacks.len(), 8 * 2 * 2 * 3);
    for tls in &stacks {
        let pattern = common::pattern(RESPONSE_BODY);
        let (trace, after) =
            emulate(&common::https(tls.clone()), &pattern, &SessionState::default()).unwrap();
        assert!(!after.tickets.is_empty(), "a server gives a ticket after any handshake");
        compare(&trace, tls, &pki);
    }
}

/// Around the edges of a record, whose size request and response share with their heads.
#[test]
fn bodies_leave_in_the_records_and_writes_that_openssl_makes() {
    let pki = Pki::generate(CertificateType::EcdsaSecp256r1, 1).unwrap();
    for &version in TlsVersion::ALL {
        for session in [Session::Full, Session::resumed(version)] {
            for (up, down) in [
                (1, 0),
                (100, 846),
                (16_200, 100),
                (16_300, 16_300),
                (16_384, 16_384),
                (40_000, 1),
                (100_000, 100_000),
                (0, 100_000),
            ] {
                let tls = common::tls(version, session, Authentication::Mutual);
                let pattern = common::upload(up, down);
                let https = common::https(tls.clone());
                let mut state = SessionState::default();
                if session != Session::Full {
                    (_, state) = emulate_first(&https, &pattern, &state).unwrap();
                }
                let (trace, _) = emulate(&https, &pattern, &state).unwrap();
                compare_exchange(&trace, &tls, &pki, &exchange_of(&tls, &pattern));
            }
        }
    }
}

/// The connection that yields the ticket differs from a full one in what it announces
/// (psk_ke, early data), so its writes are compared as well.
#[test]
fn every_preparation_is_as_long_as_openssl_makes_it() {
    let pki = Pki::generate(CertificateType::EcdsaSecp256r1, 1).unwrap();
    let resumed = common::every_tls().into_iter().filter(|tls| {
        tls.session != Session::Full
            && tls.certificate == CertificateType::EcdsaSecp256r1
            && tls.chain_length == 1
    });
    for tls in resumed {
        let tries = (0..3).map(|_| different_preparation(&tls, &pki));
        let difference = tries.take_while(Option::is_some).nth(2).flatten();
        assert_eq!(difference, None, "{tls:?}");
    }
}

fn different_preparation(tls: &Tls, pki: &Pki) -> Option<String> {
    let pattern = common::pattern(RESPONSE_BODY);
    let (trace, after) =
        emulate_first(&common::https(tls.clone()), &pattern, &SessionState::default()).unwrap();
    let (real, session) = first_connection(tls, pki);
    for (party, real) in [Role::Client, Role::Server].into_iter().zip(real) {
        let ours = writes(&trace, party);
        let possible = |(bytes, &real): (&Bytes, &usize)| match bytes.ecdsa_signatures {
            0 => agrees(*bytes, &[], real),
            _ => (60..=72).any(|length| agrees(*bytes, &[length], real)),
        };
        // close_notify is a write of its own.
        let closes = trace
            .steps(TraceParty::first(party))
            .iter()
            .any(|step| matches!(step, Step::Close { .. }));
        if ours.len() + usize::from(!closes) != real.len() || !ours.iter().zip(&real).all(possible)
        {
            return Some(format!("{party:?} {ours:?} emulated, {real:?} real"));
        }
    }
    let (ours, real) = (after.tickets[0].bytes, session.ticket_bytes());
    (!agrees(ours, &[], real)).then(|| format!("ticket: {ours:?} emulated, {real} real"))
}

/// What was written, and the session that came of it.
fn first_connection(tls: &Tls, pki: &Pki) -> ([Vec<usize>; 2], SslSession) {
    let variant = variant(tls);
    let credentials = ClientCredentials::from_pki(pki);
    let client = ClientContext::new(&variant, &credentials).unwrap();
    let server = server_context(&variant, pki).unwrap();
    let mut client = Party::client(client.first().unwrap(), exchange(tls), false).unwrap();
    let mut server = Party::server(Ssl::new(&server).unwrap(), exchange(tls), false).unwrap();
    let mut written = [Vec::new(), Vec::new()];
    for _ in 0..8 {
        client.wake(&mut ()).unwrap();
        for bytes in client.take_writes() {
            written[0].push(bytes.len());
            server.feed(&bytes);
        }
        server.wake(&mut ()).unwrap();
        for bytes in server.take_writes() {
            written[1].push(bytes.len());
            client.feed(&bytes);
        }
    }
    assert!(client.is_done() && server.is_done());
    (written, client.session().unwrap())
}

trait TicketBytes {
    fn ticket_bytes(&self) -> usize;
}

impl TicketBytes for SslSession {
    /// The ticket's length, from the DER of the session: field \[10\] of `SSL_SESSION_ASN1`.
    fn ticket_bytes(&self) -> usize {
        let der = self.to_der().unwrap();
        let (mut rest, _) = content(&der);
        while let Some(&tag) = rest.first() {
            let (inside, after) = content(rest);
            if tag == 0xaa {
                return content(inside).0.len();
            }
            rest = after;
        }
        panic!("a session without a ticket")
    }
}

/// The content of the first DER element, and what follows it.
fn content(der: &[u8]) -> (&[u8], &[u8]) {
    let (header, length) = match der[1] {
        short @ 0..=0x7f => (2, usize::from(short)),
        long => {
            let count = usize::from(long & 0x7f);
            let length =
                der[2..2 + count].iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
            (2 + count, length)
        }
    };
    (&der[header..header + length], &der[header + length..])
}

/// A ticket holds the server name, so sixteen lengths of it meet every edge of a block.
#[test]
fn tickets_are_padded_as_openssl_pads_them() {
    let pki = Pki::generate(CertificateType::EcdsaSecp256r1, 1).unwrap();
    let mut uncertain = 0;
    for (tls, session) in
        [(TlsVersion::Tls12, Session::Ticket), (TlsVersion::Tls13, Session::PskDheKe)]
    {
        for length in 1..=16 {
            let mut tls = common::tls(tls, session, Authentication::Server);
            tls.server_name = Some("n".repeat(length));
            let pattern = common::pattern(RESPONSE_BODY);
            let (_, state) =
                emulate_first(&common::https(tls.clone()), &pattern, &SessionState::default())
                    .unwrap();
            uncertain += state.tickets[0].bytes.uncertain_tickets;
            let (trace, _) = emulate(&common::https(tls.clone()), &pattern, &state).unwrap();
            compare(&trace, &tls, &pki);
        }
    }
    // TLS 1.3 alone has a ticket_age_add.
    assert_eq!(uncertain, 1);
}

/// Certificates around the edges of OpenSSL's 4096-byte buffer and of a record.
#[test]
fn long_flights_leave_in_the_writes_that_openssl_makes() {
    for kind in [CertificateType::EcdsaSecp256r1, CertificateType::Rsa2048] {
        let mut pki = Pki::generate(kind, 1).unwrap();
        for padding in [3_000, 3_300, 3_700, 4_500, 8_000, 12_400, 16_000, 16_500, 40_000] {
            let server = lengthen(&pki, true, padding);
            let client = lengthen(&pki, false, padding);
            (pki.server.certificate, pki.client.certificate) = (server, client);
            for tls in [TlsVersion::Tls12, TlsVersion::Tls13] {
                let tls = common::tls(tls, Session::Full, Authentication::Mutual);
                let mut tls = common::with(tls, kind, 1, Aead::Aes128Gcm);
                let sizes = pki.sizes().unwrap();
                tls.server_certificate_bytes = vec![sizes.server_chain_bytes[0] as u16];
                tls.client_certificate_bytes = vec![sizes.client_chain_bytes[0] as u16];
                let pattern = common::pattern(RESPONSE_BODY);
                let (trace, _) =
                    emulate(&common::https(tls.clone()), &pattern, &SessionState::default())
                        .unwrap();
                compare(&trace, &tls, &pki);
            }
        }
    }
}

/// The leaf again, by the same keys, with about `padding` bytes of names in it.
fn lengthen(pki: &Pki, server: bool, padding: usize) -> X509 {
    let old = if server { &pki.server.certificate } else { &pki.client.certificate };
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_serial_number(old.serial_number()).unwrap();
    builder.set_not_before(old.not_before()).unwrap();
    builder.set_not_after(old.not_after()).unwrap();
    builder.set_subject_name(old.subject_name()).unwrap();
    builder.set_issuer_name(old.issuer_name()).unwrap();
    builder.set_pubkey(&old.public_key().unwrap()).unwrap();
    let mut names = SubjectAlternativeName::new();
    names.dns(if server { SERVER_NAME } else { CLIENT_NAME });
    for index in 0..padding / 50 {
        // With tag and length each name takes 50 bytes.
        names.dns(&format!("{index:044}.com"));
    }
    let names = names.build(&builder.x509v3_context(None, None)).unwrap();
    builder.append_extension(names).unwrap();
    builder.sign(&pki.root.key, MessageDigest::sha256()).unwrap();
    builder.build()
}
