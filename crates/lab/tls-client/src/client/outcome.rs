// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What became of one connection: one line of JSON.

use serde::Serialize;

/// The messages of a connection in the order in which each end sent them: its name (IANA's of a
/// handshake message, or `ChangeCipherSpec`, `Alert`, or `ApplicationData` for each record of it)
/// and its length on the wire with all record overhead, B.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Those that the client sent.
    pub client: Vec<(&'static str, usize)>,
    /// Those that the server sent.
    pub server: Vec<(&'static str, usize)>,
}

/// One connection. Times are ns from just before connect(); a failed connection has those that
/// it reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Its number, from 0.
    pub trial: u32,
    /// Why it failed, if it did: `refused`, `reset`, `timeout`, `closed`, or what OpenSSL says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How much later than planned it began.
    pub late_ns: u64,
    /// connect() completed.
    pub connect_ns: u64,
    /// SSL_do_handshake returned 1; the same as `connect_ns` for plain HTTP.
    pub handshake_ns: u64,
    /// The first byte of the response was there in the clear.
    pub first_ns: u64,
    /// The whole response was.
    pub done_ns: u64,
    /// Bytes written to the socket up to `first_ns`.
    pub sent: u64,
    /// Bytes read from the socket up to `first_ns`.
    pub received: u64,
    /// Bytes written to the socket in all.
    pub sent_all: u64,
    /// Bytes read from the socket in all, up to the end of the response.
    pub received_all: u64,
    /// Whether an earlier session was taken up.
    pub resumed: bool,
    /// Whether the server took early data.
    pub early_data: bool,
    /// Lengths of the signatures seen, in order of their messages, B.
    pub signatures: Vec<u16>,
    /// Lengths of the messages up to the first response, B.
    pub sizes: Sizes,
    /// The client's port; 0 if connect() was refused at once.
    pub port: u16,
    /// Just before connect(), ns of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// TCP_INFO once the connection was there: SYNs sent again. Read when the first flight is
    /// written, long before its timer can expire.
    pub syn_timeouts: u32,
    /// TCP_INFO at the first response: segments that this end sent again since then.
    pub retransmissions: u32,
    /// TCP_INFO at the end: segments sent again, by this end.
    pub retransmitted: u32,
    /// TCP_INFO at the end: bytes sent again, by this end.
    pub retransmitted_bytes: u64,
    /// TCP_INFO at the end: retransmission timeout, us.
    pub rto_us: u32,
    /// TCP_INFO at the end: smoothed round-trip time, us.
    pub rtt_us: u32,
    /// TCP_INFO at the end: congestion window, segments.
    pub cwnd: u32,
}
