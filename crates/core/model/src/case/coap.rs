// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CoAP as a protocol of a stack.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// CoAP over UDP (RFC 7252), without security.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Coap {
    /// Whether requests are confirmable.
    pub message_type: CoapMessageType,
    /// ACK_TIMEOUT: the least first timeout of a confirmable message.
    pub ack_timeout: Nanos,
    /// ACK_RANDOM_FACTOR in percent: the first timeout is uniform from ACK_TIMEOUT to that times
    /// this factor.
    pub ack_random_factor_percent: u16,
    /// MAX_RETRANSMIT: how often a confirmable message is sent again.
    pub max_retransmit: u8,
}

/// The type of a request (RFC 7252 section 4.2, 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum CoapMessageType {
    /// Confirmable: sent again until acknowledged.
    #[serde(rename = "CON")]
    Confirmable,
    /// Non-confirmable: sent once.
    #[serde(rename = "NON")]
    NonConfirmable,
}
