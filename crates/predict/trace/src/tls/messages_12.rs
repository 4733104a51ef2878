// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lengths of TLS 1.2 handshake messages (RFC 5246), as OpenSSL 3.0 and nginx fill them.

use warifu_model::Tls;

use crate::error::TraceError;
use crate::tls::messages::{
    CIPHER_SUITE, HANDSHAKE_HEADER, RANDOM, SESSION_ID, SIGNATURE_SCHEME, VERSION,
    certificate_authorities, chain_bytes, client_hello as common_hello, extension, public_key,
    signed, vector,
};
use crate::tls::session::Ticket;
use crate::trace::Bytes;

/// Signature schemes of OpenSSL's default list at security level 2: all of `tls12_sigalgs`
/// (ssl/t1_lib.c, OpenSSL 3.0) that are neither SHA-1 nor GOST.
const SCHEMES: u32 = 20;
/// rsa_sign, dss_sign and ecdsa_sign (RFC 5246 section 7.4.4, RFC 8422 section 5.5).
const CERTIFICATE_TYPES: u32 = 3;
/// verify_data (RFC 5246 section 7.4.9).
const VERIFY_DATA: u32 = 12;

/// ClientHello (section 7.4.1.2). With a ticket, a made-up session identifier tells the client
/// by its echo that the ticket was taken (RFC 5077 section 3.4).
pub(crate) fn client_hello(tls: &Tls, ticket: Option<&Ticket>) -> Bytes {
    let session_id = if ticket.is_some() { SESSION_ID } else { 0 };
    let ticket = ticket.map_or(Bytes::default(), |ticket| ticket.bytes);
    common_hello(tls, session_id, SCHEMES, ticket, Bytes::default())
}

/// ServerHello (section 7.4.1.3).
pub(crate) fn server_hello(tls: &Tls, resumed: bool) -> Bytes {
    // renegotiation_info with nothing to confirm (RFC 5746 section 3.6), and
    // extended_master_secret (RFC 7627 section 5.1).
    let always = extension(vector(1, 0)) + extension(0);
    let full = match resumed {
        true => 0,
        false => {
            // server_name acknowledged by nginx, but not on resumption (RFC 6066 section 3).
            let name = if tls.server_name.is_some() { extension(0) } else { 0 };
            // ec_point_formats (RFC 8422 section 5.2), which OpenSSL leaves out with ECDHE_PSK
            // (`tls_construct_stoc_ec_pt_formats`), and session_ticket: one will come.
            let formats = if tls.psk.is_none() { extension(vector(1, 3)) } else { 0 };
            name + formats + extension(0)
        }
    };
    let session_id = if resumed { SESSION_ID } else { 0 };
    let head = HANDSHAKE_HEADER + VERSION + RANDOM + vector(1, session_id) + CIPHER_SUITE + 1;
    Bytes::exactly(head + vector(2, always + full))
}

/// Certificate (section 7.4.2).
pub(crate) fn certificate(key: &'static str, chain: &[u16]) -> Result<Bytes, TraceError> {
    Ok(Bytes::exactly(HANDSHAKE_HEADER + vector(3, chain_bytes(key, chain, 3)?)))
}

/// ServerKeyExchange (RFC 8422 section 5.4): a named curve, the public key, and the signature.
/// With a key from outside: an empty hint, the same parameters, and no signature (RFC 5489
/// section 2).
pub(crate) fn server_key_exchange(tls: &Tls) -> Bytes {
    let parameters = 1 + 2 + vector(1, public_key(tls.group));
    if tls.psk.is_some() {
        return Bytes::exactly(HANDSHAKE_HEADER + vector(2, 0) + parameters);
    }
    signed(tls.certificate).plus(HANDSHAKE_HEADER + parameters)
}

/// CertificateRequest (section 7.4.4).
pub(crate) fn certificate_request() -> Bytes {
    let types = vector(1, CERTIFICATE_TYPES);
    let schemes = vector(2, SIGNATURE_SCHEME * SCHEMES);
    Bytes::exactly(HANDSHAKE_HEADER + types + schemes + certificate_authorities())
}

/// ServerHelloDone (section 7.4.5): empty.
pub(crate) const fn server_hello_done() -> Bytes {
    Bytes::exactly(HANDSHAKE_HEADER)
}

/// ClientKeyExchange (RFC 8422 section 5.7); before it the identity of a key from outside (RFC 4279
/// section 2, RFC 5489 section 2).
pub(crate) fn client_key_exchange(tls: &Tls) -> Bytes {
    let identity = tls.psk.map_or(0, |psk| vector(2, psk.identity_bytes.into()));
    let share = if tls.has_key_exchange() { vector(1, public_key(tls.group)) } else { 0 };
    Bytes::exactly(HANDSHAKE_HEADER + identity + share)
}

/// CertificateVerify (section 7.4.8).
pub(crate) fn certificate_verify(tls: &Tls) -> Bytes {
    signed(tls.certificate).plus(HANDSHAKE_HEADER)
}

/// Finished (section 7.4.9).
pub(crate) const fn finished() -> Bytes {
    Bytes::exactly(HANDSHAKE_HEADER + VERIFY_DATA)
}

/// NewSessionTicket (RFC 5077 section 3.3).
pub(crate) fn new_session_ticket(ticket: &Ticket) -> Bytes {
    ticket.bytes.plus(HANDSHAKE_HEADER + 4 + 2)
}
