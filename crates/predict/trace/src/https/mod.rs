// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HTTPS: HTTP/1.1 over TLS over TCP, as a client on OpenSSL and nginx 1.22 go through it.

mod http;

use warifu_model::{Https, Mark, Pattern, Role, Session, Tls};

use crate::error::TraceError;
use crate::scenario::Scenario;
use crate::tls::records::FRAGMENT;
use crate::tls::script::Script;
use crate::tls::{self, Application, Connection, MAX_EARLY_DATA, SessionState, Ticket};
use crate::trace::Trace;

pub use http::{DEFAULT_HOST, request_text, response_head};

/// All connections of a case: for a resumed session first the full handshake that yields the
/// ticket, then the connection itself.
pub(crate) fn scenario(
    https: &Https,
    pattern: &Pattern,
    state: SessionState,
) -> Result<Scenario, TraceError> {
    let mut state = state;
    let mut preparation = Vec::new();
    if https.tls.session != Session::Full {
        let (trace, after) = emulate_first(https, pattern, &state)?;
        preparation.push(trace);
        state = after;
    }
    let (measured, _) = emulate(https, pattern, &state)?;
    Ok(Scenario::of_one(preparation, measured))
}

/// One connection as the stack says, and what it leaves behind. A stack that resumes needs a
/// ticket in `state`.
///
/// # Errors
/// Choices that do not go together, or that the real programs refuse.
pub fn emulate(
    https: &Https,
    pattern: &Pattern,
    state: &SessionState,
) -> Result<(Trace, SessionState), TraceError> {
    tls::check(&https.tls)?;
    if https.tls.session == Session::Full {
        return connection(https, pattern, state, None);
    }
    let ticket = tls::ticket_for(&https.tls, state)?;
    connection(https, pattern, state, Some(ticket))
}

/// The first connection of a client and a server that are set up for a stack: nothing can be
/// resumed yet, so the handshake is full whatever `stack.session` says.
///
/// # Errors
/// As [`emulate`].
pub fn emulate_first(
    https: &Https,
    pattern: &Pattern,
    state: &SessionState,
) -> Result<(Trace, SessionState), TraceError> {
    tls::check(&https.tls)?;
    connection(https, pattern, state, None)
}

/// One request and its answer.
struct Exchange<'a> {
    tls: &'a Tls,
    pattern: &'a Pattern,
    request_bytes: u32,
    response_bytes: u32,
}

impl Application for Exchange<'_> {
    /// Head and body are one call; OpenSSL makes full records of it and writes each by itself
    /// (`ssl3_write_bytes`, ssl/record/rec_layer_s3.c).
    fn request(&self, script: &mut Script) {
        let first = format!("[{} {}]", http::method(self.pattern), self.pattern.path);
        records(script, Role::Client, self.request_bytes, &first);
    }

    fn early_request(&self, script: &mut Script, made: bool) {
        let label = format!("(GET {})", self.pattern.path);
        script.application(Role::Client, self.request_bytes, &label, made);
    }

    /// nginx fills records (`ssl_buffer_size 16k`, its default) with head and body together, and
    /// writes each by itself (`ngx_ssl_send_chain`).
    fn response(&self, script: &mut Script) {
        if self.pattern.request_body > 0 {
            script.take_request_body(self.pattern.request_body);
        }
        script.respond(self.pattern.response_body);
        records(script, Role::Server, self.response_bytes, "[200 OK]");
        // nginx closes at once when it was asked to (`ngx_http_close_connection`). That is more
        // than an end: what follows the response tells TCP of its loss long before a timer does.
        if http::closes(self.tls) {
            script.close(Role::Server);
        }
    }

    fn receive_response(&self, script: &mut Script) {
        script.take(Role::Client, 1);
        script.mark(Mark::FirstResponse);
        script.deliver(Role::Client);
        if self.pattern.has_response_done() {
            script.mark(Mark::ResponseDone);
        }
        script.take_close(Role::Client);
    }
}

/// Makes and writes full records, and the rest.
fn records(script: &mut Script, from: Role, bytes: u32, first: &str) {
    let mut rest = bytes;
    while rest > 0 {
        let content = rest.min(FRAGMENT);
        let label = if rest == bytes { first } else { "[body]" };
        script.application(from, content, label, true);
        script.flush(from);
        rest -= content;
    }
}

fn connection(
    https: &Https,
    pattern: &Pattern,
    state: &SessionState,
    resume: Option<&Ticket>,
) -> Result<(Trace, SessionState), TraceError> {
    let Https { tls, tcp } = https;
    let exchange = Exchange {
        tls,
        pattern,
        request_bytes: http::request_bytes(tls, pattern)?,
        response_bytes: http::response_bytes(tls, pattern)?,
    };
    if tls.session == Session::EarlyData && pattern.request_body > 0 {
        return Err(TraceError::new(
            "pattern.request_body",
            "makes a POST: it may be replayed as early data (RFC 8470 section 2.1); choose another \
             stack.session",
        ));
    }
    if tls.session == Session::EarlyData && exchange.request_bytes > MAX_EARLY_DATA {
        return Err(TraceError::new(
            "pattern.path",
            format!(
                "makes a request of {} B: nginx takes {MAX_EARLY_DATA} B of early data",
                exchange.request_bytes
            ),
        ));
    }
    let connection = Connection {
        tls,
        key_store_session_open: state.key_store_session_open,
        resume,
        application: &exchange,
    };
    let mut script = Script::new(tls);
    let tickets = connection.write(&mut script)?;
    let mut after = state.clone();
    after.tickets.extend(tickets);
    Ok((script.finish(tcp), after))
}
