// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The settings of CoAP.

use crate::case::{Coap, CoapMessageType};
use crate::study::draft::Draft;
use crate::units::Nanos;

/// What the draft states of CoAP, else the defaults of RFC 7252 section 4.8.
pub(super) fn layer(draft: &Draft) -> Coap {
    Coap {
        message_type: draft.message_type.unwrap_or(CoapMessageType::Confirmable),
        ack_timeout: draft.ack_timeout.unwrap_or(Nanos::from_millis(2_000)),
        ack_random_factor_percent: draft.ack_random_factor_percent.unwrap_or(150),
        max_retransmit: draft.max_retransmit.unwrap_or(4),
    }
}
