// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A scenario: the connections of a case, one after the other.

use warifu_model::{Case, Nanos, Stack};

use crate::error::TraceError;
use crate::tls::SessionState;
use crate::trace::Trace;
use crate::{coap, https};

/// What a device does in a case, without time: traces one after the other, the state of their
/// sessions handed on from each to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Connections that must have been made before, in their order; they are not measured.
    pub preparation: Vec<Trace>,
    /// What the case is about, one episode or more.
    pub episodes: Vec<Episode>,
}

/// One trace of a scenario, and when it happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// What happens.
    pub trace: Trace,
    /// How long the device waits before it, counted from the end of its program of the episode
    /// before, or from the beginning of the scenario.
    pub gap: Nanos,
    /// Counted from the episode's beginning; the episode counts as failed if its last mark is
    /// reached later or never.
    pub deadline: Option<Nanos>,
}

impl Scenario {
    /// One measured connection after those of its preparation.
    pub fn of_one(preparation: Vec<Trace>, measured: Trace) -> Scenario {
        let episode = Episode { trace: measured, gap: Nanos::ZERO, deadline: None };
        Scenario { preparation, episodes: vec![episode] }
    }
}

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
    }
}
