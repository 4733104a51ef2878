// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The network between device and server.

use serde::{Deserialize, Deserializer, Serialize};

use crate::units::{BitsPerSecond, Nanos, Probability};

/// The network between device and server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Name of the file in `profiles/links/` that gave the values not set by the study.
    pub profile: String,
    /// Propagation delay there and back, without jitter; half of it each way.
    pub rtt: Nanos,
    /// Additional one-way delay as evenly spaced quantiles from 0 to 1 (the first is the
    /// minimum, the last the maximum), linearly interpolated between; empty for none.
    pub jitter: Vec<Nanos>,
    /// Whether a packet may not overtake an earlier one of its direction.
    pub keep_order: bool,
    /// Rate from device to server; `None` for unlimited.
    pub rate_up: Option<BitsPerSecond>,
    /// Rate from server to device; `None` for unlimited.
    pub rate_down: Option<BitsPerSecond>,
    /// How many packets each direction's queue holds before it drops the newest.
    pub queue_packets: u32,
    /// Largest IP packet, B.
    pub mtu: u16,
    /// Loss, the same law in each direction, independently.
    pub loss: Loss,
}

impl Link {
    /// The least [`mtu`](Link::mtu), in a study, a profile, a prediction and the lab alike: what
    /// every IPv4 host takes (RFC 791 section 3.1), and so TCP's default segment of 536 B (RFC 9293
    /// section 3.7.1). Below it Linux has limits of its own, which the simulated TCP leaves out:
    /// no path is taken to be narrower than 552 B (`net.ipv4.route.min_pmtu`), and no segment size
    /// below 256 B is announced (`net.ipv4.route.min_adv_mss`).
    pub const LEAST_MTU: u16 = 576;
}

/// A law of packet loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// No packet is lost.
    #[default]
    #[serde(deserialize_with = "no_settings")]
    None,
    /// Each packet is lost independently.
    Independent {
        /// Probability that a packet is lost.
        probability: Probability,
    },
    /// Two-state Markov chain stepped at each packet, begun in its stationary state (Gilbert 1960,
    /// Elliott 1963).
    GilbertElliott {
        /// Probability to enter the bad state, per packet.
        good_to_bad: Probability,
        /// Probability to leave the bad state, per packet.
        bad_to_good: Probability,
        /// Loss probability in the good state.
        loss_good: Probability,
        /// Loss probability in the bad state.
        loss_bad: Probability,
    },
}

/// Refuses keys beside the tag, which serde lets a unit variant ignore.
fn no_settings<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    Nothing::deserialize(from).map(|Nothing {}| ())
}
