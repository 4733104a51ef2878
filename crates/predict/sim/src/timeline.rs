// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets as a capture would show them, for tests and for people.

use std::fmt;

use crate::case_model::CaseModel;
use crate::link::Heading;
use crate::packet::{ACK, AGAIN, FIN, PSH, Packet, SYN};
use crate::simulator::Simulator;

/// One trial of a case, packet by packet, up to the first byte of the response. `up` and `down`
/// are the packets of each direction to drop, counted from 0, in the place of random loss.
pub fn simulate_packets(
    model: &CaseModel,
    up: &[u64],
    down: &[u64],
    seed: u64,
) -> Vec<PacketEvent> {
    Simulator::new().run_logged(&model.clone().with_drops(up, down), seed)
}

/// A packet that a TCP sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// When TCP sent it, from connect() on, ns.
    pub time_ns: u64,
    /// Which way.
    pub heading: Heading,
    /// `F` for FIN, `S` for SYN, `P` for PSH, `.` for ACK, as tcpdump prints them.
    pub flags: String,
    /// First sequence number, from the SYN, which is 0.
    pub seq: u32,
    /// Bytes of data.
    pub len: u32,
    /// What it acknowledges, from the peer's SYN; 0 in a SYN.
    pub ack: u32,
    /// SACK blocks, the first maybe a duplicate's (RFC 2883).
    pub sack: Vec<(u32, u32)>,
    /// Whether its bytes had been sent before.
    pub again: bool,
    /// Whether the link dropped it.
    pub dropped: bool,
}

impl PacketEvent {
    pub(crate) fn new(time_ns: u64, heading: Heading, packet: &Packet, dropped: bool) -> Self {
        let mut flags = String::new();
        for (flag, letter) in [(FIN, 'F'), (SYN, 'S'), (PSH, 'P'), (ACK, '.')] {
            if packet.flags & flag != 0 {
                flags.push(letter);
            }
        }
        PacketEvent {
            time_ns,
            heading,
            seq: packet.seq,
            len: packet.data_bytes(),
            ack: if packet.flags & ACK != 0 { packet.ack } else { 0 },
            sack: packet.sack[..usize::from(packet.sacks)]
                .iter()
                .map(|block| (block.start, block.end))
                .collect(),
            again: packet.flags & AGAIN != 0,
            dropped,
            flags,
        }
    }
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
