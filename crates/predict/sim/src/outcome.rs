// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What one trial gives.

use warifu_model::{Metric, Stage};

/// What one trial gives, connection by connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// One for each of the case's concurrent connections.
    pub connections: Vec<ConnectionOutcome>,
}

/// What one connection gives. Times are from connect() on, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionOutcome {
    /// Just before connect(), connected, handshake done, first byte of the response; in the
    /// order of [`warifu_trace::Mark`].
    pub marks: [u64; 4],
    /// Where the time up to the first byte of the response went, in the order of
    /// [`Stage::ALL`]; their sum is that time.
    pub stages: [u64; Stage::ALL.len()],
    /// Bytes that the client wrote to TCP.
    pub bytes_client_sent: u64,
    /// Bytes that the client read from TCP.
    pub bytes_server_sent: u64,
    /// IP packets put on the link, lost ones included.
    pub packets: u64,
    /// Their bytes.
    pub bytes_link: u64,
    /// TCP segments sent again.
    pub retransmitted: u64,
    /// Whether the connection came to nothing; the other fields then mean nothing.
    pub failed: bool,
}

impl ConnectionOutcome {
    /// One metric of a connection that did not fail, in the metric's unit.
    pub fn value(&self, metric: Metric) -> u64 {
        let [start, connected, handshake_done, first_response] = self.marks;
        match metric {
            Metric::HttpsEstablishment => first_response - start,
            Metric::TcpConnect => connected - start,
            Metric::TlsHandshake => handshake_done - connected,
            // Early data may be answered before the handshake is complete.
            Metric::HttpsFirstResponse => first_response.saturating_sub(handshake_done),
            Metric::BytesClientSent => self.bytes_client_sent,
            Metric::BytesServerSent => self.bytes_server_sent,
            Metric::PacketsLink => self.packets,
            Metric::BytesLink => self.bytes_link,
            Metric::SegmentsRetransmitted => self.retransmitted,
            Metric::ConnectionFailed => u64::from(self.failed),
        }
    }
}
