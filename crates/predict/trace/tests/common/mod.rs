// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cases for the tests of this crate.
#![allow(dead_code, reason = "each test binary uses its own part")]

use warifu_model::{
    Aead, Authentication, Case, CertificateType, CipherSuite, Coap, CoapMessageType,
    CongestionControl, Dds, DdsAead, DdsCrypto, DdsMiddleware, DdsProtection, Group, Host, Https,
    KeyShare, KeyStoreChoice, Keyword, Link, Loss, Nanos, Pattern, PatternKind, Psk, PskMode,
    Server, Session, Stack, Tcp, Tls, TlsVersion,
};

/// Sizes of the lab's certificates, leaf first, as `real_openssl.rs` checks them.
pub fn chain(certificate: CertificateType, length: u8) -> Vec<u16> {
    let (leaf, intermediates) = match (certificate, length) {
        (CertificateType::EcdsaSecp256r1, 1) => (486, vec![]),
        (CertificateType::EcdsaSecp256r1, 2) => (496, vec![455]),
        (CertificateType::EcdsaSecp256r1, _) => (496, vec![465, 455]),
        (CertificateType::Rsa2048, 1) => (882, vec![]),
        (CertificateType::Rsa2048, 2) => (892, vec![851]),
        (CertificateType::Rsa2048, _) => (892, vec![861, 851]),
    };
    [vec![leaf], intermediates].concat()
}

/// TLS of the lab's sizes.
pub fn tls(version: TlsVersion, session: Session, authentication: Authentication) -> Tls {
    Tls {
        version,
        session,
        authentication,
        group: Group::Secp256r1,
        certificate: CertificateType::EcdsaSecp256r1,
        chain_length: 1,
        server_certificate_bytes: chain(CertificateType::EcdsaSecp256r1, 1),
        client_certificate_bytes: match authentication {
            Authentication::Mutual => chain(CertificateType::EcdsaSecp256r1, 1),
            Authentication::Server | Authentication::Psk => Vec::new(),
        },
        cipher_suite: CipherSuite::of(version, CertificateType::EcdsaSecp256r1, Aead::Aes128Gcm),
        key_share: KeyShare::Fresh,
        server_name: None,
        psk: None,
    }
}

/// The same by a key from outside, its identity of 16 B.
pub fn by_psk(version: TlsVersion, mode: PskMode, aead: Aead) -> Tls {
    let psk = Some(Psk { mode, identity_bytes: 16 });
    Tls {
        server_certificate_bytes: Vec::new(),
        cipher_suite: CipherSuite::of_choices(version, CertificateType::EcdsaSecp256r1, psk, aead)
            .unwrap(),
        psk,
        authentication: Authentication::Psk,
        ..tls(version, Session::Full, Authentication::Server)
    }
}

/// Every TLS layer by a key from outside that there can be, but for lengths of names and
/// identities.
pub fn every_psk() -> Vec<Tls> {
    let mut all = Vec::new();
    for &version in TlsVersion::ALL {
        for &mode in PskMode::ALL {
            for &aead in Aead::ALL {
                if CipherSuite::of_psk(version, mode, aead).is_none() {
                    continue;
                }
                for group in [Group::Secp256r1, Group::X25519] {
                    for server_name in [None, Some("warifu.test".to_owned())] {
                        for identity_bytes in [1, 16, 128] {
                            let psk = Some(Psk { mode, identity_bytes });
                            let tls = by_psk(version, mode, aead);
                            all.push(Tls { group, server_name: server_name.clone(), psk, ..tls });
                        }
                    }
                }
            }
        }
    }
    all
}

/// HTTPS over Linux's TCP.
pub fn https(tls: Tls) -> Https {
    let tcp = Tcp {
        device: "linux-6.18".into(),
        server: "linux-6.18".into(),
        congestion_control: CongestionControl::Cubic,
        initcwnd: 10,
        nagle: false,
    };
    Https { tls, tcp }
}

