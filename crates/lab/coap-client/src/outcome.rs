// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What became of one exchange: one line of JSON.

use serde::Serialize;

/// One exchange. Times are ns from just before the session, and with it the socket, was made; a
/// failed exchange has those that it reached. Bytes are those of UDP payloads.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Its number, from 0.
    pub trial: u32,
    /// Why it failed, if it did: `timeout`, `not acknowledged`, `reset`, `unreachable`,
    /// `the server answered 4.04`, or what libcoap refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How much later than planned it began.
    pub late_ns: u64,
    /// The request was about to be given to the kernel for the first time.
    pub request_ns: u64,
    /// An empty ACK was read: the response comes separately. 0 if none was.
    pub acknowledged_ns: u64,
    /// The first datagram with a response code was read.
    pub first_ns: u64,
    /// The whole response was there, decoded.
    pub done_ns: u64,
    /// Bytes sent up to `done_ns`.
    pub sent: u64,
    /// Bytes received up to `done_ns`.
    pub received: u64,
    /// Datagrams sent up to `done_ns`.
    pub datagrams_sent: u32,
    /// Datagrams received up to `done_ns`.
    pub datagrams_received: u32,
    /// Bytes sent in all: with the acknowledgement of a separate response.
    pub sent_all: u64,
    /// Bytes received in all: with a second response within `linger_s`.
    pub received_all: u64,
    /// Confirmable messages sent again.
    pub retransmitted: u32,
    /// Bytes of them.
    pub retransmitted_bytes: u64,
    /// Times that the kernel reported the server as unreachable (ICMP). libcoap goes on sending.
    pub unreachable: u32,
    /// Length of the response's body, B.
    pub body_bytes: u64,
    /// The client's port.
    pub port: u16,
    /// All datagrams in order, if they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub datagrams: Vec<Datagram>,
}

/// A datagram that was sent or read: what RFC 7252 section 3 puts into its first four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Datagram {
    /// Who sent it.
    pub direction: Direction,
    /// When, ns.
    pub at_ns: u64,
    /// Length, B.
    pub bytes: u64,
    /// 0 CON, 1 NON, 2 ACK, 3 RST.
    pub message_type: u8,
    /// Request method or response code: 69 is 2.05.
    pub code: u8,
    /// Message ID.
    pub message_id: u16,
}

/// Which way a datagram went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From this client.
    Sent,
    /// To this client.
    Received,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns that Python reads.
    #[test]
    fn outcome_columns() {
        let row = serde_json::to_value(Outcome::default()).unwrap();
        for key in [
            "trial",
            "late_ns",
            "request_ns",
            "acknowledged_ns",
            "first_ns",
            "done_ns",
            "sent",
            "received",
            "datagrams_sent",
            "datagrams_received",
            "sent_all",
            "received_all",
            "retransmitted",
            "retransmitted_bytes",
            "unreachable",
            "body_bytes",
            "port",
        ] {
            assert!(row[key].is_u64(), "{key}");
        }
        assert!(row.get("error").is_none() && row.get("datagrams").is_none());
    }
}
