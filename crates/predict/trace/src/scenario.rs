// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A scenario: the connections of a case, one after the other.

use warifu_model::Nanos;

use crate::trace::Trace;

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
