// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The emulated bytes against the system's OpenSSL, message by message and write by write.

mod common;

use std::collections::HashMap;

use warifu_model::{
    Authentication, CertificateType, CipherSuite, Group, Role, Session, Stack, TlsVersion,
};
use warifu_tls::{Exchange, From, Pki, Recording, Variant};
use warifu_trace::{Bytes, SessionState, Step, Trace, emulate, emulate_first, response_head};

const RESPONSE_BODY: u32 = 846;

/// The same choices in the words of the real half.
fn variant(stack: &Stack) -> Variant {
    use warifu_tls as real;
    Variant {
        tls: match stack.tls {
            TlsVersion::Tls12 => real::Tls::V1_2,
            TlsVersion::Tls13 => real::Tls::V1_3,
        },
        session: match stack.session {
            Session::Full => real::Session::Full,
            Session::Ticket => real::Session::Ticket,
            Session::PskDheKe => real::Session::PskDheKe,
            Session::PskKe => real::Session::PskKe,
            Session::EarlyData => real::Session::ZeroRtt,
        },
        authentication: match stack.authentication {
            Authentication::Server => real::Authentication::Server,
            Authentication::Mutual => real::Authentication::Mutual,
        },
        group: match stack.group {
            Group::Secp256r1 => real::Group::Secp256r1,
            Group::X25519 => real::Group::X25519,
        },
        certificate: real_certificate(stack.certificate),
        chain_length: stack.chain_length,
        cipher_suite: suite_name(stack.cipher_suite).parse().unwrap(),
        key_share: real::KeyShare::Fresh,
        nagle: false,
        server_name: stack.server_name.clone(),
    }
}

fn real_certificate(certificate: CertificateType) -> warifu_tls::CertificateType {
    match certificate {
        CertificateType::EcdsaSecp256r1 => warifu_tls::CertificateType::EcdsaSecp256r1,
        CertificateType::Rsa2048 => warifu_tls::CertificateType::Rsa2048,
    }
}

fn suite_name(suite: CipherSuite) -> &'static str {
    use CipherSuite::*;
    match suite {
        TlsAes128GcmSha256 => "TLS_AES_128_GCM_SHA256",
        TlsAes256GcmSha384 => "TLS_AES_256_GCM_SHA384",
        TlsChacha20Poly1305Sha256 => "TLS_CHACHA20_POLY1305_SHA256",
        TlsEcdheEcdsaWithAes128GcmSha256 => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        TlsEcdheEcdsaWithAes256GcmSha384 => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        TlsEcdheEcdsaWithChacha20Poly1305Sha256 => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        TlsEcdheRsaWithAes128GcmSha256 => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        TlsEcdheRsaWithAes256GcmSha384 => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        TlsEcdheRsaWithChacha20Poly1305Sha256 => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    }
}

/// The exchange that the emulation writes: its request, and its response's length.
fn exchange(stack: &Stack) -> Exchange {
    let pattern = common::pattern(RESPONSE_BODY);
    Exchange {
        request: warifu_trace::request_text(stack, &pattern).into_bytes(),
        response_bytes: response_head(&pattern).len() + RESPONSE_BODY as usize,
    }
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
    for message in trace.messages.iter().filter(|message| message.from == party) {
        let continued = ["(rest)", "(2 of", "(3 of", "(4 of"]
            .iter()
            .any(|mark| message.label.contains(mark));
        match all.last_mut() {
            Some((_, bytes)) if continued => *bytes = *bytes + message.bytes,
            _ => all.push((name(&message.label), message.bytes)),
        }
    }
    all
}

fn writes(trace: &Trace, party: Role) -> Vec<Bytes> {
    let mut all = Vec::new();
    for step in trace.steps(party) {
        if let Step::Send { first, count, .. } = step {
            let range = usize::from(first.0)..usize::from(first.0 + count);
            all.push(trace.messages[range].iter().map(|message| message.bytes).sum());
        }
    }
    all
}

/// Compares all that both ends send, but for the close_notify at the end.
fn compare(trace: &Trace, recording: &Recording, stack: &Stack) {
    for (party, from) in [(Role::Client, From::Client), (Role::Server, From::Server)] {
        let real: Vec<_> = recording
            .messages
            .iter()
            .filter(|message| message.from == from && message.name != "Alert")
            .collect();
        let ours = messages(trace, party);
        let real_names: Vec<_> = real.iter().map(|message| message.name).collect();
        let our_names: Vec<_> = ours.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(our_names, real_names, "{stack:?}");
        for ((name, bytes), real) in ours.iter().zip(&real) {
            let signatures: Vec<usize> = real.signature_bytes.into_iter().collect();
            assert!(
                agrees(*bytes, &signatures, real.wire_bytes),
                "{party:?} {name}: {bytes:?} emulated, {real:?} real, {stack:?}"
            );
        }
        compare_writes(trace, recording, party, from, stack);
    }
}

fn compare_writes(trace: &Trace, recording: &Recording, party: Role, from: From, stack: &Stack) {
    let ours = writes(trace, party);
    for (index, bytes) in ours.iter().enumerate() {
        let (at, real) = recording
            .writes
            .iter()
            .enumerate()
            .filter(|(_, write)| write.from == from)
            .nth(index)
            .unwrap();
        let signatures: Vec<usize> = recording
            .messages
            .iter()
            .filter(|message| message.last_write == at)
            .filter_map(|message| message.signature_bytes)
            .collect();
        assert!(
            agrees(*bytes, &signatures, real.bytes),
            "{party:?} write {index}: {bytes:?} emulated, {real:?} real, {stack:?}"
        );
    }
    let real = recording.writes.iter().filter(|write| write.from == from).count();
    // close_notify is a write of its own.
    assert_eq!(ours.len() + 1, real, "{party:?} {stack:?}");
}

fn pkis() -> HashMap<(CertificateType, u8), Pki> {
    let mut all = HashMap::new();
    for certificate in [CertificateType::EcdsaSecp256r1, CertificateType::Rsa2048] {
        for length in 1..=3 {
            let pki = Pki::generate(real_certificate(certificate), length).unwrap();
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
    let stacks = common::every_stack();
    assert_eq!(stacks.len(), 864);
    for stack in &stacks {
        let pki = &pkis[&(stack.certificate, stack.chain_length)];
        let pattern = common::pattern(RESPONSE_BODY);
        let mut state = SessionState::default();
        if stack.session != Session::Full {
            (_, state) = emulate_first(stack, &pattern, &state).unwrap();
        }
        let (trace, _) = emulate(stack, &pattern, &state).unwrap();
        let recording =
            warifu_tls::record_exchange(&variant(stack), pki, &exchange(stack)).unwrap();
        compare(&trace, &recording, stack);
    }
}
