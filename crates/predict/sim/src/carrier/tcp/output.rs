// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending new data (net/ipv4/tcp_output.c).

use super::queue::{EVER_RETRANS, RETRANS, SACKED, SYN_SEGMENT, Segment};
use super::wire::{ACK, FIN, PSH};
use super::{CaState, Context, Pending, Socket, State};

impl Socket {
    /// write(): hands bytes to TCP and sends what may leave (`tcp_sendmsg`).
    pub(crate) fn write(&mut self, context: &mut Context<'_, '_>, bytes: u32) {
        if bytes == 0 || self.state != State::Established {
            return;
        }
        self.restart_after_idle(context);
        self.write_seq += bytes;
        self.write_out(context, !context.settings.nagle, false);
    }

    /// shutdown() of the sending direction (`tcp_send_fin`): the FIN takes the next sequence number
    /// and is sent with what is still to be sent, whatever Nagle says.
    pub(crate) fn close(&mut self, context: &mut Context<'_, '_>) {
        if self.fin || self.state != State::Established {
            return;
        }
        self.fin = true;
        self.write_seq += 1;
        self.push_without_nagle(context);
    }

    /// Sends what an acknowledgement has made room for (`tcp_data_snd_check`).
    pub(super) fn push_pending(&mut self, context: &mut Context<'_, '_>) {
        if self.write_seq > self.snd_nxt {
            self.write_out(context, !context.settings.nagle, false);
        }
    }

    /// Sends new data although neither Nagle nor, for a probe, the window allows it.
    pub(super) fn push_without_nagle(&mut self, context: &mut Context<'_, '_>) {
        self.write_out(context, true, false);
    }

    pub(super) fn write_probe(&mut self, context: &mut Context<'_, '_>) {
        self.write_out(context, true, true);
    }

    /// `tcp_write_xmit`.
    fn write_out(&mut self, context: &mut Context<'_, '_>, nagle_off: bool, probe: bool) {
        let mss = context.settings.mss;
        let mut sent = 0;
        while self.write_seq > self.snd_nxt {
            if self.packets_in_flight() >= self.congestion.cwnd && !probe {
                break;
            }
            let left = self.write_seq - self.snd_nxt;
            // tcp_nagle_test: the final segment of a stream does not wait.
            if left < mss && !nagle_off && !self.fin && self.held_by_nagle() {
                break;
            }
            self.send_new(context, left.min(mss));
            sent += 1;
            if left < mss {
                self.snd_sml = self.snd_nxt;
            }
            if probe {
                break;
            }
        }
        let limited = self.packets_in_flight() >= self.congestion.cwnd;
        if sent > 0 || limited {
            self.validate_window(limited);
        }
        if sent > 0 {
            if matches!(self.ca_state, CaState::Cwr | CaState::Recovery) {
                self.recovery.prr_out += sent;
            }
            if !probe {
                self.schedule_loss_probe(context, false);
            }
        }
    }

    /// A short segment waits while another short one is unacknowledged (`tcp_nagle_check`,
    /// `tcp_minshall_check`).
    fn held_by_nagle(&self) -> bool {
        self.packets_out > 0 && self.snd_sml > self.snd_una && self.snd_sml <= self.snd_nxt
    }

    /// Sends one new segment (`tcp_event_new_data_sent`).
    fn send_new(&mut self, context: &mut Context<'_, '_>, bytes: u32) {
        let (seq, end) = (self.snd_nxt, self.snd_nxt + bytes);
        let mut packet = self.segment(context, seq, end, self.data_flags(end));
        self.transmissions += 1;
        self.queue.push(Segment {
            seq,
            end,
            sent: context.clock.now,
            event: context.clock.event,
            order: self.transmissions,
            first_sent: context.clock.now,
            stamp: packet.stamp,
            flags: 0,
        });
        self.transmit(context, &mut packet, context.clock.now);
        self.lsndtime = context.clock.jiffies;
        self.last_sent_at = context.clock.event;
        self.receiver.data_sent(context.clock);
        let first = self.packets_out == 0;
        self.snd_nxt = end;
        self.packets_out += 1;
        if first || self.pending == Pending::LossProbe {
            self.rearm_rto(context);
        }
    }

    /// The flags of a segment of data that ends there: the last of a write is pushed.
    pub(super) fn data_flags(&self, end: u32) -> u8 {
        match self.write_seq - end {
            0 if self.fin => ACK | FIN,
            0 => ACK | PSH,
            1 if self.fin => ACK | PSH,
            _ => ACK,
        }
    }

    /// Joins short segments that follow one that is sent again, as far as they fit into one
    /// (`tcp_retrans_try_collapse`).
    pub(super) fn collapse(&mut self, context: &Context<'_, '_>, index: usize) {
        let mss = context.settings.mss;
        loop {
            let (Some(&this), Some(&next)) =
                (self.queue.all().get(index), self.queue.all().get(index + 1))
            else {
                return;
            };
            let fits = next.end - this.seq <= mss;
            if !fits || this.flags & SYN_SEGMENT != 0 || next.flags & SACKED != 0 {
                return;
            }
            // tcp_collapse_retrans: the next one's marks go over, but for its own copies.
            let segment = &mut self.queue.all_mut()[index];
            segment.end = next.end;
            segment.flags |= next.flags & EVER_RETRANS;
            self.packets_out -= 1;
            if next.flags & super::queue::LOST != 0 {
                self.lost_out -= 1;
            }
            if next.flags & RETRANS != 0 {
                self.retrans_out -= 1;
            }
            self.queue.remove(index + 1);
        }
    }
}
