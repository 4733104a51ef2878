// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What holds for every case.

mod common;

use proptest::prelude::*;
use warifu_model::{
    Authentication, CertificateType, DdsAead, DdsCrypto, DdsMessage, Direction, Group,
    HandshakeMessage, Https, KeyShare, KeyStoreCall, Mark, Operation, Role, Session, SystemCall,
    Tls, TlsVersion,
};
use warifu_trace::{
    Bytes, Party, SessionState, Step, Trace,
    https::{emulate, emulate_first},
    in_order, render, scenario,
};

fn https(tls: &Tls) -> Https {
    common::https(tls.clone())
}

fn any_tls() -> impl Strategy<Value = Tls> {
    let sizes = || prop::collection::vec(300_u16..=20_000, 3);
    (
        prop::sample::select([common::every_tls(), common::every_psk()].concat()),
        sizes(),
        sizes(),
        any::<bool>(),
        "[a-z.]{0,60}",
    )
        .prop_map(|(mut tls, server, client, prepared, name)| {
            let length = usize::from(tls.chain_length);
            if tls.psk.is_none() {
                tls.server_certificate_bytes = server[..length].to_vec();
            }
            if tls.authentication == Authentication::Mutual {
                tls.client_certificate_bytes = client[..length].to_vec();
            }
            if prepared && tls.version == TlsVersion::Tls13 && tls.psk.is_none() {
                tls.key_share = KeyShare::Prepared;
            }
            tls.server_name = (!name.is_empty()).then_some(name);
            tls
        })
}

fn marks(trace: &Trace) -> Vec<Mark> {
    let mark = |step: &Step| match step {
        Step::Mark(mark) => Some(*mark),
        _ => None,
    };
    trace.steps(Party::CLIENT).iter().filter_map(mark).collect()
}

fn computes(trace: &Trace, operation: Operation) -> usize {
    let found =
        |step: &&Step| matches!(step, Step::Compute { operation: o, .. } if *o == operation);
    trace.steps(Party::first(operation.role())).iter().filter(found).count()
}

fn key_store_calls(trace: &Trace) -> Vec<KeyStoreCall> {
    let call = |step: &Step| match step {
        Step::KeyStore { call, .. } => Some(*call),
        _ => None,
    };
    trace.steps(Party::CLIENT).iter().filter_map(call).collect()
}

/// What every trace obeys, full or resumed.
fn obeys(trace: &Trace, tls: &Tls, full: bool, session_open: bool) {
    // Comes to its end, in the order of the byte streams, each message sent and received once.
    let order = in_order(trace).unwrap();
    assert_eq!(order.len(), trace.steps(Party::CLIENT).len() + trace.steps(Party::SERVER).len());
    let marks = marks(trace);
    assert!(Mark::ALL.starts_with(&marks) && marks.contains(&Mark::FirstResponse), "{marks:?}");
    for message in &trace.messages {
        assert!(message.bytes.fixed >= 1, "{message:?}");
        assert!(message.overhead <= message.bytes.fixed, "{message:?}");
    }
    for party in [Party::CLIENT, Party::SERVER] {
        let role = party.role;
        // The writes make up the messages, and their costs are asked for byte by byte.
        let sends = trace.steps(party).iter().filter(|step| matches!(step, Step::Send { .. }));
        let write = Operation::System(role, SystemCall::Write);
        assert_eq!(sends.count(), computes(trace, write));
        let written: u32 = trace
            .steps(party)
            .iter()
            .map(|step| match step {
                Step::Compute { operation, bytes, .. } if *operation == write => *bytes,
                _ => 0,
            })
            .sum();
        assert_eq!(written, trace.bytes_from(party).fixed);
        // A party's work is on its own processor.
        for step in trace.steps(party) {
            if let Step::Compute { operation, .. } = step {
                assert_eq!(operation.role(), role);
            }
        }
    }
    let mutual = tls.authentication == Authentication::Mutual;
    let expected: &[KeyStoreCall] = match (full && mutual, session_open) {
        (false, _) => &[],
        (true, true) => &[KeyStoreCall::SignInit, KeyStoreCall::Sign],
        (true, false) => &KeyStoreCall::ALL,
    };
    assert_eq!(key_store_calls(trace), expected);
    let signed = full && tls.psk.is_none();
    assert_eq!(computes(trace, Operation::Sign(Role::Server)), usize::from(signed));
    assert_eq!(computes(trace, Operation::Sign(Role::Client)), 0);
    let signatures = |role| trace.bytes_from(Party::first(role)).ecdsa_signatures;
    let ecdsa = u8::from(signed && tls.certificate == CertificateType::EcdsaSecp256r1);
    assert_eq!(signatures(Role::Server), ecdsa);
    assert_eq!(signatures(Role::Client), ecdsa * u8::from(mutual));
}

