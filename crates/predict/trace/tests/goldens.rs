// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Golden traces: `goldens/*.txt`, as `warifu trace` prints them. With the environment variable
//! `WARIFU_UPDATE_GOLDENS=1` the test writes them anew; the reason for a change belongs into
//! the commit that makes it.

mod common;

use std::fs;
use std::path::Path;

use warifu_model::{
    Aead, Authentication::Mutual, Authentication::Server, Case, CertificateType, CoapMessageType,
    DdsAead, DdsCrypto, Group, KeyShare, Pattern, PskMode, Session, TlsVersion::Tls12,
    TlsVersion::Tls13,
};
use warifu_trace::{render, scenario};

fn golden_cases() -> Vec<(&'static str, Case)> {
    let plain = |tls| common::case(tls, true);
    let mut card = common::case(common::tls(Tls13, Session::Full, Mutual), false);
    card.key_store.profile = "iot-safe-sakomoto".into();
    let mut prepared = common::tls(Tls13, Session::Full, Mutual);
    prepared.key_share = KeyShare::Prepared;
    let mut x25519 = common::tls(Tls12, Session::Full, Mutual);
    x25519.group = Group::X25519;
    let mut named = common::tls(Tls13, Session::Full, Server);
    named.group = Group::X25519;
    named.server_name = Some("warifu.test".into());
    let rsa = |version| {
        let tls = common::tls(version, Session::Full, Mutual);
        common::with(tls, CertificateType::Rsa2048, 3, Aead::ChaCha20Poly1305)
    };
    // Certificates so large that the handshake leaves in several writes.
    let mut large = common::tls(Tls13, Session::Full, Mutual);
    large.server_certificate_bytes = vec![6_000];
    large.client_certificate_bytes = vec![20_000];
    vec![
        ("tls13-full-mutual", plain(common::tls(Tls13, Session::Full, Mutual))),
        ("tls13-full-server", plain(common::tls(Tls13, Session::Full, Server))),
        ("tls13-full-server-x25519-named", plain(named)),
        ("tls13-full-mutual-prepared", plain(prepared)),
        ("tls13-full-mutual-key-store-closed", card),
        ("tls13-full-mutual-rsa-chain3-chacha20", plain(rsa(Tls13))),
        ("tls13-full-mutual-large", plain(large)),
        ("tls13-psk-dhe-ke-mutual", plain(common::tls(Tls13, Session::PskDheKe, Mutual))),
        ("tls13-psk-ke-mutual", plain(common::tls(Tls13, Session::PskKe, Mutual))),
        ("tls13-0-rtt-mutual", plain(common::tls(Tls13, Session::EarlyData, Mutual))),
        ("tls12-full-mutual", plain(common::tls(Tls12, Session::Full, Mutual))),
        ("tls12-full-server", plain(common::tls(Tls12, Session::Full, Server))),
        ("tls12-full-mutual-x25519", plain(x25519)),
        ("tls12-full-mutual-rsa-chain3-chacha20", plain(rsa(Tls12))),
        ("tls13-external-psk", plain(common::by_psk(Tls13, PskMode::PskDheKe, Aead::Aes128Gcm))),
        ("tls13-external-psk-ke", plain(common::by_psk(Tls13, PskMode::PskKe, Aead::Aes128Gcm))),
        ("tls12-external-psk", plain(common::by_psk(Tls12, PskMode::PskKe, Aead::Aes128Gcm))),
        (
            "tls12-external-psk-ecdhe",
            plain(common::by_psk(Tls12, PskMode::PskDheKe, Aead::ChaCha20Poly1305)),
        ),
        (
            "tls13-full-mutual-upload",
            Case {
                pattern: common::upload(100, 846),
                ..plain(common::tls(Tls13, Session::Full, Mutual))
            },
        ),
        (
            "tls12-full-mutual-upload-40-kb",
            Case {
                pattern: common::upload(40_000, 100),
                ..plain(common::tls(Tls12, Session::Full, Mutual))
            },
        ),
        (
            "coap-con-upload",
            Case {
                pattern: Pattern { path: "/data".into(), ..common::upload(100, 0) },
                ..common::coap(CoapMessageType::Confirmable)
            },
        ),
        ("coap-con", common::coap(CoapMessageType::Confirmable)),
        ("coap-non", common::coap(CoapMessageType::NonConfirmable)),
        ("dds-plain", common::dds(DdsCrypto::None, DdsAead::Aes256Gcm)),
        ("dds-sros2", common::dds(DdsCrypto::Builtin, DdsAead::Aes256Gcm)),
        ("dds-sros2-aegis-256", common::dds(DdsCrypto::Warifu, DdsAead::Aegis256)),
        ("dds-sros2-50-kib", common::large(common::dds(DdsCrypto::Builtin, DdsAead::Aes256Gcm))),
        ("tls12-ticket-mutual", plain(common::tls(Tls12, Session::Ticket, Mutual))),
    ]
}

#[test]
fn traces_are_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens");
    let update = std::env::var_os("WARIFU_UPDATE_GOLDENS").is_some_and(|value| value == "1");
    let cases = golden_cases();
    for (name, case) in &cases {
        let text = render(case, &scenario(case).unwrap());
        let file = folder.join(format!("{name}.txt"));
        if update {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let golden = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(golden, text, "{}: see the head of this test's file", file.display());
    }
    let kept = fs::read_dir(&folder).unwrap().count();
    assert_eq!(kept, cases.len(), "a golden without its case in {}", folder.display());
}

#[test]
fn traces_fit_100_columns() {
    for (name, case) in golden_cases() {
        for line in render(&case, &scenario(&case).unwrap()).lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
    }
}