/// The same with other certificates and AEAD.
pub fn with(mut tls: Tls, certificate: CertificateType, length: u8, aead: Aead) -> Tls {
    tls.certificate = certificate;
    tls.chain_length = length;
    tls.server_certificate_bytes = chain(certificate, length);
    if tls.authentication == Authentication::Mutual {
        tls.client_certificate_bytes = chain(certificate, length);
    }
    tls.cipher_suite = CipherSuite::of(tls.version, certificate, aead);
    tls
}

/// One GET.
pub fn pattern(response_body: u32) -> Pattern {
    Pattern {
        kind: PatternKind::Request,
        path: "/".into(),
        response_body,
        request_body: 0,
        concurrent: 1,
        rate: None,
        pause: None,
    }
}

/// One POST.
pub fn upload(request_body: u32, response_body: u32) -> Pattern {
    Pattern { request_body, ..pattern(response_body) }
}

/// A case of HTTPS.
pub fn case(tls: Tls, session_open: bool) -> Case {
    Case {
        device: Host { profile: "this-host".into() },
        server: Server { profile: "this-host".into(), workers: 1 },
        key_store: KeyStoreChoice { profile: "software".into(), session_open },
        link: Link {
            profile: "ethernet".into(),
            rtt: Nanos::from_millis(60),
            jitter: Vec::new(),
            keep_order: true,
            rate_up: None,
            rate_down: None,
            queue_packets: 1000,
            mtu: 1500,
            loss: Loss::None,
        },
        stack: Stack::Https(https(tls)),
        pattern: pattern(846),
    }
}

/// A case of CoAP: 64 B from `/sensors/temperature`, with the parameters of RFC 7252 section 4.8.
pub fn coap(message_type: CoapMessageType) -> Case {
    let tls = tls(TlsVersion::Tls13, Session::Full, Authentication::Server);
    Case {
        stack: Stack::Coap(Coap {
            message_type,
            ack_timeout: Nanos::from_millis(2_000),
            ack_random_factor_percent: 150,
            max_retransmit: 4,
        }),
        pattern: Pattern { path: "/sensors/temperature".into(), ..pattern(64) },
        ..case(tls, true)
    }
}

/// A case of DDS: 64 B on `rt/chatter` under SROS2's governance.
pub fn dds(crypto: DdsCrypto, aead: DdsAead) -> Case {
    let tls = tls(TlsVersion::Tls13, Session::Full, Authentication::Server);
    let kind = |secured| if crypto == DdsCrypto::None { DdsProtection::None } else { secured };
    Case {
        stack: Stack::Dds(Dds {
            crypto,
            aead,
            data_protection: kind(DdsProtection::Encrypt),
            metadata_protection: kind(DdsProtection::Encrypt),
            rtps_protection: kind(DdsProtection::Sign),
            discovery_protection: kind(DdsProtection::Encrypt),
            middleware: DdsMiddleware::CycloneDds,
        }),
        pattern: Pattern { path: "/chatter".into(), ..pattern(64) },
        ..case(tls, true)
    }
}

/// The same with 50 KiB.
pub fn large(case: Case) -> Case {
    Case { pattern: Pattern { response_body: 50 << 10, ..case.pattern.clone() }, ..case }
}

/// Every TLS layer that there can be, but for lengths of names and chains: `key_share` fresh.
pub fn every_tls() -> Vec<Tls> {
    let mut all = Vec::new();
    for &version in TlsVersion::ALL {
        for &session in Session::ALL.iter().filter(|session| session.fits(version)) {
            for authentication in [Authentication::Server, Authentication::Mutual] {
                for certificate in [CertificateType::EcdsaSecp256r1, CertificateType::Rsa2048] {
                    for length in 1..=3 {
                        for aead in [Aead::Aes128Gcm, Aead::Aes256Gcm, Aead::ChaCha20Poly1305] {
                            for group in [Group::Secp256r1, Group::X25519] {
                                for name in [None, Some("warifu.test".to_owned())] {
                                    let tls = tls(version, session, authentication);
                                    let mut tls = with(tls, certificate, length, aead);
                                    tls.group = group;
                                    tls.server_name = name;
                                    all.push(tls);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    all
}
