// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From a case to its scenario, and from a stack and a session state to a trace.

use warifu_model::{
    Authentication, Case, CipherSuite, KeyShare, Keyword, Pattern, Role, Session, Stack, TlsVersion,
};

use crate::error::TraceError;
use crate::http;
use crate::records::FRAGMENT;
use crate::script::Script;
use crate::session::{SessionState, Ticket};
use crate::ticket::MAX_EARLY_DATA;
use crate::trace::{Mark, Trace};
use crate::{tls12, tls13};

/// All connections of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Connections that must have been made before, in their order; they are not measured.
    pub preparation: Vec<Trace>,
    /// The connection that the case is about.
    pub measured: Trace,
}

/// What happens in a case: for a resumed session first the full handshake that yields the
/// ticket, then the connection itself.
pub fn scenario(case: &Case) -> Result<Scenario, TraceError> {
    let mut state = SessionState {
        key_store_session_open: case.key_store.session_open,
        ..SessionState::default()
    };
    let mut preparation = Vec::new();
    if case.stack.session.is_resumed() {
        let (trace, after) = emulate_first(&case.stack, &case.pattern, &state)?;
        preparation.push(trace);
        state = after;
    }
    let (measured, _) = emulate(&case.stack, &case.pattern, &state)?;
    Ok(Scenario { preparation, measured })
}

/// One connection as the stack says, and what it leaves behind. A stack that resumes needs a
/// ticket in `state`.
pub fn emulate(
    stack: &Stack,
    pattern: &Pattern,
    state: &SessionState,
) -> Result<(Trace, SessionState), TraceError> {
    check(stack)?;
    if !stack.session.is_resumed() {
        return connection(stack, pattern, state, None);
    }
    let early = stack.session == Session::EarlyData;
    let fits = |ticket: &&Ticket| {
        ticket.tls == stack.tls
            && ticket.cipher_suite == stack.cipher_suite
            && (!early || ticket.max_early_data > 0)
    };
    let Some(ticket) = state.tickets.iter().rev().find(fits) else {
        return Err(TraceError::new(
            "stack.session",
            format!(
                "is {}, but there is no ticket for it: make a full connection of the same \
                 stack before",
                stack.session.name()
            ),
        ));
    };
    connection(stack, pattern, state, Some(*ticket))
}

/// The first connection of a client and a server that are set up for `stack`: nothing can be
/// resumed yet, so the handshake is full whatever `stack.session` says.
pub fn emulate_first(
    stack: &Stack,
    pattern: &Pattern,
    state: &SessionState,
) -> Result<(Trace, SessionState), TraceError> {
    check(stack)?;
    connection(stack, pattern, state, None)
}

/// What the emulation of one connection needs to know.
pub(crate) struct Connection<'a> {
    pub(crate) stack: &'a Stack,
    pub(crate) pattern: &'a Pattern,
    pub(crate) key_store_session_open: bool,
    /// The ticket that is offered and taken.
    pub(crate) resume: Option<&'a Ticket>,
    pub(crate) request_bytes: u32,
    pub(crate) response_bytes: u32,
}

impl Connection<'_> {
    /// Whether the request travels as early data.
    pub(crate) fn early_data(&self) -> bool {
        self.resume.is_some() && self.stack.session == Session::EarlyData
    }

    /// The client makes the request.
    pub(crate) fn request(&self, script: &mut Script) {
        let label = format!("[GET {}]", self.pattern.path);
        script.application(Role::Client, self.request_bytes, &label, true);
    }

    /// The server makes the response: nginx fills records (`ssl_buffer_size 16k`, its default)
    /// with head and body together, and writes each by itself (`ngx_ssl_send_chain`).
    pub(crate) fn response(&self, script: &mut Script) {
        let mut rest = self.response_bytes;
        while rest > 0 {
            let content = rest.min(FRAGMENT);
            let label = if rest == self.response_bytes { "[200 OK]" } else { "[body]" };
            script.application(Role::Server, content, label, true);
            script.flush(Role::Server);
            rest -= content;
        }
        // nginx closes at once when it was asked to (`ngx_http_close_connection`). That is more than
        // an end: what follows the response tells TCP of its loss long before a timer does.
        if http::closes(self.stack) {
            script.close(Role::Server);
        }
    }

    /// The client reads the response.
    pub(crate) fn receive_response(&self, script: &mut Script) {
        script.take(Role::Client, 1);
        script.mark(Mark::FirstResponse);
        script.deliver(Role::Client);
        script.take_close(Role::Client);
    }
}

