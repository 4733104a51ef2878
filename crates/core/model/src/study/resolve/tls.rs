// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The TLS layer of a stack, or what of it does not go together.

use super::Clash;
use crate::case::{
    Aead, Authentication, CertificateType, CipherSuite, Group, KeyShare, Psk, PskMode, Session,
    Tls, TlsVersion,
};
use crate::certificates::lab_certificate_bytes;
use crate::keyword::Keyword;
use crate::study::draft::{Draft, SessionWord};

/// What the draft states of TLS, else the defaults.
pub(super) fn layer(draft: &Draft, clashes: &mut Vec<Clash>) -> Option<Tls> {
    let before = clashes.len();
    let version = draft.tls.unwrap_or(TlsVersion::Tls13);
    let certificate = draft.certificate.unwrap_or(CertificateType::EcdsaSecp256r1);
    let authentication = draft.authentication.unwrap_or(Authentication::Mutual);
    let session = session(draft.session, version).map_err(|clash| clashes.push(clash)).ok();
    let psk = psk(draft, version, authentication, clashes);
    let suite = match psk {
        None => suite(draft, version, certificate),
        Some(psk) => psk_suite(draft, version, psk),
    };
    let suite = suite.map_err(|clash| clashes.push(clash)).ok();
    let key_share = draft.key_share.unwrap_or(KeyShare::Fresh);
    if let Err(clash) = check_key_share(key_share, version, session, psk) {
        clashes.push(clash);
    }
    let chain_length = chain_length(draft);
    let chain = |stated: &Option<Vec<u16>>| match stated {
        Some(sizes) => sizes.clone(),
        None => lab_certificate_bytes(certificate, chain_length),
    };
    let server_chain = match authentication {
        Authentication::Psk => Vec::new(),
        _ => chain(&draft.server_certificate_bytes),
    };
    let client_chain = match authentication {
        Authentication::Mutual => chain(&draft.client_certificate_bytes),
        _ => Vec::new(),
    };
    check_chains(draft, authentication, chain_length, clashes);
    if clashes.len() > before {
        return None;
    }
    Some(Tls {
        version,
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
        psk,
    })
}

/// Any that a device's name in 16 B would do for, such as a serial number.
const PSK_IDENTITY_BYTES: u16 = 16;

/// The key from outside, if both ends prove to have one; what does not go with it, or is said
/// without it, is named.
fn psk(
    draft: &Draft,
    version: TlsVersion,
    authentication: Authentication,
    clashes: &mut Vec<Clash>,
) -> Option<Psk> {
    if authentication != Authentication::Psk {
        let stated = [
            ("stack.psk_mode", draft.psk_mode.is_some()),
            ("stack.psk_identity_bytes", draft.psk_identity_bytes.is_some()),
        ];
        for (path, _) in stated.into_iter().filter(|(_, stated)| *stated) {
            let message = "is given, but no end has a key from outside: remove it, or use \
                           stack.authentication = \"psk\"";
            clashes.push((path, message.into()));
        }
        return None;
    }
    if !matches!(draft.session, None | Some(SessionWord::Exactly(Session::Full))) {
        let message = "resumes: a key from outside is there at each connection, so there is no \
                       ticket to resume by; use \"full\" or leave it out";
        clashes.push(("stack.session", message.into()));
    }
    let certificates = [
        ("stack.certificate", draft.certificate.is_some()),
        ("stack.chain_length", draft.chain_length.is_some()),
        ("stack.server_certificate_bytes", draft.server_certificate_bytes.is_some()),
        ("stack.client_certificate_bytes", draft.client_certificate_bytes.is_some()),
    ];
    for (path, _) in certificates.into_iter().filter(|(_, stated)| *stated) {
        let message = "is given, but with stack.authentication = \"psk\" nobody shows a \
                       certificate: remove it";
        clashes.push((path, message.into()));
    }
    // What most stacks have: OpenSSL's ECDHE_PSK suites of TLS 1.2 with an AEAD are one.
    let mode = draft.psk_mode.unwrap_or(match version {
        TlsVersion::Tls12 => PskMode::PskKe,
        TlsVersion::Tls13 => PskMode::PskDheKe,
    });
    let identity_bytes = draft.psk_identity_bytes.unwrap_or(PSK_IDENTITY_BYTES);
    Some(Psk { mode, identity_bytes })
}

/// The suite of a connection by a key from outside.
fn psk_suite(draft: &Draft, tls: TlsVersion, psk: Psk) -> Result<CipherSuite, Clash> {
    let stated = draft.cipher_suite;
    let aead = stated.map(CipherSuite::aead).or(draft.aead);
    // An AEAD that all have, or else the one that there is.
    let aead = aead.unwrap_or(match (tls, psk.mode) {
        (TlsVersion::Tls12, PskMode::PskDheKe) => Aead::ChaCha20Poly1305,
        _ => Aead::Aes128Gcm,
    });
    let (path, word) = match stated {
        Some(suite) => ("stack.cipher_suite", suite.name()),
        None => ("stack.aead", aead.name()),
    };
    let why = match (CipherSuite::of_psk(tls, psk.mode, aead), tls) {
        (Some(suite), _) if stated.is_none_or(|stated| stated == suite) => return Ok(suite),
        (Some(suite), _) => format!("a key from outside has another: use \"{}\"", suite.name()),
        (None, TlsVersion::Tls13) => {
            "a key from outside goes with SHA-256 (RFC 8446 section 4.2.11); use \
             \"TLS_AES_128_GCM_SHA256\" or \"TLS_CHACHA20_POLY1305_SHA256\""
                .into()
        }
        (None, TlsVersion::Tls12) => "OpenSSL has no such suite with ECDHE_PSK; use \
             stack.aead = \"CHACHA20_POLY1305\", or stack.psk_mode = \"psk_ke\""
            .into(),
    };
    Err((path, format!("is \"{word}\": {why}")))
}

/// The session of a version; see [`Session::fits`].
fn session(word: Option<SessionWord>, version: TlsVersion) -> Result<Session, Clash> {
    let session = match word {
        None => Session::Full,
        Some(SessionWord::Resumed) => Session::resumed(version),
        Some(SessionWord::Exactly(session)) => session,
    };
    if session.fits(version) {
        return Ok(session);
    }
    let name = session.name();
    let hint = "use \"resumed\", which fits both versions";
    let message = match version {
        TlsVersion::Tls12 => format!(
            "is \"{name}\" with nothing to resume: a TLS 1.2 connection leaves a ticket and no \
             PSK; {hint}, or stack.tls = \"1.3\""
        ),
        TlsVersion::Tls13 => format!(
            "is \"{name}\" with nothing to resume: a TLS 1.3 connection leaves a PSK; {hint}, or \
             \"psk_dhe_ke\", \"psk_ke\" or \"0-rtt\""
        ),
    };
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
    psk: Option<Psk>,
) -> Result<(), Clash> {
    let refuse = |why: &str| {
        Err(("stack.key_share", format!("is \"prepared\": {why}; use \"fresh\" or leave it out")))
    };
    match (key_share, tls, session) {
        (KeyShare::Fresh, ..) => Ok(()),
        (KeyShare::Prepared, TlsVersion::Tls12, _) => {
            refuse("a TLS 1.2 ClientHello has no key share to prepare")
        }
        (KeyShare::Prepared, ..) if psk.is_some() => {
            refuse("with a key from outside ClientHello is made during the handshake alone")
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
    if authentication == Authentication::Psk {
        // Named already.
        return;
    }
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
