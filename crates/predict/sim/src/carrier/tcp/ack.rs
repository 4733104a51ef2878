// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an acknowledgement does to the sender (`tcp_ack` of net/ipv4/tcp_input.c).

use super::flags::Flags;
use super::queue::{EVER_RETRANS, LOST, RETRANS, SACKED, SYN_SEGMENT};
use super::recovery::Retransmit;
use super::sack::Tagged;
use super::wire::TcpSegment;
use super::{CaState, Context, Pending, Socket};

/// What acknowledging took off the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Cleaned {
    /// When the first and the last segments were sent that were sent once, ns.
    first_sent: Option<u64>,
    last_sent: u64,
    /// The events at which that was.
    events: [u16; 2],
    /// Whether a segment that was sent again was among them.
    retransmitted: bool,
    /// Segments that had not been SACKed before.
    delivered: u32,
    /// Start of the first that had never been sent again nor SACKed.
    reordered: Option<u32>,
}

impl Socket {
    /// Processes the acknowledgement in a segment.
    pub(super) fn process_ack(&mut self, context: &mut Context<'_, '_>, packet: &TcpSegment) {
        let prior_una = self.snd_una;
        if packet.ack < prior_una || packet.ack > self.snd_nxt {
            self.process_old_ack(context, packet, prior_una);
            return;
        }
        let prior_lost = self.recovery.lost;
        let prior_packets = self.packets_out;
        let mut flags = Flags { data: packet.end > packet.seq, ..Flags::default() };
        if packet.ack > prior_una {
            flags.advanced = true;
            self.retransmits = 0;
        }
        let prior_highest = self.highest_sacked();
        flags.window_update = flags.advanced || packet.seq > self.snd_wl1;
        self.snd_wl1 = self.snd_wl1.max(packet.seq);
        self.snd_una = packet.ack;
        let tagged = if packet.sacks > 0 {
            self.tag_sacked(context, packet, prior_una, &mut flags)
        } else {
            Tagged::default()
        };
        let mut retransmit = Retransmit::No;
        if prior_packets == 0 {
            if flags.dsacking {
                self.alert(context, prior_una, &mut flags, &mut retransmit);
            }
            if self.recovery.tlp_high_seq != 0 {
                self.process_probe_ack(context, packet.ack, &flags);
            }
            return;
        }
        let delivered = tagged.delivered + self.clean(context, &tagged, prior_highest, &mut flags);
        self.delivered += delivered;
        self.update_reordering_window(context);
        if self.recovery.tlp_high_seq != 0 {
            self.process_probe_ack(context, packet.ack, &flags);
        }
        if flags.dubious() || self.ca_state != CaState::Open {
            self.alert(context, prior_una, &mut flags, &mut retransmit);
        }
        if flags.set_timer {
            self.set_transmit_timer(context);
        }
        let newly_lost = self.recovery.lost - prior_lost;
        let data_acked = flags.data_acked;
        self.control_congestion(context, delivered, newly_lost, flags.advanced, data_acked);
        self.transmit_recovery(context, retransmit);
    }

    /// An acknowledgement that a later one has overtaken: only its blocks count.
    fn process_old_ack(
        &mut self,
        context: &mut Context<'_, '_>,
        packet: &TcpSegment,
        prior_una: u32,
    ) {
        if packet.ack > self.snd_nxt || packet.sacks == 0 {
            return;
        }
        let mut flags = Flags { data: packet.end > packet.seq, ..Flags::default() };
        let tagged = self.tag_sacked(context, packet, prior_una, &mut flags);
        self.delivered += tagged.delivered;
        let mut retransmit = Retransmit::No;
        self.alert(context, prior_una, &mut flags, &mut retransmit);
        self.transmit_recovery(context, retransmit);
    }

