// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the messages of TLS 1.2 and 1.3 have in common: signatures, keys, extensions.

use warifu_model::{Aead, CertificateType, Group, Tls, TlsVersion};

use crate::error::TraceError;
use crate::tls::der;
use crate::trace::Bytes;

/// Type and length of a handshake message (RFC 8446 section 4, RFC 5246 section 7.4).
pub(crate) const HANDSHAKE_HEADER: u32 = 4;
/// legacy_version (RFC 8446 section 4.1.2).
pub(crate) const VERSION: u32 = 2;
/// Client's and server's random (RFC 8446 section 4.1.2).
pub(crate) const RANDOM: u32 = 32;
/// A session identifier as OpenSSL makes one, always of the greatest length
/// (RFC 8446 section 4.1.2; `SSL_MAX_SSL_SESSION_ID_LENGTH`).
pub(crate) const SESSION_ID: u32 = 32;
/// The number of one cipher suite (RFC 8446 section 4.1.2).
pub(crate) const CIPHER_SUITE: u32 = 2;
/// The number of one signature scheme (RFC 8446 section 4.2.3).
pub(crate) const SIGNATURE_SCHEME: u32 = 2;
/// The largest chain that OpenSSL takes: `SSL_MAX_CERT_LIST_DEFAULT` (include/openssl/ssl.h).
const LARGEST_CHAIN: u32 = 102_400;
/// The root's subject, `O=Warifu, CN=Warifu Root CA`, the only name in a CertificateRequest:
/// two attributes (RFC 5280 section 4.1.2.4), each SET { SEQUENCE { OID of 3 bytes, string } }.
const ROOT_SUBJECT: u32 = der::element(attribute(6) + attribute(14));

const fn attribute(text: u32) -> u32 {
    der::element(der::element(der::element(3) + der::element(text)))
}

/// A vector: its length field and its content (RFC 8446 section 3.4).
pub(crate) const fn vector(length_field: u32, content: u32) -> u32 {
    length_field + content
}

/// An extension: type, length, content (RFC 8446 section 4.2).
pub(crate) const fn extension(content: u32) -> u32 {
    2 + vector(2, content)
}

/// The list of names that RFC 8446 section 4.2.4 and RFC 5246 section 7.4.4 share.
pub(crate) const fn certificate_authorities() -> u32 {
    vector(2, vector(2, ROOT_SUBJECT))
}

/// server_name of one host name (RFC 6066 section 3).
pub(crate) fn server_name(name: &str) -> u32 {
    // The vocabulary admits names of 1 to 255 bytes.
    extension(vector(2, 1 + vector(2, name.len() as u32)))
}

/// A public key of a group, without any length field: an uncompressed point
/// (RFC 8446 section 4.2.8.2) or a u-coordinate (RFC 7748 section 5).
pub(crate) const fn public_key(group: Group) -> u32 {
    match group {
        Group::Secp256r1 => 1 + 32 + 32,
        Group::X25519 => 32,
    }
}

/// A signature of the certificates' keys.
pub(crate) const fn signature(certificate: CertificateType) -> Bytes {
    match certificate {
        CertificateType::EcdsaSecp256r1 => {
            Bytes { fixed: der::ecdsa_signature(32, 32), ecdsa_signatures: 1, uncertain_tickets: 0 }
        }
        // As long as the modulus (RFC 8017 section 8).
        CertificateType::Rsa2048 => Bytes::exactly(256),
    }
}

/// Scheme, length and signature (RFC 8446 section 4.4.3, RFC 5246 section 4.7).
pub(crate) const fn signed(certificate: CertificateType) -> Bytes {
    signature(certificate).plus(SIGNATURE_SCHEME + 2)
}

/// Output of the suite's hash (RFC 8446 section B.4).
pub(crate) const fn hash(aead: Aead) -> u32 {
    match aead {
        Aead::Aes256Gcm => 48,
        Aead::Aes128Gcm | Aead::ChaCha20Poly1305 => 32,
    }
}

/// The bytes of a chain's certificates, if OpenSSL takes so many.
pub(crate) fn chain_bytes(
    key: &'static str,
    chain: &[u16],
    per_certificate: u32,
) -> Result<u32, TraceError> {
    if chain.is_empty() {
        return Err(TraceError::new(key, "is empty: expected the DER size of each certificate"));
    }
    let bytes: u32 = chain.iter().map(|&der| u32::from(der) + per_certificate).sum();
    if bytes > LARGEST_CHAIN {
        return Err(TraceError::new(
            key,
            format!("make {bytes} B in all: OpenSSL takes {LARGEST_CHAIN} B at most"),
        ));
    }
    Ok(bytes)
}

/// Whether ClientHello offers elliptic curves: not where no suite of it has any (`use_ecc`,
/// ssl/statem/extensions_clnt.c).
fn offers_curves(tls: &Tls) -> bool {
    tls.version == TlsVersion::Tls13 || tls.has_key_exchange()
}

/// The groups that the client offers. TLS 1.2 asks that the curve of an ECDSA certificate be
/// among them too (RFC 8422 section 5.1).
pub(crate) fn offered_groups(tls: &Tls) -> u32 {
    let other_curve = tls.version == TlsVersion::Tls12
        && tls.psk.is_none()
        && tls.certificate == CertificateType::EcdsaSecp256r1
        && tls.group != Group::Secp256r1;
    1 + u32::from(other_curve)
}

/// The ClientHello up to its extensions, and those that both versions send (OpenSSL 3.0's
/// defaults, in the order of ssl/statem/extensions.c). `more` is the length of the rest.
pub(crate) fn client_hello(
    tls: &Tls,
    session_id: u32,
    signature_schemes: u32,
    session_ticket: Bytes,
    more: Bytes,
) -> Bytes {
    let curves = match offers_curves(tls) {
        // ec_point_formats: three of them (RFC 8422 section 5.1.2), and supported_groups (RFC 8446
        // section 4.2.7).
        true => extension(vector(1, 3)) + extension(vector(2, 2 * offered_groups(tls))),
        false => 0,
    };
    let common = tls.server_name.as_deref().map_or(0, server_name)
        + curves
        // encrypt_then_mac, extended_master_secret (RFC 7366, RFC 7627): empty.
        + extension(0)
        + extension(0)
        // signature_algorithms (RFC 8446 section 4.2.3).
        + extension(vector(2, SIGNATURE_SCHEME * signature_schemes));
    // session_ticket (RFC 5077 section 3.2): empty without a ticket, and with TLS 1.3.
    let extensions = session_ticket.plus(extension(0)) + more.plus(common);
    // The suite, and TLS_EMPTY_RENEGOTIATION_INFO_SCSV (RFC 5746 section 3.3).
    let suites = vector(2, 2 * CIPHER_SUITE);
    let compression = vector(1, 1);
    let head = HANDSHAKE_HEADER + VERSION + RANDOM + vector(1, session_id) + suites + compression;
    extensions.plus(head + 2)
}
