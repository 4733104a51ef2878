// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What has been sent and not acknowledged, in the order of its sequence numbers.

/// SACKed (`TCPCB_SACKED_ACKED`).
pub(crate) const SACKED: u8 = 1;
/// Sent again, and that copy is believed to be on its way (`TCPCB_SACKED_RETRANS`).
pub(crate) const RETRANS: u8 = 2;
/// Believed to be lost (`TCPCB_LOST`).
pub(crate) const LOST: u8 = 4;
/// Sent again at some time (`TCPCB_EVER_RETRANS`).
pub(crate) const EVER_RETRANS: u8 = 8;
/// The SYN, which is never joined with what follows.
pub(crate) const SYN_SEGMENT: u8 = 16;

/// Not on the list in the order of sending that RACK looks through (`tcp_tsorted_anchor`): what
/// RACK has marked lost leaves the list until it is sent again.
pub(crate) const UNLISTED: u8 = 32;

/// A segment that has been sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub seq: u32,
    pub end: u32,
    /// When it was sent last, ns.
    pub sent: u64,
    /// The event at which that was, where events are numbered.
    pub event: u16,
    /// Which of the socket's transmissions that was. The kernel tells what was sent later by its
    /// microsecond; here many acknowledgements may be answered at one instant.
    pub order: u32,
    /// When it was sent first, ns.
    pub first_sent: u64,
    /// The time stamp it last carried, ms.
    pub stamp: u32,
    pub flags: u8,
}

/// Sent segments; taken off at the front, so a vector with a moving head.
#[derive(Debug)]
pub(crate) struct Queue {
    segments: Vec<Segment>,
    head: usize,
}

impl Queue {
    /// With room for a handshake's flights.
    pub(crate) fn new() -> Queue {
        Queue { segments: Vec::with_capacity(32), head: 0 }
    }

    /// Without memory, to stand in for one that was taken out.
    pub(crate) const fn empty() -> Queue {
        Queue { segments: Vec::new(), head: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.segments.clear();
        self.head = 0;
    }

    pub(crate) fn push(&mut self, segment: Segment) {
        if self.head > 0 && self.head == self.segments.len() {
            self.clear();
        }
        self.segments.push(segment);
    }

    /// Drops the first `count` segments.
    pub(crate) fn drop_front(&mut self, count: usize) {
        self.head += count;
        if self.head == self.segments.len() {
            self.clear();
        } else if self.head > 256 {
            self.segments.drain(..self.head);
            self.head = 0;
        }
    }

    /// Removes the segment at `index`.
    pub(crate) fn remove(&mut self, index: usize) {
        self.segments.remove(self.head + index);
    }

    #[inline]
    pub(crate) fn all(&self) -> &[Segment] {
        &self.segments[self.head..]
    }

    #[inline]
    pub(crate) fn all_mut(&mut self) -> &mut [Segment] {
        &mut self.segments[self.head..]
    }

    pub(crate) fn first(&self) -> Option<&Segment> {
        self.all().first()
    }
}