fn connection(
    stack: &Stack,
    pattern: &Pattern,
    state: &SessionState,
    resume: Option<Ticket>,
) -> Result<(Trace, SessionState), TraceError> {
    let connection = Connection {
        stack,
        pattern,
        key_store_session_open: state.key_store_session_open,
        resume: resume.as_ref(),
        request_bytes: http::request_bytes(stack, pattern)?,
        response_bytes: http::response_bytes(stack, pattern)?,
    };
    if stack.session == Session::EarlyData && connection.request_bytes > MAX_EARLY_DATA {
        return Err(TraceError::new(
            "pattern.path",
            format!(
                "makes a request of {} B: nginx takes {MAX_EARLY_DATA} B of early data",
                connection.request_bytes
            ),
        ));
    }
    let mut script = Script::new(stack);
    let tickets = match stack.tls {
        TlsVersion::Tls12 => tls12::connection(&connection, &mut script)?,
        TlsVersion::Tls13 => tls13::connection(&connection, &mut script)?,
    };
    let mut after = state.clone();
    after.tickets.extend(tickets);
    Ok((script.finish(), after))
}

/// Refuses choices that do not go together.
fn check(stack: &Stack) -> Result<(), TraceError> {
    let refuse = |key, message: String| Err(TraceError::new(key, message));
    if !stack.session.fits(stack.tls) {
        let (name, version) = (stack.session.name(), stack.tls.name());
        let ways = Session::ways_of_resumption(stack.tls);
        return refuse("stack.session", format!("is {name}: TLS {version} resumes by {ways}"));
    }
    let aead = stack.cipher_suite.aead();
    let fitting = CipherSuite::of(stack.tls, stack.certificate, aead);
    if stack.cipher_suite != fitting {
        return refuse(
            "stack.cipher_suite",
            format!(
                "is {}, which TLS {} with certificate {} lacks: expected {}",
                stack.cipher_suite.name(),
                stack.tls.name(),
                stack.certificate.name(),
                fitting.name()
            ),
        );
    }
    if stack.tls == TlsVersion::Tls12 && stack.key_share == KeyShare::Prepared {
        return refuse(
            "stack.key_share",
            "is prepared: a TLS 1.2 ClientHello has no key share; use fresh".into(),
        );
    }
    if let Some(name) = &stack.server_name
        && !(1..=255).contains(&name.len())
    {
        return refuse(
            "stack.server_name",
            format!("has {} bytes: expected a host name of 1 to 255", name.len()),
        );
    }
    check_chain(stack, "stack.server_certificate_bytes", &stack.server_certificate_bytes)?;
    if stack.authentication == Authentication::Mutual {
        check_chain(stack, "stack.client_certificate_bytes", &stack.client_certificate_bytes)?;
    }
    Ok(())
}

fn check_chain(stack: &Stack, key: &'static str, chain: &[u16]) -> Result<(), TraceError> {
    if !(1..=3).contains(&stack.chain_length) {
        return Err(TraceError::new(
            "stack.chain_length",
            format!("is {}: expected 1, 2 or 3", stack.chain_length),
        ));
    }
    if chain.len() != usize::from(stack.chain_length) {
        return Err(TraceError::new(
            key,
            format!(
                "has {} sizes: expected stack.chain_length of them, {}",
                chain.len(),
                stack.chain_length
            ),
        ));
    }
    Ok(())
}