proptest! {
    #[test]
    fn every_case_is_a_pair_of_programs_that_fit(
        tls in any_tls(),
        session_open in any::<bool>(),
        body in prop_oneof![0_u32..2_000, 0_u32..100_000],
    ) {
        let mut case = common::case(tls.clone(), session_open);
        case.pattern.response_body = body;
        let full = tls.session == Session::Full;
        let scenario = scenario(&case).unwrap();
        prop_assert_eq!(scenario.preparation.len(), usize::from(!full));
        for trace in &scenario.preparation {
            obeys(trace, &tls, true, session_open);
        }
        obeys(&scenario.episodes[0].trace, &tls, full, session_open);
        let text = render(&case, &scenario);
        prop_assert!(text.lines().all(|line| line.chars().count() <= 100), "{}", text);
        prop_assert!(text.contains("* first response"));
    }

    #[test]
    fn large_samples_of_dds_are_sent_and_taken_whole(
        sample in prop_oneof![16_u32..20_000, 16_u32..=(8 << 20)],
        crypto in prop::sample::select(vec![DdsCrypto::None, DdsCrypto::Builtin]),
    ) {
        let mut case = common::dds(crypto, DdsAead::Aes256Gcm);
        case.pattern.response_body = sample;
        let trace = scenario(&case).unwrap().episodes.remove(0).trace;
        prop_assert!(in_order(&trace).is_ok());
        for party in [Party::CLIENT, Party::SERVER] {
            let sent = || trace.messages.iter().filter(|message| message.from == party);
            let content = sent().map(|message| message.bytes.fixed - message.overhead);
            prop_assert_eq!(content.sum::<u32>(), sample);
            // MaxMessageSize, and what SIGN adds to a message.
            prop_assert!(sent().all(|message| message.bytes.fixed <= 14_720 + 72));
            let done = |direction, message| {
                computes(&trace, Operation::Dds(party.role, direction, message))
            };
            for direction in [Direction::Send, Direction::Receive] {
                let parts = done(direction, DdsMessage::Part) + 1;
                prop_assert_eq!(parts, (sample as usize + 8).div_ceil(13_440));
                prop_assert_eq!(done(direction, DdsMessage::Sample), 1);
                let secured = usize::from(crypto != DdsCrypto::None);
                prop_assert_eq!(done(direction, DdsMessage::Payload), secured * parts);
                prop_assert_eq!(done(direction, DdsMessage::Submessage), secured * 2 * parts);
                prop_assert_eq!(done(direction, DdsMessage::RtpsMessage), secured * sent().count());
            }
            let write = Operation::System(party.role, SystemCall::Write);
            prop_assert_eq!(computes(&trace, write), sent().count());
        }
    }

    #[test]
    fn resumption_is_possible_after_any_full_handshake_and_again(tls in any_tls()) {
        let pattern = common::pattern(100);
        let nothing = SessionState::default();
        let (_, after) = emulate_first(&https(&tls), &pattern, &nothing).unwrap();
        // OpenSSL sends one after a handshake with a PSK, from outside too.
        let signed_13 = tls.version == TlsVersion::Tls13 && tls.psk.is_none();
        let expected = if signed_13 { 2 } else { 1 };
        prop_assert_eq!(after.tickets.len(), expected);
        let (first, later) = emulate(&https(&tls), &pattern, &after).unwrap();
        let (second, _) = emulate(&https(&tls), &pattern, &later).unwrap();
        prop_assert_eq!(first, second);
    }

    #[test]
    fn a_longer_chain_costs_its_bytes_and_no_more_round_trips(
        tls in any_tls(),
        more in 1_u16..=500,
    ) {
        prop_assume!(tls.psk.is_none());
        let mut longer = tls.clone();
        longer.server_certificate_bytes[0] += more;
        let pattern = common::pattern(100);
        let state = SessionState::default();
        let (short, _) = emulate_first(&https(&tls), &pattern, &state).unwrap();
        let (long, _) = emulate_first(&https(&longer), &pattern, &state).unwrap();
        let content = |trace: &Trace| -> u32 {
            let of_server = trace.messages.iter().filter(|message| message.from == Party::SERVER);
            of_server.map(|message| message.bytes.fixed - message.overhead).sum()
        };
        prop_assert_eq!(content(&long) - content(&short), u32::from(more));
        prop_assert_eq!(short.bytes_from(Party::CLIENT), long.bytes_from(Party::CLIENT));
    }
}

