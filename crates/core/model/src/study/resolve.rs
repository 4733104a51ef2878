// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From what a study states to a case with every choice made, or to what does not go together.

use super::draft::{Draft, SessionWord};
use crate::case::{
    Aead, Authentication, Case, CertificateType, CipherSuite, CongestionControl, Group, Host,
    KeyShare, KeyStoreChoice, Link, Pattern, PatternKind, Protocol, Server, Session, Stack,
    TlsVersion,
};
use crate::certificates::lab_certificate_bytes;
use crate::keyword::Keyword;
use crate::profile::{Catalog, ProfileKind};

/// Both ends run this machine where a study names no other.
const HOST: &str = "this-host";
/// The key lies in memory where a study names no key store.
const KEY_STORE: &str = "software";
/// The emulated link without delay.
const LINK: &str = "loopback";
/// The kernel of the lab.
const KERNEL: &str = "linux-6.18";
/// The response of papers/2 section 3.4.
const RESPONSE_BODY: u32 = 846;

/// A setting that does not go with another: its path, and what is wrong, beginning with a verb.
pub(crate) type Clash = (&'static str, String);

/// Makes every choice: what the draft states, else the profile's, else the default.
pub(crate) fn case(draft: &Draft, catalog: &Catalog) -> Result<Case, Vec<Clash>> {
    let mut clashes = Vec::new();
    let known = |kind, path: &'static str, name: &str| -> Result<String, Clash> {
        if catalog.names(kind).binary_search(&name).is_ok() {
            Ok(name.to_string())
        } else {
            Err((path, format!("is \"{name}\": {}", catalog.mend(kind, name))))
        }
    };
    let mut name = |kind, path, stated: &Option<String>, default: &str| {
        let name = stated.as_deref().unwrap_or(default);
        known(kind, path, name).map_err(|clash| clashes.push(clash)).ok()
    };
    let device = name(ProfileKind::Device, "device", &draft.device, HOST);
    let server = name(ProfileKind::Device, "server", &draft.server, HOST);
    let key_store = name(ProfileKind::KeyStore, "key_store", &draft.key_store, KEY_STORE);
    let link = name(ProfileKind::Link, "link", &draft.link, LINK);
    let kernel = name(ProfileKind::Kernel, "stack.kernel", &draft.kernel, KERNEL);
    let link =
        link.and_then(|name| catalog.link(&name)).map(|profile| of_link(draft, &profile.link));
    let stack = stack(draft, kernel.unwrap_or_default(), &mut clashes);
    match (device, server, key_store, link, stack) {
        (Some(device), Some(server), Some(key_store), Some(link), Some(stack))
            if clashes.is_empty() =>
        {
            Ok(Case {
                device: Host { profile: device },
                server: Server { profile: server, workers: draft.workers.unwrap_or(1) },
                key_store: KeyStoreChoice {
                    profile: key_store,
                    session_open: draft.session_open.unwrap_or(true),
                },
                link,
                stack,
                pattern: Pattern {
                    kind: draft.pattern.unwrap_or(PatternKind::Request),
                    path: draft.path.clone().unwrap_or_else(|| "/".into()),
                    response_body: draft.response_body.unwrap_or(RESPONSE_BODY),
                    concurrent: draft.concurrent.unwrap_or(1),
                },
            })
        }
        _ => Err(clashes),
    }
}

/// The profile's link, with what the study states in its place.
fn of_link(draft: &Draft, profile: &Link) -> Link {
    Link {
        profile: profile.profile.clone(),
        rtt: draft.rtt.unwrap_or(profile.rtt),
        jitter: draft.jitter.clone().unwrap_or_else(|| profile.jitter.clone()),
        keep_order: draft.keep_order.unwrap_or(profile.keep_order),
        rate_up: draft.rate_up.or(profile.rate_up),
        rate_down: draft.rate_down.or(profile.rate_down),
        queue_packets: draft.queue_packets.unwrap_or(profile.queue_packets),
        mtu: draft.mtu.unwrap_or(profile.mtu),
        loss: draft.loss.unwrap_or(profile.loss),
    }
}

fn stack(draft: &Draft, kernel: String, clashes: &mut Vec<Clash>) -> Option<Stack> {
    let before = clashes.len();
    let tls = draft.tls.unwrap_or(TlsVersion::Tls13);
    let certificate = draft.certificate.unwrap_or(CertificateType::EcdsaSecp256r1);
    let authentication = draft.authentication.unwrap_or(Authentication::Mutual);
    let session = session(draft.session, tls).map_err(|clash| clashes.push(clash)).ok();
    let suite = suite(draft, tls, certificate).map_err(|clash| clashes.push(clash)).ok();
    let key_share = draft.key_share.unwrap_or(KeyShare::Fresh);
    if let Err(clash) = check_key_share(key_share, tls, session) {
        clashes.push(clash);
    }
    let chain_length = chain_length(draft);
    let chain = |stated: &Option<Vec<u16>>| match stated {
        Some(sizes) => sizes.clone(),
        None => lab_certificate_bytes(certificate, chain_length),
    };
    let server_chain = chain(&draft.server_certificate_bytes);
    let client_chain = match authentication {
        Authentication::Mutual => chain(&draft.client_certificate_bytes),
        Authentication::Server => Vec::new(),
    };
    check_chains(draft, authentication, chain_length, clashes);
    if clashes.len() > before {
        return None;
    }
    Some(Stack {
        protocol: draft.protocol.unwrap_or(Protocol::Https),
        tls,
        session: session?,
        authentication,
        group: draft.group.unwrap_or(Group::Secp256r1),
        certificate,
        chain_length,
        server_certificate_bytes: server_chain,
        client_certificate_bytes: client_chain,
        cipher_suite: suite?,
        key_share,
        server_name: draft.server_name.clone(),
        kernel,
        congestion_control: draft.congestion_control.unwrap_or(CongestionControl::Cubic),
        // RFC 6928, and TCP_INIT_CWND of Linux.
        initcwnd: draft.initcwnd.unwrap_or(10),
        nagle: draft.nagle.unwrap_or(false),
    })
}

