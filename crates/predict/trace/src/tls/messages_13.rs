// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lengths of TLS 1.3 handshake messages (RFC 8446), as OpenSSL 3.0 and nginx fill them.

use warifu_model::{Group, PskMode, Session, Tls};

use crate::error::TraceError;
use crate::tls::messages::{
    CIPHER_SUITE, HANDSHAKE_HEADER, RANDOM, SESSION_ID, SIGNATURE_SCHEME, VERSION,
    certificate_authorities, chain_bytes, client_hello as common_hello, extension, hash,
    public_key, signed, vector,
};
use crate::tls::session::Ticket;
use crate::trace::Bytes;

/// Signature schemes of OpenSSL's default list that a client of TLS 1.3 alone offers: 5 of
/// ECDSA and EdDSA, 6 of RSA-PSS, 3 of RSA PKCS #1 for certificates
/// (`tls12_sigalgs` in ssl/t1_lib.c, OpenSSL 3.0).
const CLIENT_SCHEMES: u32 = 14;
/// A server's CertificateRequest adds ecdsa_sha224 and rsa_pkcs1_sha224 of the same list.
const SERVER_SCHEMES: u32 = CLIENT_SCHEMES + 2;
/// NewSessionTicket's nonce in OpenSSL (`TICKET_NONCE_SIZE`, ssl/ssl_local.h).
const TICKET_NONCE: u32 = 8;
/// The group and the length of one key share (RFC 8446 section 4.2.8).
const KEY_SHARE_HEADER: u32 = 2 + 2;

/// The group whose key share the client sends. OpenSSL prefers (EC)DHE wherever it can: PSK
/// alone comes about only where client and server have no group in common, so the resuming
/// client offers the other one.
fn offered_group(tls: &Tls, resuming: bool) -> Group {
    match (psk_alone(tls) && (resuming || tls.psk.is_some()), tls.group) {
        (true, Group::Secp256r1) => Group::X25519,
        (true, Group::X25519) => Group::Secp256r1,
        (false, group) => group,
    }
}

/// Whether both ends allow a PSK, of a ticket or from outside, without (EC)DHE.
fn psk_alone(tls: &Tls) -> bool {
    tls.session == Session::PskKe || tls.psk.is_some_and(|psk| psk.mode == PskMode::PskKe)
}

/// ClientHello (section 4.1.2); with `ticket`, its offer comes last (section 4.2.11).
pub(crate) fn client_hello(tls: &Tls, ticket: Option<&Ticket>) -> Bytes {
    // supported_versions (section 4.2.1).
    let versions = extension(vector(1, 2));
    // psk_key_exchange_modes (section 4.2.9): psk_dhe_ke, and psk_ke where it is allowed.
    let modes = extension(vector(1, if psk_alone(tls) { 2 } else { 1 }));
    let group = offered_group(tls, ticket.is_some());
    let key_share = extension(vector(2, KEY_SHARE_HEADER + public_key(group)));
    // early_data (section 4.2.10): empty.
    let early = match (ticket, tls.session) {
        (Some(_), Session::EarlyData) => extension(0),
        _ => 0,
    };
    let outside = tls.psk.map(|psk| Bytes::exactly(u32::from(psk.identity_bytes)));
    let offer =
        ticket.map(|ticket| ticket.bytes).or(outside).map_or(Bytes::default(), |identity| {
            // The identity and its obfuscated age, 0 for a key from outside, then the binder.
            let identities = identity.plus(2 + 2 + 4);
            let binders = vector(2, vector(1, hash(tls.cipher_suite.aead())));
            identities.plus(extension(0) + binders)
        });
    let more = offer.plus(versions + modes + key_share + early);
    // Middlebox compatibility fills the session identifier (section D.4).
    common_hello(tls, SESSION_ID, CLIENT_SCHEMES, Bytes::default(), more)
}

/// ServerHello (section 4.1.3).
pub(crate) fn server_hello(tls: &Tls, by_psk: bool) -> Bytes {
    let versions = extension(2);
    let key_share = match by_psk && psk_alone(tls) {
        true => 0,
        false => extension(KEY_SHARE_HEADER + public_key(tls.group)),
    };
    // pre_shared_key: the index of the identity taken (section 4.2.11).
    let selected = if by_psk { extension(2) } else { 0 };
    let head = HANDSHAKE_HEADER + VERSION + RANDOM + vector(1, SESSION_ID) + CIPHER_SUITE + 1;
    Bytes::exactly(head + vector(2, versions + key_share + selected))
}

/// EncryptedExtensions (section 4.3.1). nginx acknowledges every server_name
/// (`ngx_http_ssl_servername`; RFC 6066 section 3), also on resumption.
pub(crate) fn encrypted_extensions(tls: &Tls, early_data: bool) -> Bytes {
    let name = if tls.server_name.is_some() { extension(0) } else { 0 };
    let early = if early_data { extension(0) } else { 0 };
    Bytes::exactly(HANDSHAKE_HEADER + vector(2, name + early))
}

/// CertificateRequest (section 4.3.2): signature_algorithms and certificate_authorities.
pub(crate) fn certificate_request() -> Bytes {
    let schemes = extension(vector(2, SIGNATURE_SCHEME * SERVER_SCHEMES));
    let authorities = extension(certificate_authorities());
    // The context is empty during a handshake.
    Bytes::exactly(HANDSHAKE_HEADER + vector(1, 0) + vector(2, schemes + authorities))
}

/// Certificate (section 4.4.2) without extensions of its entries.
pub(crate) fn certificate(key: &'static str, chain: &[u16]) -> Result<Bytes, TraceError> {
    let list = chain_bytes(key, chain, 3 + 2)?;
    Ok(Bytes::exactly(HANDSHAKE_HEADER + vector(1, 0) + vector(3, list)))
}

/// CertificateVerify (section 4.4.3).
pub(crate) fn certificate_verify(tls: &Tls) -> Bytes {
    signed(tls.certificate).plus(HANDSHAKE_HEADER)
}

/// Finished (section 4.4.4).
pub(crate) fn finished(tls: &Tls) -> Bytes {
    Bytes::exactly(HANDSHAKE_HEADER + hash(tls.cipher_suite.aead()))
}

/// EndOfEarlyData (section 4.5): empty.
pub(crate) const fn end_of_early_data() -> Bytes {
    Bytes::exactly(HANDSHAKE_HEADER)
}

/// NewSessionTicket (section 4.6.1); early_data is its only extension.
pub(crate) fn new_session_ticket(ticket: &Ticket) -> Bytes {
    let lifetime_and_age_add = 4 + 4;
    let extensions = vector(2, if ticket.max_early_data > 0 { extension(4) } else { 0 });
    let nonce = vector(1, TICKET_NONCE);
    ticket.bytes.plus(HANDSHAKE_HEADER + lifetime_and_age_add + nonce + 2 + extensions)
}
