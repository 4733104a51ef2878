// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Transports as a layer of a stack.

use serde::{Deserialize, Serialize};

/// TCP, each end with the implementation that it runs: a board may run lwIP where its server runs
/// Linux.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    /// Name of the transport profile of the device's TCP, for example `linux-6.18`.
    pub device: String,
    /// Name of the transport profile of the server's TCP.
    pub server: String,
    /// Congestion control of both ends.
    pub congestion_control: CongestionControl,
    /// Initial congestion window of both ends, segments.
    pub initcwnd: u8,
    /// Whether Nagle's algorithm is on (no TCP_NODELAY) on both ends.
    pub nagle: bool,
}

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CongestionControl {
    /// RFC 9438, as Linux has it.
    Cubic,
    /// RFC 5681 with RFC 6582.
    Reno,
}
