// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CoAP over UDP (RFC 7252): one GET or PUT and its response, as a client on libcoap and libcoap's
//! coap-server go through it (4.3.1). The response to a CON is piggybacked on the acknowledgement,
//! that to a NON is a NON; it has no option: coap-server leaves out the Content-Format of a body
//! that was PUT without one, and a client that uses the default port sends no Uri-Port, and for an
//! address no Uri-Host.

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

/// The token of the lab's client, and of libcoap's coap-client for its first request.
const TOKEN: u32 = 1;
/// The largest message that libcoap sends (COAP_DEFAULT_MTU, include/coap3/pdu.h of libcoap 4.3.1).
const LARGEST_MESSAGE: u32 = 1_152;
/// What libcoap's server leaves free beside a response's header when it decides on block-wise
/// transfer (RFC 7959): an Echo option of 40 B with its header, and the longest token
/// (`coap_add_data_large_internal`, src/block.c of libcoap 4.3.1). Block-wise transfer is not
/// emulated.
const RESERVED: u32 = 43 + 8;
const LARGEST_BODY: u32 = LARGEST_MESSAGE - 4 - RESERVED;
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
                "is {} B: expected at most {LARGEST_BODY} B, what libcoap sends in one message; \
                 block-wise transfer is not emulated",
                pattern.response_body
            ),
        ));
    }
    let upload = pattern.request_body;
    let options = message::uri_options(&pattern.path);
    let request = message::bytes(TOKEN, &options, upload);
    if upload > 0 && request > LARGEST_MESSAGE {
        // The marker before the body counts.
        let room = LARGEST_MESSAGE - message::bytes(TOKEN, &options, 0) - 1;
        return Err(TraceError::new(
            "pattern.request_body",
            format!(
                "is {upload} B: expected at most {room} B, what libcoap sends in one message to \
                 this path; block-wise transfer (RFC 7959) is not emulated"
            ),
        ));
    }
    if upload > 0 && pattern.response_body > 0 {
        return Err(TraceError::new(
            "pattern.response_body",
            format!(
                "is {} B: libcoap's coap-server answers a PUT without a body; set it to \"0 B\", \
                 or leave it out",
                pattern.response_body
            ),
        ));
    }
    let response = message::bytes(TOKEN, &[], pattern.response_body);
    let (carrier, sent, back) = match coap.message_type {
        CoapMessageType::Confirmable => (Carrier::CoapConfirmable(coap.clone()), "CON", "ACK"),
        CoapMessageType::NonConfirmable => (Carrier::Udp, "NON", "NON"),
    };
    let (method, code) = match upload {
        0 => ("GET", "2.05 Content"),
        _ => ("PUT", "2.04 Changed"),
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
            message(Party::CLIENT, format!("{sent} {method} {}", pattern.path), request, upload),
            message(Party::SERVER, format!("{back} {code}"), response, pattern.response_body),
        ],
        programs: vec![
            Program { party: Party::CLIENT, steps: client(coap, request, response) },
            Program { party: Party::SERVER, steps: server(request, response) },
        ],
    })
}

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

#[cfg(test)]
mod tests {
    use warifu_model::PatternKind;

    use super::*;

    fn lengths(path: &str, response_body: u32) -> Result<Vec<u32>, TraceError> {
        lengths_of_put(path, 0, response_body)
    }

    fn lengths_of_put(path: &str, upload: u32, response_body: u32) -> Result<Vec<u32>, TraceError> {
        let coap = Coap {
            message_type: CoapMessageType::Confirmable,
            ack_timeout: Nanos::from_millis(2_000),
            ack_random_factor_percent: 150,
            max_retransmit: 4,
        };
        let kind = PatternKind::Request;
        let request_body = upload;
        let pattern = Pattern {
            kind,
            path: path.into(),
            response_body,
            request_body,
            concurrent: 1,
            rate: None,
            pause: None,
        };
        let trace = exchange(&coap, &pattern)?;
        Ok(trace.messages.iter().map(|message| message.bytes.fixed).collect())
    }

    /// As the client counted them with libcoap's coap-server 4.3.1.
    #[test]
    fn lengths_of_libcoap() {
        assert_eq!(lengths("/data", 64).unwrap(), [5 + 5, 5 + 65]);
        assert_eq!(lengths("/data", 0).unwrap(), [5 + 5, 5]);
        assert_eq!(lengths("/a/thirteen-long", 1).unwrap(), [5 + 2 + 2 + 13, 5 + 2]);
    }

    #[test]
    fn lengths_of_an_upload() {
        assert_eq!(lengths_of_put("/data", 100, 0).unwrap(), [5 + 5 + 101, 5]);
        assert_eq!(lengths_of_put("/data", 1_141, 0).unwrap(), [1_152, 5]);
        let error = lengths_of_put("/data", 1_142, 0).unwrap_err().to_string();
        assert!(
            error.contains("pattern.request_body is 1142 B: expected at most 1141 B"),
            "{error}"
        );
        let error = lengths_of_put("/data", 1, 1).unwrap_err().to_string();
        assert!(error.contains("pattern.response_body is 1 B"), "{error}");
    }

    #[test]
    fn block_wise_body_is_refused() {
        assert!(lengths("/data", 1_097).is_ok());
        let error = lengths("/data", 1_098).unwrap_err().to_string();
        assert!(error.contains("pattern.response_body is 1098 B"), "{error}");
        assert!(error.contains("at most 1097 B"), "{error}");
    }
}