    /// Takes acknowledged segments off the queue, measures the round trip
    /// (`tcp_clean_rtx_queue`); how many segments were newly delivered.
    fn clean(
        &mut self,
        context: &Context<'_, '_>,
        tagged: &Tagged,
        prior_highest: u32,
        flags: &mut Flags,
    ) -> u32 {
        let cleaned = self.drop_acknowledged(context, flags);
        let now_us = context.clock.now_us;
        let since = |sent: u64| (now_us - sent / 1_000) as u32;
        let mut rtt_us = None;
        let mut last_rtt_us = None;
        if let (Some(first), false) = (cleaned.first_sent, cleaned.retransmitted) {
            rtt_us = Some(since(first));
            last_rtt_us = Some(since(cleaned.last_sent));
        }
        let sack_rtt_us = tagged.first_sent.map(since);
        if sack_rtt_us.is_some() {
            last_rtt_us = Some(since(tagged.last_sent));
        }
        if let (true, Some(first)) = (context.clock.is_noting(), cleaned.first_sent) {
            let [at_first, at_last] = cleaned.events;
            self.round_trip.rely(context.clock, at_first, first);
            self.round_trip.rely(context.clock, at_last, cleaned.last_sent);
        }
        let measured = self.measure(context, rtt_us.or(sack_rtt_us), last_rtt_us, flags);
        if flags.acked() {
            flags.set_timer = true;
            if let Some(low) = cleaned.reordered
                && low < prior_highest
            {
                self.note_reordering(context, low);
            }
        } else if let (true, Some(sack_rtt), Some(head)) =
            (measured, sack_rtt_us, self.queue.first())
            && sack_rtt > since(head.sent)
        {
            flags.set_timer = true;
        }
        cleaned.delivered
    }

    fn drop_acknowledged(&mut self, context: &Context<'_, '_>, flags: &mut Flags) -> Cleaned {
        let mut cleaned = Cleaned::default();
        let mut count = 0;
        while let Some(&segment) = self.queue.all().get(count) {
            if segment.end > self.snd_una {
                break;
            }
            count += 1;
            if segment.flags & EVER_RETRANS != 0 {
                if segment.flags & RETRANS != 0 {
                    self.retrans_out -= 1;
                }
                cleaned.retransmitted = true;
            } else if segment.flags & SACKED == 0 {
                if cleaned.first_sent.is_none() {
                    cleaned.first_sent = Some(segment.sent);
                    cleaned.events[0] = segment.event;
                }
                cleaned.last_sent = segment.sent;
                cleaned.events[1] = segment.event;
                cleaned.reordered.get_or_insert(segment.seq);
                if segment.end <= self.recovery.high_seq {
                    flags.original_acked = true;
                }
            }
            if segment.flags & SACKED != 0 {
                self.sacked_out -= 1;
            } else {
                cleaned.delivered += 1;
                if !self.spurious_retransmission(&segment) {
                    self.advance_rack(context, &segment);
                }
            }
            if segment.flags & LOST != 0 {
                self.lost_out -= 1;
            }
            self.packets_out -= 1;
            if segment.flags & SYN_SEGMENT != 0 {
                flags.syn_acked = true;
                self.recovery.retrans_stamp = 0;
            } else {
                flags.data_acked = true;
            }
        }
        self.queue.drop_front(count);
        cleaned
    }

    /// `tcp_ack_update_rtt`: the kernel's own stamps, or else the echoed one.
    fn measure(
        &mut self,
        context: &Context<'_, '_>,
        rtt_us: Option<u32>,
        last_rtt_us: Option<u32>,
        flags: &Flags,
    ) -> bool {
        let (rtt, last) = match rtt_us {
            Some(rtt) => (rtt, last_rtt_us),
            None if flags.acked() && self.receiver.rcv_tsecr != 0 => {
                context.clock.rely_on_all();
                let rtt = self.stamp_rtt_us(context);
                (rtt, Some(rtt))
            }
            None => return false,
        };
        if let Some(last) = last {
            self.round_trip.min_rtt = self.round_trip.min_rtt.min(last.max(1));
        }
        self.round_trip.sample(&context.settings.kernel, rtt, self.snd_una, self.snd_nxt);
        true
    }

    /// After progress: a tail loss probe if one may be due, else the retransmission timer
    /// (`tcp_set_xmit_timer`).
    fn set_transmit_timer(&mut self, context: &Context<'_, '_>) {
        if !self.schedule_loss_probe(context, true) {
            self.rearm_rto(context);
        }
    }

    pub(super) fn clear_timer(&mut self, context: &Context<'_, '_>) {
        self.pending = Pending::None;
        self.disarm(context.clock);
    }
}
