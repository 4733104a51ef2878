// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS 1.2 and 1.3 over a byte stream, as OpenSSL 3.0 goes through them.

mod der;
mod handshake_12;
mod handshake_13;
mod messages;
mod messages_12;
mod messages_13;
pub(crate) mod records;
pub(crate) mod script;
mod session;
mod ticket;

use warifu_model::{Authentication, CipherSuite, KeyShare, Keyword, Session, Tls, TlsVersion};

pub use session::{SessionState, Ticket};
pub(crate) use ticket::MAX_EARLY_DATA;

use crate::error::TraceError;
use script::Script;

/// What a TLS connection carries: an application says what it sends, and TLS when.
pub(crate) trait Application {
    /// The client makes its request.
    fn request(&self, script: &mut Script);

    /// The client makes its request as early data; `made` now or beforehand.
    fn early_request(&self, script: &mut Script, made: bool);

    /// The server works on the request and answers.
    fn response(&self, script: &mut Script);

    /// The client reads the response.
    fn receive_response(&self, script: &mut Script);
}

/// What the emulation of one connection needs to know.
pub(crate) struct Connection<'a> {
    pub(crate) tls: &'a Tls,
    pub(crate) key_store_session_open: bool,
    /// The ticket that is offered and taken.
    pub(crate) resume: Option<&'a Ticket>,
    pub(crate) application: &'a dyn Application,
}

impl Connection<'_> {
    /// Whether the request travels as early data.
    pub(crate) fn early_data(&self) -> bool {
        self.resume.is_some() && self.tls.session == Session::EarlyData
    }

    /// Whether both ends prove to have a PSK: that of a ticket, or one from outside.
    pub(crate) fn by_psk(&self) -> bool {
        self.resume.is_some() || self.tls.psk.is_some()
    }

    /// Writes the whole connection; gives the tickets that it left.
    pub(crate) fn write(&self, script: &mut Script) -> Result<Vec<Ticket>, TraceError> {
        match self.tls.version {
            TlsVersion::Tls12 => handshake_12::connection(self, script),
            TlsVersion::Tls13 => handshake_13::connection(self, script),
        }
    }
}

/// The youngest ticket of `state` that the layer's session can resume by.
///
/// # Errors
/// There is none.
pub(crate) fn ticket_for<'a>(tls: &Tls, state: &'a SessionState) -> Result<&'a Ticket, TraceError> {
    let early = tls.session == Session::EarlyData;
    let fits = |ticket: &&Ticket| {
        ticket.tls == tls.version
            && ticket.cipher_suite == tls.cipher_suite
            && (!early || ticket.max_early_data > 0)
    };
    state.tickets.iter().rev().find(fits).ok_or_else(|| {
        TraceError::new(
            "stack.session",
            format!(
                "is {}, but there is no ticket for it: make a full connection of the same \
                 stack before",
                tls.session.name()
            ),
        )
    })
}

/// Refuses choices that do not go together.
pub(crate) fn check(tls: &Tls) -> Result<(), TraceError> {
    let refuse = |key, message: String| Err(TraceError::new(key, message));
    if !tls.session.fits(tls.version) {
        let ways = match tls.version {
            TlsVersion::Tls12 => "ticket",
            TlsVersion::Tls13 => "psk_dhe_ke, psk_ke or 0-rtt",
        };
        let (session, version) = (tls.session.name(), tls.version.name());
        return refuse("stack.session", format!("is {session}: TLS {version} resumes by {ways}"));
    }
    let psk = tls.authentication == Authentication::Psk;
    if psk != tls.psk.is_some() || (psk && tls.session != Session::Full) {
        return refuse(
            "stack.authentication",
            format!(
                "is {}: a key from outside goes with it, and with a full session, and with no \
                 other",
                tls.authentication.name()
            ),
        );
    }
    let aead = tls.cipher_suite.aead();
    let fitting = CipherSuite::of_choices(tls.version, tls.certificate, tls.psk, aead);
    if fitting != Some(tls.cipher_suite) {
        let expected =
            fitting.map_or(String::new(), |suite| format!(": expected {}", suite.name()));
        return refuse(
            "stack.cipher_suite",
            format!(
                "is {}, which TLS {} with {} lacks{expected}",
                tls.cipher_suite.name(),
                tls.version.name(),
                match psk {
                    true => "a key from outside".into(),
                    false => format!("certificate {}", tls.certificate.name()),
                },
            ),
        );
    }
    if tls.version == TlsVersion::Tls12 && tls.key_share == KeyShare::Prepared {
        return refuse(
            "stack.key_share",
            "is prepared: a TLS 1.2 ClientHello has no key share; use fresh".into(),
        );
    }
    if let Some(name) = &tls.server_name
        && !(1..=255).contains(&name.len())
    {
        return refuse(
            "stack.server_name",
            format!("has {} bytes: expected a host name of 1 to 255", name.len()),
        );
    }
    if psk {
        return Ok(());
    }
    check_chain(tls, "stack.server_certificate_bytes", &tls.server_certificate_bytes)?;
    if tls.authentication == Authentication::Mutual {
        check_chain(tls, "stack.client_certificate_bytes", &tls.client_certificate_bytes)?;
    }
    Ok(())
}

fn check_chain(tls: &Tls, key: &'static str, chain: &[u16]) -> Result<(), TraceError> {
    if !(1..=3).contains(&tls.chain_length) {
        return Err(TraceError::new(
            "stack.chain_length",
            format!("is {}: expected 1, 2 or 3", tls.chain_length),
        ));
    }
    if chain.len() != usize::from(tls.chain_length) {
        return Err(TraceError::new(
            key,
            format!(
                "has {} sizes: expected stack.chain_length of them, {}",
                chain.len(),
                tls.chain_length
            ),
        ));
    }
    Ok(())
}
