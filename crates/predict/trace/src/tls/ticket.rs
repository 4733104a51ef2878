// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The length of a session ticket: OpenSSL's SSL_SESSION, encrypted.

use warifu_model::{Authentication, Session, Tls, TlsVersion};

use crate::error::TraceError;
use crate::tls::der;
use crate::tls::messages::hash;
use crate::tls::session::Ticket;
use crate::trace::Bytes;

/// What the server accepts as early data: nginx's NGX_SSL_BUFSIZE.
pub(crate) const MAX_EARLY_DATA: u32 = 16_384;
/// Seconds for which the lab's nginx keeps sessions: `ssl_session_timeout 1d`.
const SESSION_TIMEOUT: u64 = 86_400;
/// A Unix time between 2004 and 2038; all take the same number of bytes.
const SOME_TIME: u64 = 0x6000_0000;
/// nginx takes a SHA-1 digest as its session id context (`ngx_ssl_session_id_context`).
const SESSION_ID_CONTEXT: u32 = 20;
/// The name of the key, the AES-CBC initialisation vector, and the HMAC-SHA256 tag around
/// the ciphertext (RFC 5077 section 4; `construct_stateless_ticket`, ssl/statem/statem_srvr.c).
const ENVELOPE: u32 = 16 + 16 + 32;
/// An AES block: padding brings the session to whole blocks, and adds at least one byte.
const BLOCK: u32 = 16;
/// The longest session that `construct_stateless_ticket` takes.
const LONGEST_SESSION: u32 = 0xff00;

/// The ticket that a server gives at the end of a handshake of `stack`.
pub(crate) fn of(tls: &Tls) -> Result<Ticket, TraceError> {
    let early = tls.version == TlsVersion::Tls13 && tls.session == Session::EarlyData;
    let max_early_data = if early { MAX_EARLY_DATA } else { 0 };
    // ticket_age_add is uniform over 32 bits.
    let short = session(tls, max_early_data, 0x7fff_ffff);
    let long = session(tls, max_early_data, 0xffff_ffff);
    if long > LONGEST_SESSION {
        return Err(TraceError::new(
            "stack.client_certificate_bytes",
            format!("make a session of {long} B: a ticket takes {LONGEST_SESSION} B at most"),
        ));
    }
    let padded = |session: u32| (session / BLOCK + 1) * BLOCK;
    let bytes = Bytes {
        uncertain_tickets: u8::from(padded(short) != padded(long)),
        ..Bytes::exactly(ENVELOPE + padded(short))
    };
    Ok(Ticket { tls: tls.version, cipher_suite: tls.cipher_suite, bytes, max_early_data })
}

/// Length of the DER of SSL_SESSION: the fields of `SSL_SESSION_ASN1` (ssl/ssl_asn1.c,
/// OpenSSL 3.0) that a server fills, in their order.
fn session(tls: &Tls, max_early_data: u32, ticket_age_add: u64) -> u32 {
    let tls13 = tls.version == TlsVersion::Tls13;
    let tagged = der::element;
    let mut fields = vec![
        der::integer(1),
        // The version, 0x0303 or 0x0304, and the suite's two bytes.
        der::integer(0x0303),
        der::element(2),
        // The session's identifier: TLS 1.2 has none where there is a ticket.
        der::element(if tls13 { 32 } else { 0 }),
        // TLS 1.2's master secret (RFC 5246 section 8.1), TLS 1.3's PSK.
        der::element(if tls13 { hash(tls.cipher_suite.aead()) } else { 48 }),
        tagged(der::integer(SOME_TIME)),
        tagged(der::integer(SESSION_TIMEOUT)),
        tagged(der::element(SESSION_ID_CONTEXT)),
    ];
    if tls.authentication == Authentication::Mutual {
        // The client's leaf alone, tagged anew; the chain is not kept.
        let leaf = tls.client_certificate_bytes.first().copied().unwrap_or_default();
        fields.push(tagged(u32::from(leaf)));
    }
    // A session by a key from outside takes up none (`tls_construct_stoc_server_name`).
    if let Some(name) = tls.server_name.as_ref().filter(|_| !tls13 || tls.psk.is_none()) {
        fields.push(tagged(der::element(name.len() as u32)));
    }
    if let (Some(psk), false) = (tls.psk, tls13) {
        // The identity that the client named.
        fields.push(tagged(der::element(psk.identity_bytes.into())));
    }
    if tls13 {
        fields.push(tagged(der::integer(ticket_age_add)));
    } else {
        // Flags: extended master secret.
        fields.push(tagged(der::integer(1)));
    }
    if max_early_data > 0 {
        fields.push(tagged(der::integer(u64::from(max_early_data))));
    }
    // The group's number, one byte for both (IANA 23 and 29).
    fields.push(tagged(der::integer(29)));
    der::element(fields.iter().sum())
}