#[test]
fn a_prepared_key_share_leaves_out_the_making_and_nothing_else() {
    let fresh = common::tls(TlsVersion::Tls13, Session::Full, Authentication::Mutual);
    let mut prepared = fresh.clone();
    prepared.key_share = KeyShare::Prepared;
    let pattern = common::pattern(846);
    let state = SessionState::default();
    let (mut fresh, _) = emulate(&https(&fresh), &pattern, &state).unwrap();
    let (prepared, _) = emulate(&https(&prepared), &pattern, &state).unwrap();
    let hello = Operation::Tls(Role::Client, Direction::Send, HandshakeMessage::ClientHello);
    assert_eq!(computes(&fresh, hello), 1);
    assert_eq!(computes(&prepared, hello), 0);
    for program in &mut fresh.programs {
        let made =
            |step: &Step| matches!(step, Step::Compute { operation, .. } if *operation == hello);
        program.steps.retain(|step| !made(step));
    }
    assert_eq!(fresh, prepared);
}

#[test]
fn flights_are_those_that_were_measured() {
    // Bytes of each write as a running nginx 1.22.1 was seen to send and receive them, with a
    // 335-byte P-256 certificate on each side (TLS_AES_128_GCM_SHA256, secp256r1, no name).
    let mut tls = common::tls(TlsVersion::Tls13, Session::EarlyData, Authentication::Mutual);
    tls.server_certificate_bytes = vec![335];
    tls.client_certificate_bytes = vec![335];
    let sent = |trace: &Trace, role| -> Vec<Bytes> {
        let write = |step: &Step| match step {
            Step::Send { first, count, .. } => {
                let range = first.0 as usize..(first.0 + count) as usize;
                Some(trace.messages[range].iter().map(|message| message.bytes).sum())
            }
            _ => None,
        };
        trace.steps(Party::first(role)).iter().filter_map(write).collect()
    };
    let case = common::case(tls, true);
    let scenario = scenario(&case).unwrap();
    let fixed: Vec<u32> =
        sent(&scenario.episodes[0].trace, Role::Server).iter().map(|bytes| bytes.fixed).collect();
    assert_eq!(fixed, [262, 1092, 615]);
    let client: Vec<u32> =
        sent(&scenario.episodes[0].trace, Role::Client).iter().map(|bytes| bytes.fixed).collect();
    assert_eq!(client[1..], [84]);
}

