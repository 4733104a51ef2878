// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The settings of CoAP.

use crate::case::{Coap, CoapMessageType};
use crate::study::draft::Draft;
use crate::units::Nanos;

/// What the draft states of CoAP, else the defaults of RFC 7252 section 4.8. What is said of
/// retransmissions is for confirmable messages: others differ in nothing by it.
pub(super) fn layer(draft: &Draft) -> Coap {
    let defaults = Coap {
        message_type: draft.message_type.unwrap_or(CoapMessageType::Confirmable),
        ack_timeout: Nanos::from_millis(2_000),
        ack_random_factor_percent: 150,
        max_retransmit: 4,
    };
    if defaults.message_type == CoapMessageType::NonConfirmable {
        return defaults;
    }
    Coap {
        ack_timeout: draft.ack_timeout.unwrap_or(defaults.ack_timeout),
        ack_random_factor_percent: draft
            .ack_random_factor_percent
            .unwrap_or(defaults.ack_random_factor_percent),
        max_retransmit: draft.max_retransmit.unwrap_or(defaults.max_retransmit),
        ..defaults
    }
}