/// The session of a version. A resumption needs something that this version's connections leave
/// behind: a ticket with TLS 1.2 (RFC 5077), a PSK with TLS 1.3 (RFC 8446 section 2.2).
fn session(word: Option<SessionWord>, tls: TlsVersion) -> Result<Session, Clash> {
    let session = match (word, tls) {
        (None, _) => Session::Full,
        (Some(SessionWord::Resumed), tls) => Session::resumed(tls),
        (Some(SessionWord::Exactly(session)), _) => session,
    };
    if session.fits(tls) {
        return Ok(session);
    }
    let name = session.name();
    let (leaves, or) = match tls {
        TlsVersion::Tls12 => {
            ("TLS 1.2 connection leaves a ticket and no PSK", "stack.tls = \"1.3\"")
        }
        TlsVersion::Tls13 => {
            ("TLS 1.3 connection leaves a PSK", "\"psk_dhe_ke\", \"psk_ke\" or \"0-rtt\"")
        }
    };
    let message = format!(
        "is \"{name}\" with nothing to resume: a {leaves}; use \"resumed\", which fits both \
         versions, or {or}"
    );
    Err(("stack.session", message))
}

fn suite(
    draft: &Draft,
    tls: TlsVersion,
    certificate: CertificateType,
) -> Result<CipherSuite, Clash> {
    let suite = match draft.cipher_suite {
        Some(suite) => suite,
        None => {
            return Ok(CipherSuite::of(tls, certificate, draft.aead.unwrap_or(Aead::Aes128Gcm)));
        }
    };
    let right = CipherSuite::of(tls, certificate, suite.aead());
    if right == suite {
        return Ok(suite);
    }
    let other = match tls {
        TlsVersion::Tls12 => TlsVersion::Tls13,
        TlsVersion::Tls13 => TlsVersion::Tls12,
    };
    let of_other = [CertificateType::EcdsaSecp256r1, CertificateType::Rsa2048]
        .into_iter()
        .any(|certificate| CipherSuite::of(other, certificate, suite.aead()) == suite);
    let lack = if of_other {
        format!("TLS {} lacks it", tls.name())
    } else {
        format!("a certificate of type {} cannot serve it", certificate.name())
    };
    let message = format!(
        "is \"{}\": {lack}; use \"{}\", or stack.aead = \"{}\", which fits every version",
        suite.name(),
        right.name(),
        suite.aead().name()
    );
    Err(("stack.cipher_suite", message))
}

fn check_key_share(
    key_share: KeyShare,
    tls: TlsVersion,
    session: Option<Session>,
) -> Result<(), Clash> {
    let refuse = |why: &str| {
        Err(("stack.key_share", format!("is \"prepared\": {why}; use \"fresh\" or leave it out")))
    };
    match (key_share, tls, session) {
        (KeyShare::Fresh, ..) => Ok(()),
        (KeyShare::Prepared, TlsVersion::Tls12, _) => {
            refuse("a TLS 1.2 ClientHello has no key share to prepare")
        }
        (KeyShare::Prepared, _, Some(Session::PskKe)) => {
            refuse("a PSK without (EC)DHE has no key share to prepare")
        }
        _ => Ok(()),
    }
}

/// As stated, or as many as the sizes that are stated.
fn chain_length(draft: &Draft) -> u8 {
    let sizes = draft.server_certificate_bytes.as_ref().or(draft.client_certificate_bytes.as_ref());
    draft.chain_length.or(sizes.map(|sizes| sizes.len() as u8)).unwrap_or(1)
}

fn check_chains(
    draft: &Draft,
    authentication: Authentication,
    chain_length: u8,
    clashes: &mut Vec<Clash>,
) {
    let chains = [
        ("stack.server_certificate_bytes", &draft.server_certificate_bytes),
        ("stack.client_certificate_bytes", &draft.client_certificate_bytes),
    ];
    for (path, sizes) in chains {
        let Some(sizes) = sizes else { continue };
        if sizes.len() != usize::from(chain_length) {
            let (count, length) = (sizes.len(), chain_length);
            let message =
                format!("holds {count} sizes: expected {length}, as stack.chain_length says");
            clashes.push((path, message));
        }
    }
    if authentication == Authentication::Server && draft.client_certificate_bytes.is_some() {
        let message = "is given, but the client shows no certificate: remove it, or use \
                       stack.authentication = \"mutual\"";
        clashes.push(("stack.client_certificate_bytes", message.into()));
    }
}
