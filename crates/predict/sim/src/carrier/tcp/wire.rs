// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A TCP segment on the wire.

/// IPv4 and TCP headers without options (RFC 791, RFC 9293), and the time stamps (RFC 7323)
/// with their padding.
const HEADERS_WITH_STAMPS: u32 = 20 + 20 + 12;
/// Options of a SYN: MSS 4, SACK permitted 2, time stamps 10, one byte of padding, window
/// scale 3 (`tcp_syn_options`).
const SYN_HEADERS: u32 = 20 + 20 + 20;
/// What the IPv4 and TCP headers and the time stamps leave of the MTU for data.
pub(crate) const fn segment_bytes(mtu: u16) -> u32 {
    (mtu as u32).saturating_sub(HEADERS_WITH_STAMPS)
}

/// SACK blocks that fit beside the time stamps (RFC 2018 section 3).
pub(crate) const SACK_BLOCKS: usize = 3;

/// TCP's FIN flag; it takes a sequence number and no byte.
pub(crate) const FIN: u8 = 1;
/// TCP's SYN flag.
pub(crate) const SYN: u8 = 2;
/// TCP's PSH flag: the last segment of a write.
pub(crate) const PSH: u8 = 8;
/// TCP's ACK flag.
pub(crate) const ACK: u8 = 16;
/// Not on the wire: the segment has been sent before.
pub(crate) const AGAIN: u8 = 128;

/// A TCP segment. Sequence numbers are bytes from the SYN, which is 0; data begins at 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpSegment {
    /// First sequence number and the one after the last.
    pub seq: u32,
    pub end: u32,
    /// What it acknowledges.
    pub ack: u32,
    /// TSval and TSecr, ms.
    pub stamp: u32,
    pub echo: u32,
    pub flags: u8,
    /// How many of `sack` count.
    pub sacks: u8,
    pub sack: [Range; SACK_BLOCKS],
}

/// A range of sequence numbers, its end excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub start: u32,
    pub end: u32,
}

impl TcpSegment {
    /// Length of the IP packet, B.
    #[inline]
    pub(crate) fn wire_bytes(&self) -> u32 {
        if self.flags & SYN != 0 {
            return SYN_HEADERS;
        }
        let sacks = if self.sacks > 0 { 4 + 8 * u32::from(self.sacks) } else { 0 };
        HEADERS_WITH_STAMPS + sacks + self.data_bytes()
    }

    /// Bytes of data.
    #[inline]
    pub(crate) fn data_bytes(&self) -> u32 {
        self.end - self.seq - u32::from(self.flags & (SYN | FIN) != 0)
    }
}