#[test]
fn x25519_costs_33_bytes_less_a_share() {
    let p256 = common::tls(TlsVersion::Tls13, Session::Full, Authentication::Server);
    let mut x25519 = p256.clone();
    x25519.group = Group::X25519;
    let pattern = common::pattern(0);
    let state = SessionState::default();
    let (p256, _) = emulate(&https(&p256), &pattern, &state).unwrap();
    let (x25519, _) = emulate(&https(&x25519), &pattern, &state).unwrap();
    for party in [Party::CLIENT, Party::SERVER] {
        assert_eq!(p256.bytes_from(party).fixed - x25519.bytes_from(party).fixed, 33);
    }
}

#[test]
fn choices_that_do_not_go_together_are_refused() {
    use TlsVersion::{Tls12, Tls13};
    let full = |tls| common::tls(tls, Session::Full, Authentication::Mutual);
    let refused = |change: &dyn Fn(&mut Tls), tls, expected: &str| {
        let mut tls = full(tls);
        change(&mut tls);
        let error =
            emulate(&https(&tls), &common::pattern(1), &SessionState::default()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    refused(
        &|tls| tls.session = Session::PskKe,
        Tls12,
        "stack.session is psk_ke: TLS 1.2 resumes by ticket",
    );
    refused(
        &|tls| tls.session = Session::Ticket,
        Tls13,
        "stack.session is ticket: TLS 1.3 resumes by psk_dhe_ke, psk_ke or 0-rtt",
    );
    refused(
        &|tls| tls.session = Session::EarlyData,
        Tls13,
        "stack.session is 0-rtt, but there is no ticket for it: make a full connection of the \
         same stack before",
    );
    refused(
        &|tls| tls.cipher_suite = full(Tls12).cipher_suite,
        Tls13,
        "stack.cipher_suite is TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, which TLS 1.3 with \
         certificate ecdsa_secp256r1 lacks: expected TLS_AES_128_GCM_SHA256",
    );
    refused(
        &|tls| tls.key_share = KeyShare::Prepared,
        Tls12,
        "stack.key_share is prepared: a TLS 1.2 ClientHello has no key share; use fresh",
    );
    refused(&|tls| tls.chain_length = 4, Tls13, "stack.chain_length is 4: expected 1, 2 or 3");
    refused(
        &|tls| tls.client_certificate_bytes.clear(),
        Tls13,
        "stack.client_certificate_bytes has 0 sizes: expected stack.chain_length of them, 1",
    );
    refused(
        &|tls| tls.server_name = Some(String::new()),
        Tls13,
        "stack.server_name has 0 bytes: expected a host name of 1 to 255",
    );
    refused(
        &|tls| {
            tls.chain_length = 2;
            tls.server_certificate_bytes = vec![60_000, 60_000];
            tls.client_certificate_bytes = vec![500, 500];
        },
        Tls13,
        "stack.server_certificate_bytes make 120010 B in all: OpenSSL takes 102400 B at most",
    );
    let other = emulate_first(&https(&full(Tls12)), &common::pattern(1), &SessionState::default());
    let (_, state) = other.unwrap();
    let resumed = common::tls(Tls13, Session::PskDheKe, Authentication::Mutual);
    assert!(emulate(&https(&resumed), &common::pattern(1), &state).is_err());
}

#[test]
fn requests_that_nginx_refuses_are_refused() {
    let tls = common::tls(TlsVersion::Tls13, Session::Full, Authentication::Server);
    let error = |path: &str, body| {
        let mut pattern = common::pattern(body);
        pattern.path = path.into();
        emulate(&https(&tls), &pattern, &SessionState::default()).unwrap_err().to_string()
    };
    assert_eq!(
        error("index", 1),
        "pattern.path is \"index\": expected a path that begins with / and holds no spaces, \
         for example \"/\""
    );
    assert!(error("/a b", 1).starts_with("pattern.path is \"/a b\""));
    assert_eq!(
        error(&format!("/{}", "a".repeat(8_192)), 1),
        "pattern.path makes a request line of 8208 B: nginx takes 8192 B at most"
    );
    assert_eq!(
        error("/", 67_108_865),
        "pattern.response_body is 67108865 B: expected at most 67108864 B"
    );
}
