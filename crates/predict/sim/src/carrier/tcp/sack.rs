// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What selective acknowledgements say of the segments sent (`tcp_sacktag_write_queue`).

use super::flags::Flags;
use super::queue::{EVER_RETRANS, LOST, RETRANS, SACKED};
use super::wire::{Range, TcpSegment};
use super::{CaState, Context, Socket};

/// What one acknowledgement's blocks brought (`struct tcp_sacktag_state`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tagged {
    /// When the first and the last newly SACKed segments that were sent only once were sent,
    /// ns; `None` if there are none.
    pub first_sent: Option<u64>,
    pub last_sent: u64,
    /// Segments newly delivered.
    pub delivered: u32,
    /// Sequence number of the first segment that shows reordering.
    reordered: Option<u32>,
}

impl Socket {
    /// Marks what the blocks of an acknowledgement cover.
    pub(super) fn tag_sacked(
        &mut self,
        context: &Context<'_, '_>,
        packet: &TcpSegment,
        prior_una: u32,
        flags: &mut Flags,
    ) -> Tagged {
        let mut tagged = Tagged::default();
        let blocks = &packet.sack[..usize::from(packet.sacks)];
        let duplicate = self.check_duplicate(context, packet, prior_una, flags, &mut tagged);
        for (index, block) in blocks.iter().enumerate() {
            let is_duplicate = duplicate && index == 0;
            if is_duplicate && block.end <= packet.ack && block.end <= self.snd_una {
                // Of what has been forgotten; check_duplicate has counted it.
                self.tag_block(context, *block, true, flags, &mut tagged);
                continue;
            }
            self.tag_block(context, *block, is_duplicate, flags, &mut tagged);
        }
        if let Some(low) = tagged.reordered
            && (self.ca_state != CaState::Loss || self.recovery.undo_marker.is_some())
        {
            self.note_reordering(context, low);
        }
        tagged
    }

    /// Whether the first block reports a duplicate (`tcp_check_dsack`, `tcp_dsack_seen`).
    fn check_duplicate(
        &mut self,
        context: &Context<'_, '_>,
        packet: &TcpSegment,
        prior_una: u32,
        flags: &mut Flags,
        tagged: &mut Tagged,
    ) -> bool {
        let blocks = &packet.sack[..usize::from(packet.sacks)];
        let inside =
            |inner: Range, outer: Range| inner.end <= outer.end && inner.start >= outer.start;
        let block = match *blocks {
            [first, ..] if first.start < packet.ack => first,
            [first, second, ..] if inside(first, second) => first,
            _ => return false,
        };
        let mss = context.settings.mss;
        let bytes = block.end.saturating_sub(block.start);
        let recovery = &mut self.recovery;
        if bytes == 0 {
            return false;
        }
        let segments = bytes.div_ceil(mss).max(1);
        let by_probe =
            bytes <= mss && recovery.tlp_high_seq != 0 && recovery.tlp_high_seq == block.end;
        flags.dsack_of_probe |= by_probe;
        recovery.dsack_dups += segments;
        if recovery.dsack_dups > self.total_retrans {
            // More duplicates than were sent again: not ours to learn from.
            return false;
        }
        if recovery.reord_seen > 0 && !by_probe {
            recovery.rack.dsack_seen = true;
        }
        flags.dsacking = true;
        tagged.delivered += segments;
        if let Some(marker) = recovery.undo_marker
            && recovery.undo_retrans > 0
            && block.end <= prior_una
            && block.end > marker
        {
            recovery.undo_retrans = (recovery.undo_retrans - segments as i32).max(0);
        }
        true
    }

    /// `tcp_sacktag_walk` and `tcp_sacktag_one` for each segment that a block covers.
    fn tag_block(
        &mut self,
        context: &Context<'_, '_>,
        block: Range,
        duplicate: bool,
        flags: &mut Flags,
        tagged: &mut Tagged,
    ) {
        let highest_sacked = self.highest_sacked();
        for index in 0..self.queue.all().len() {
            let segment = self.queue.all()[index];
            if segment.seq < block.start {
                continue;
            }
            if segment.end > block.end {
                break;
            }
            if duplicate && segment.flags & EVER_RETRANS != 0 {
                self.tag_duplicate(&segment, tagged);
            }
            let mut marks = segment.flags;
            if marks & SACKED == 0 {
                self.advance_rack(context, &segment);
                if marks & RETRANS != 0 {
                    // Unless it is taken as lost, its copy is believed to be still under way.
                    if marks & LOST != 0 {
                        marks &= !(LOST | RETRANS);
                        self.lost_out -= 1;
                        self.retrans_out -= 1;
                    }
                } else {
                    if marks & EVER_RETRANS == 0 {
                        if segment.seq < highest_sacked {
                            tagged.note_reordered(segment.seq);
                        }
                        if segment.end <= self.recovery.high_seq {
                            flags.original_acked = true;
                        }
                        tagged.first_sent.get_or_insert(segment.sent);
                        tagged.last_sent = segment.sent;
                    }
                    if marks & LOST != 0 {
                        marks &= !LOST;
                        self.lost_out -= 1;
                    }
                }
                marks |= SACKED;
                flags.data_sacked = true;
                self.sacked_out += 1;
                tagged.delivered += 1;
            }
            if duplicate && marks & RETRANS != 0 {
                marks &= !RETRANS;
                self.retrans_out -= 1;
            }
            self.queue.all_mut()[index].flags = marks;
        }
    }

    fn tag_duplicate(&mut self, segment: &super::queue::Segment, tagged: &mut Tagged) {
        let recovery = &mut self.recovery;
        if let Some(marker) = recovery.undo_marker
            && recovery.undo_retrans > 0
            && segment.end > marker
        {
            recovery.undo_retrans = (recovery.undo_retrans - 1).max(0);
        }
        if segment.flags & SACKED != 0 {
            tagged.note_reordered(segment.seq);
        }
    }

    /// The start of the highest SACKed segment, else `snd_una` (`tcp_highest_sack_seq`).
    pub(super) fn highest_sacked(&self) -> u32 {
        if self.sacked_out == 0 {
            return self.snd_una;
        }
        let last = self.queue.all().iter().rev().find(|segment| segment.flags & SACKED != 0);
        last.map_or(self.snd_una, |segment| segment.seq)
    }

    /// A hole was filled by its first copy: the network reorders (`tcp_check_sack_reordering`).
    pub(super) fn note_reordering(&mut self, context: &Context<'_, '_>, low: u32) {
        let highest = self.highest_sacked();
        if low >= highest {
            return;
        }
        let mss = context.settings.mss;
        let metric = highest - low;
        if metric > self.recovery.reordering * mss {
            // tcp_max_reordering is 300.
            self.recovery.reordering = metric.div_ceil(mss).min(300);
        }
        self.recovery.reord_seen += 1;
    }
}

impl Tagged {
    fn note_reordered(&mut self, seq: u32) {
        self.reordered = Some(self.reordered.map_or(seq, |known| known.min(seq)));
    }
}
