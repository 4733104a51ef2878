// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CoAP over UDP (RFC 7252): one GET and its response, as a client on libcoap 4.3 and libcoap's
//! coap-server go through it. The response is piggybacked on the acknowledgement.

mod message;

use warifu_model::{
    Coap, CoapMessage, CoapMessageType, Direction, Mark, Nanos, Operation, Pattern, Role,
    SystemCall,
};

use crate::error::TraceError;
use crate::scenario::Scenario;
use crate::trace::{
    Bytes, Carrier, Channel, ChannelId, Message, MessageId, Party, Program, Resource, Step, Trace,
};

/// The token that libcoap gives its requests: eight bytes of a counter that begins at random
/// (`coap_session_new_token`, libcoap 4.3).
const TOKEN: u32 = 8;
/// A larger body is transferred block-wise (RFC 7959), which is not emulated.
const LARGEST_BODY: u32 = 1_024;
/// NON_LIFETIME (RFC 7252 section 4.8.2): after it nothing of an exchange is on its way any more.
const NON_LIFETIME: Nanos = Nanos::from_millis(145_000);

const CHANNEL: ChannelId = ChannelId(0);
const REQUEST: MessageId = MessageId(0);
const RESPONSE: MessageId = MessageId(1);

/// One request and its response.
pub(crate) fn scenario(coap: &Coap, pattern: &Pattern) -> Result<Scenario, TraceError> {
    Ok(Scenario::of_one(Vec::new(), exchange(coap, pattern)?))
}

/// One request and its response.
///
/// # Errors
/// The body does not fit one message.
pub fn exchange(coap: &Coap, pattern: &Pattern) -> Result<Trace, TraceError> {
    if pattern.response_body > LARGEST_BODY {
        return Err(TraceError::new(
            "pattern.response_body",
            format!(
                "is {} B: expected at most {LARGEST_BODY} B, what a CoAP message carries without \
                 block-wise transfer",
                pattern.response_body
            ),
        ));
    }
    let request = message::bytes(TOKEN, &message::uri_options(&pattern.path), 0);
    let response = message::bytes(TOKEN, RESPONSE_OPTIONS, pattern.response_body);
    let carrier = match coap.message_type {
        CoapMessageType::Confirmable => Carrier::CoapConfirmable(coap.clone()),
        CoapMessageType::NonConfirmable => Carrier::Udp,
    };
    let message = |from, label: String, bytes, content| Message {
        from,
        channel: CHANNEL,
        label,
        bytes: Bytes::exactly(bytes),
        overhead: bytes - content,
    };
    Ok(Trace {
        channels: vec![Channel { carrier, ends: [Party::CLIENT, Party::SERVER] }],
        messages: vec![
            message(Party::CLIENT, format!("GET {}", pattern.path), request, 0),
            message(Party::SERVER, "2.05 Content".into(), response, pattern.response_body),
        ],
        programs: vec![
            Program { party: Party::CLIENT, steps: client(coap, request, response) },
            Program { party: Party::SERVER, steps: server(request, response) },
        ],
    })
}

/// Content-Format of text/plain, whose value 0 has no bytes (RFC 7252 section 12.3, 3.2).
const RESPONSE_OPTIONS: &[(u16, u32)] = &[(message::CONTENT_FORMAT, 0)];

fn client(coap: &Coap, request: u32, response: u32) -> Vec<Step> {
    let compute =
        |operation, bytes| Step::Compute { operation, bytes, resource: Resource::ClientLoop };
    let coap_message = |direction, message| Operation::Coap(Role::Client, direction, message);
    let mut steps = vec![Step::Mark(Mark::Start)];
    if coap.message_type == CoapMessageType::NonConfirmable {
        // Nobody repeats what is lost.
        steps.push(Step::Deadline { duration: NON_LIFETIME });
    }
    steps.extend([
        compute(coap_message(Direction::Send, CoapMessage::Request), request),
        compute(Operation::System(Role::Client, SystemCall::Write), request),
        Step::Send { first: REQUEST, count: 1, channel: CHANNEL },
        Step::Receive { message: RESPONSE },
        compute(coap_message(Direction::Receive, CoapMessage::Response), response),
        Step::Mark(Mark::FirstResponse),
    ]);
    steps
}

fn server(request: u32, response: u32) -> Vec<Step> {
    let compute =
        |operation, bytes| Step::Compute { operation, bytes, resource: Resource::ServerWorker };
    let coap_message = |direction, message| Operation::Coap(Role::Server, direction, message);
    vec![
        Step::Receive { message: REQUEST },
        compute(coap_message(Direction::Receive, CoapMessage::Request), request),
        compute(coap_message(Direction::Send, CoapMessage::Response), response),
        compute(Operation::System(Role::Server, SystemCall::Write), response),
        Step::Send { first: RESPONSE, count: 1, channel: CHANNEL },
    ]
}
