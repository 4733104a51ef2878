// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets as a capture would show them, for tests and for people.

use std::fmt;

use crate::carrier::tcp::wire::{ACK, FIN, PSH, SYN, TcpSegment};
use crate::packet::Body;
use crate::route::{Heading, Route};

/// A packet that was put on the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// When its carrier sent it, from the beginning of the trial on, ns.
    pub time_ns: u64,
    /// Which way.
    pub heading: Heading,
    /// Of a TCP segment: `F` for FIN, `S` for SYN, `P` for PSH, `.` for ACK, as tcpdump prints
    /// them. `UDP` for a datagram.
    pub flags: String,
    /// First sequence number, from the SYN, which is 0; of a datagram the number of its message.
    pub seq: u32,
    /// Bytes of data; of a datagram the bytes of its packet.
    pub len: u32,
    /// What it acknowledges, from the peer's SYN; 0 in a SYN.
    pub ack: u32,
    /// SACK blocks, the first maybe a duplicate's (RFC 2883).
    pub sack: Vec<(u32, u32)>,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Whether its bytes had been sent before.
    pub again: bool,
    /// Whether the link dropped it.
    pub dropped: bool,
    /// When the other end gets it, ns; `None` for one that the link dropped.
    pub arrives_ns: Option<u64>,
    /// The channel that it belongs to, by its number in the scenario.
    pub channel: u32,
}

impl PacketEvent {
    pub(crate) fn new(
        time_ns: u64,
        route: &Route,
        (bytes, again, body): (u32, bool, &Body),
        arrives_ns: Option<u64>,
    ) -> Self {
        let Route { heading, channel, .. } = *route;
        let dropped = arrives_ns.is_none();
        match body {
            Body::Tcp(segment) => PacketEvent {
                time_ns,
                heading,
                flags: letters(segment),
                seq: segment.seq,
                len: segment.data_bytes(),
                ack: if segment.flags & ACK != 0 { segment.ack } else { 0 },
                sack: segment.sack[..usize::from(segment.sacks)]
                    .iter()
                    .map(|block| (block.start, block.end))
                    .collect(),
                bytes,
                again,
                dropped,
                arrives_ns,
                channel,
            },
            Body::Udp(fragment) => PacketEvent {
                time_ns,
                heading,
                flags: "UDP".into(),
                seq: fragment.message,
                len: bytes,
                ack: 0,
                sack: Vec::new(),
                bytes,
                again,
                dropped,
                arrives_ns,
                channel,
            },
        }
    }
}

fn letters(segment: &TcpSegment) -> String {
    [(FIN, 'F'), (SYN, 'S'), (PSH, 'P'), (ACK, '.')]
        .into_iter()
        .filter(|(flag, _)| segment.flags & flag != 0)
        .map(|(_, letter)| letter)
        .collect()
}

impl fmt::Display for PacketEvent {
    /// `   264.010 ms > [P.] seq 1:237 ack 1 again LOST`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = match self.heading {
            Heading::Up => '>',
            Heading::Down => '<',
        };
        let ms = self.time_ns as f64 / 1e6;
        write!(f, "{ms:10.3} ms {arrow} [{}] seq {}", self.flags, self.seq)?;
        if self.len > 0 {
            write!(f, ":{}", self.seq + self.len)?;
        }
        if self.flags.contains('.') {
            write!(f, " ack {}", self.ack)?;
        }
        for (start, end) in &self.sack {
            write!(f, " sack {start}:{end}")?;
        }
        if self.again {
            write!(f, " again")?;
        }
        if self.dropped {
            write!(f, " LOST")?;
        }
        Ok(())
    }
}
