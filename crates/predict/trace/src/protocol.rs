// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which module emulates the protocol of a case.

use warifu_model::{Case, Protocol, Stack};

use crate::error::TraceError;
use crate::scenario::Scenario;
use crate::tls::SessionState;
use crate::{coap, dds, https};

/// What happens in a case.
///
/// # Errors
/// Choices that do not go together, or that the real programs refuse.
pub fn scenario(case: &Case) -> Result<Scenario, TraceError> {
    let state = SessionState {
        key_store_session_open: case.key_store.session_open,
        ..SessionState::default()
    };
    match &case.stack {
        Stack::Https(https) => https::scenario(https, &case.pattern, state),
        Stack::Coap(coap) => coap::scenario(coap, &case.pattern),
        Stack::Dds(dds) => dds::scenario(dds, &case.pattern),
    }
}

/// Why nothing is emulated for a case that the lab runs all the same; `None` where it is, or where
/// [`scenario`] refuses it for a mistake of its own.
pub fn why_not_emulated(case: &Case) -> Option<TraceError> {
    match &case.stack {
        Stack::Dds(dds) => dds::why_not_emulated(dds, &case.pattern),
        Stack::Https(_) | Stack::Coap(_) => None,
    }
}

/// The words of a protocol for what it sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framing {
    /// What is added to the content of a message.
    pub(crate) overhead: &'static str,
    /// What its messages are called.
    pub(crate) messages: &'static str,
}

pub(crate) fn framing(protocol: Protocol) -> Framing {
    match protocol {
        Protocol::Https => Framing { overhead: "record layer", messages: "records" },
        Protocol::Coap => Framing { overhead: "header", messages: "messages" },
        Protocol::Dds => Framing { overhead: "RTPS and security", messages: "datagrams" },
    }
}
