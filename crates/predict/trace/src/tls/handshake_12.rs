// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS 1.2 (RFC 5246, RFC 8422) with session tickets (RFC 5077) as OpenSSL 3.0 and nginx go
//! through it.

use warifu_model::HandshakeMessage as Hs;
use warifu_model::{Authentication, Mark, Role};

use crate::error::TraceError;
use crate::tls::Connection;
use crate::tls::messages_12 as messages;
use crate::tls::records::CHANGE_CIPHER_SPEC;
use crate::tls::records::Protection::{Aead, Plain};
use crate::tls::script::Script;
use crate::tls::session::Ticket;
use crate::tls::ticket;
use crate::trace::Bytes;

/// Writes a whole connection; gives the tickets that it left.
pub(crate) fn connection(
    connection: &Connection,
    script: &mut Script,
) -> Result<Vec<Ticket>, TraceError> {
    script.connect();
    let hello = messages::client_hello(connection.tls, connection.resume);
    script.make(Role::Client, Hs::ClientHello, hello, Plain);
    script.flush(Role::Client);
    script.deliver(Role::Server);
    let tickets = match connection.resume {
        None => full(connection, script)?,
        Some(_) => resumed(connection, script),
    };
    script.mark(Mark::HandshakeDone);
    connection.application.request(script);
    script.flush(Role::Client);
    script.deliver(Role::Server);
    connection.application.response(script);
    connection.application.receive_response(script);
    Ok(tickets)
}

/// RFC 5077 section 3.1, figure 1, with client authentication where it is asked for.
fn full(connection: &Connection, script: &mut Script) -> Result<Vec<Ticket>, TraceError> {
    let tls = connection.tls;
    let mutual = tls.authentication == Authentication::Mutual;
    script.make(Role::Server, Hs::ServerHello, messages::server_hello(tls, false), Plain);
    if tls.psk.is_none() {
        let key = "stack.server_certificate_bytes";
        let chain = messages::certificate(key, &tls.server_certificate_bytes)?;
        script.make(Role::Server, Hs::Certificate, chain, Plain);
        script.sign_server();
    }
    // Of a key from outside alone it would hold a hint at the identity, which nginx does not give
    // (RFC 4279 section 2: the message is then left out).
    if tls.has_key_exchange() {
        let exchange = messages::server_key_exchange(tls);
        script.make(Role::Server, Hs::ServerKeyExchange, exchange, Plain);
    }
    if mutual {
        let request = messages::certificate_request();
        script.make(Role::Server, Hs::CertificateRequest, request, Plain);
    }
    script.make(Role::Server, Hs::ServerHelloDone, messages::server_hello_done(), Plain);
    script.flush(Role::Server);
    script.deliver(Role::Client);

    if mutual {
        let key = "stack.client_certificate_bytes";
        let chain = messages::certificate(key, &tls.client_certificate_bytes)?;
        script.make(Role::Client, Hs::Certificate, chain, Plain);
    }
    let exchange = messages::client_key_exchange(tls);
    script.make(Role::Client, Hs::ClientKeyExchange, exchange, Plain);
    if mutual {
        script.sign_client(connection.key_store_session_open);
        let verify = messages::certificate_verify(tls);
        script.make(Role::Client, Hs::CertificateVerify, verify, Plain);
    }
    finish(script, Role::Client);
    script.deliver(Role::Server);

    let ticket = ticket::of(tls)?;
    let content = messages::new_session_ticket(&ticket);
    script.make(Role::Server, Hs::NewSessionTicket, content, Plain);
    finish(script, Role::Server);
    script.deliver(Role::Client);
    script.unbuffer(Role::Client);
    script.unbuffer(Role::Server);
    Ok(vec![ticket])
}

/// RFC 5077 section 3.1, figure 2 without a new ticket: OpenSSL renews none by itself.
fn resumed(connection: &Connection, script: &mut Script) -> Vec<Ticket> {
    let hello = messages::server_hello(connection.tls, true);
    script.make(Role::Server, Hs::ServerHello, hello, Plain);
    finish(script, Role::Server);
    script.deliver(Role::Client);
    finish(script, Role::Client);
    script.unbuffer(Role::Client);
    script.unbuffer(Role::Server);
    Vec::new()
}

/// ChangeCipherSpec and Finished, which end a flight.
fn finish(script: &mut Script, from: Role) {
    let change = Bytes::exactly(CHANGE_CIPHER_SPEC);
    script.make(from, Hs::ChangeCipherSpec, change, Plain);
    script.make(from, Hs::Finished, messages::finished(), Aead);
    script.flush(from);
}
