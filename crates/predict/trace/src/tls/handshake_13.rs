// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS 1.3 (RFC 8446) as OpenSSL 3.0 and nginx go through it.

use warifu_model::HandshakeMessage as Hs;
use warifu_model::{Authentication, KeyShare, Mark, Role};

use crate::error::TraceError;
use crate::tls::Connection;
use crate::tls::messages_13 as messages;
use crate::tls::records::CHANGE_CIPHER_SPEC;
use crate::tls::records::Protection::{Aead, Plain};
use crate::tls::script::Script;
use crate::tls::session::Ticket;
use crate::tls::ticket;
use crate::trace::Bytes;

/// Tickets after a handshake with certificates (`SSL_CTX_set_num_tickets`, default), and after one
/// by a PSK, which to OpenSSL is a resumption wherever the PSK came from.
const TICKETS_FULL: usize = 2;
const TICKETS_BY_PSK: usize = 1;

/// Writes a whole connection; gives the tickets that it left.
pub(crate) fn connection(
    connection: &Connection,
    script: &mut Script,
) -> Result<Vec<Ticket>, TraceError> {
    let ticket = ticket::of(connection.tls)?;
    script.connect();
    client_hello(connection, script);
    // Early data is read after the server's flight has left (`SSL_read_early_data`).
    script.take_handshake(Role::Server);
    server_flight(connection, script)?;
    if connection.early_data() {
        script.deliver(Role::Server);
        // nginx answers early data at once (`ngx_ssl_recv_early`, `ngx_ssl_write_early`); its
        // answer follows its Finished.
        connection.application.response(script);
    }
    // Not the answer: it is read once the handshake is done.
    script.take_handshake(Role::Client);
    client_flight(connection, script)?;
    script.unbuffer(Role::Client);
    script.mark(Mark::HandshakeDone);
    if connection.early_data() {
        connection.application.receive_response(script);
    } else {
        connection.application.request(script);
        script.flush(Role::Client);
    }
    script.take_handshake(Role::Server);
    let tickets = new_session_tickets(connection, script, ticket);
    script.unbuffer(Role::Server);
    script.take_handshake(Role::Client);
    if !connection.early_data() {
        script.deliver(Role::Server);
        connection.application.response(script);
        connection.application.receive_response(script);
    }
    Ok(tickets)
}

fn client_hello(connection: &Connection, script: &mut Script) {
    let content = messages::client_hello(connection.tls, connection.resume);
    // A prepared ClientHello lies ready, early data with it.
    let prepared = connection.tls.key_share == KeyShare::Prepared;
    if prepared {
        script.put(Role::Client, Hs::ClientHello, content, Plain);
    } else {
        script.make(Role::Client, Hs::ClientHello, content, Plain);
    }
    if connection.early_data() {
        // Section D.4: before the first protected record. All leaves in one write: the
        // buffer is flushed by the end of SSL_write_early_data (ssl/ssl_lib.c).
        change_cipher_spec(script, Role::Client, !prepared);
        connection.application.early_request(script, !prepared);
    }
    script.flush(Role::Client);
}

fn server_flight(connection: &Connection, script: &mut Script) -> Result<(), TraceError> {
    let tls = connection.tls;
    let by_psk = connection.by_psk();
    script.make(Role::Server, Hs::ServerHello, messages::server_hello(tls, by_psk), Plain);
    change_cipher_spec(script, Role::Server, true);
    let extensions = messages::encrypted_extensions(tls, connection.early_data());
    script.make(Role::Server, Hs::EncryptedExtensions, extensions, Aead);
    if !by_psk {
        if tls.authentication == Authentication::Mutual {
            let request = messages::certificate_request();
            script.make(Role::Server, Hs::CertificateRequest, request, Aead);
        }
        let key = "stack.server_certificate_bytes";
        let chain = messages::certificate(key, &tls.server_certificate_bytes)?;
        script.make(Role::Server, Hs::Certificate, chain, Aead);
        script.sign_server();
        let verify = messages::certificate_verify(tls);
        script.make(Role::Server, Hs::CertificateVerify, verify, Aead);
    }
    script.make(Role::Server, Hs::Finished, messages::finished(tls), Aead);
    script.flush(Role::Server);
    Ok(())
}

fn client_flight(connection: &Connection, script: &mut Script) -> Result<(), TraceError> {
    let tls = connection.tls;
    if connection.early_data() {
        let end = messages::end_of_early_data();
        script.make(Role::Client, Hs::EndOfEarlyData, end, Aead);
    } else {
        change_cipher_spec(script, Role::Client, true);
    }
    if !connection.by_psk() && tls.authentication == Authentication::Mutual {
        let key = "stack.client_certificate_bytes";
        let chain = messages::certificate(key, &tls.client_certificate_bytes)?;
        script.make(Role::Client, Hs::Certificate, chain, Aead);
        script.sign_client(connection.key_store_session_open);
        let verify = messages::certificate_verify(tls);
        script.make(Role::Client, Hs::CertificateVerify, verify, Aead);
    }
    script.make(Role::Client, Hs::Finished, messages::finished(tls), Aead);
    script.flush(Role::Client);
    Ok(())
}

/// Each ticket is a write of its own: `ossl_statem_server_post_work` flushes after it
/// (ssl/statem/statem_srvr.c).
fn new_session_tickets(
    connection: &Connection,
    script: &mut Script,
    ticket: Ticket,
) -> Vec<Ticket> {
    let count = if connection.by_psk() { TICKETS_BY_PSK } else { TICKETS_FULL };
    for _ in 0..count {
        let content = messages::new_session_ticket(&ticket);
        script.make(Role::Server, Hs::NewSessionTicket, content, Aead);
        script.flush(Role::Server);
    }
    vec![ticket; count]
}

/// Middlebox compatibility (section D.4), on by default in OpenSSL.
fn change_cipher_spec(script: &mut Script, from: Role, made: bool) {
    let content = Bytes::exactly(CHANGE_CIPHER_SPEC);
    if made {
        script.make(from, Hs::ChangeCipherSpec, content, Plain);
    } else {
        script.put(from, Hs::ChangeCipherSpec, content, Plain);
    }
}
