// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The closed lists of metrics and stages that observations use.

use serde::{Deserialize, Serialize};

/// A part of the critical path. Each nanosecond of it belongs to exactly one stage, so the
/// stages of a trial add up to its metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Stage {
    /// Cryptography and protocol work on the client's processor.
    ClientCompute,
    /// System calls, wake-ups and event loop on the client.
    ClientSystem,
    /// Cryptography and protocol work on the server's processor.
    ServerCompute,
    /// System calls, wake-ups and event loop on the server.
    ServerSystem,
    /// The key store at work (a card's signature, its session and look-ups).
    KeyStore,
    /// Waiting for a resource that serves somebody else (a busy card, worker or loop).
    ResourceQueue,
    /// The link's propagation delay and jitter.
    Propagation,
    /// Putting the bits of the packet that matters on the link, at the link's rate.
    Serialisation,
    /// Waiting in the link's queue behind other packets.
    LinkQueue,
    /// Waiting for a retransmission: timers, loss detection, and the hole it leaves.
    LossRecovery,
    /// Held back by the sender's window or by Nagle's algorithm.
    SendWait,
    /// Deliberate waiting of the pattern (gaps, think time).
    Idle,
}

impl Stage {
    /// All stages, in the order of a waterfall.
    pub const ALL: [Stage; 12] = [
        Stage::ClientCompute,
        Stage::ClientSystem,
        Stage::ServerCompute,
        Stage::ServerSystem,
        Stage::KeyStore,
        Stage::ResourceQueue,
        Stage::Propagation,
        Stage::Serialisation,
        Stage::LinkQueue,
        Stage::LossRecovery,
        Stage::SendWait,
        Stage::Idle,
    ];

    /// Its snake_case name, as stored in observations.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::ClientCompute => "client_compute",
            Stage::ClientSystem => "client_system",
            Stage::ServerCompute => "server_compute",
            Stage::ServerSystem => "server_system",
            Stage::KeyStore => "key_store",
            Stage::ResourceQueue => "resource_queue",
            Stage::Propagation => "propagation",
            Stage::Serialisation => "serialisation",
            Stage::LinkQueue => "link_queue",
            Stage::LossRecovery => "loss_recovery",
            Stage::SendWait => "send_wait",
            Stage::Idle => "idle",
        }
    }
}

/// What an observation measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Metric {
    /// From connect() to the first byte of the HTTP response, ns. The only metric with stages.
    #[serde(rename = "https.establishment")]
    HttpsEstablishment,
    /// From connect() to its completion, ns.
    #[serde(rename = "tcp.connect")]
    TcpConnect,
    /// From the TCP connection to the client's handshake completion, ns.
    #[serde(rename = "tls.handshake")]
    TlsHandshake,
    /// From the client's handshake completion to the first byte of the HTTP response, ns.
    #[serde(rename = "https.first_response")]
    HttpsFirstResponse,
    /// Bytes the client wrote to TCP up to the first byte of the response, B.
    #[serde(rename = "bytes.client_sent")]
    BytesClientSent,
    /// Bytes the client read from TCP up to the first byte of the response, B.
    #[serde(rename = "bytes.server_sent")]
    BytesServerSent,
    /// IP packets put on the link, both directions, retransmissions and losses included, 1.
    #[serde(rename = "packets.link")]
    PacketsLink,
    /// IP bytes put on the link, both directions, retransmissions and losses included, B.
    #[serde(rename = "bytes.link")]
    BytesLink,
    /// TCP segments sent again, both directions, 1.
    #[serde(rename = "segments.retransmitted")]
    SegmentsRetransmitted,
    /// 1 for a connection that did not get its response; it has no other metric.
    #[serde(rename = "connection.failed")]
    ConnectionFailed,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Metric; 10] = [
        Metric::HttpsEstablishment,
        Metric::TcpConnect,
        Metric::TlsHandshake,
        Metric::HttpsFirstResponse,
        Metric::BytesClientSent,
        Metric::BytesServerSent,
        Metric::PacketsLink,
        Metric::BytesLink,
        Metric::SegmentsRetransmitted,
        Metric::ConnectionFailed,
    ];

    /// Its dotted name, as stored in observations and used in `[require]`.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::HttpsEstablishment => "https.establishment",
            Metric::TcpConnect => "tcp.connect",
            Metric::TlsHandshake => "tls.handshake",
            Metric::HttpsFirstResponse => "https.first_response",
            Metric::BytesClientSent => "bytes.client_sent",
            Metric::BytesServerSent => "bytes.server_sent",
            Metric::PacketsLink => "packets.link",
            Metric::BytesLink => "bytes.link",
            Metric::SegmentsRetransmitted => "segments.retransmitted",
            Metric::ConnectionFailed => "connection.failed",
        }
    }

    /// The unit of its values as stored: `ns`, `B` or `1`.
    pub const fn unit(self) -> &'static str {
        match self {
            Metric::HttpsEstablishment
            | Metric::TcpConnect
            | Metric::TlsHandshake
            | Metric::HttpsFirstResponse => "ns",
            Metric::BytesClientSent | Metric::BytesServerSent | Metric::BytesLink => "B",
            Metric::PacketsLink | Metric::SegmentsRetransmitted | Metric::ConnectionFailed => "1",
        }
    }
}
