// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receiving data, and when it is acknowledged (net/ipv4/tcp_input.c).

use super::kernel::Kernel;
use super::round_trip::RoundTrip;
use super::timers::{Bounds, WheelTimer};
use super::wire::{PSH, Range, SACK_BLOCKS, TcpSegment};
use super::{Context, Socket};
use crate::clock::Clock;

/// `ICSK_ACK_SCHED`: something is to be acknowledged.
const SCHEDULED: u8 = 1;
/// `ICSK_ACK_TIMER`: the timer is running.
const TIMER: u8 = 2;
/// `ICSK_ACK_PUSHED`, `ICSK_ACK_PUSHED2`: one, two segments that were not full came.
const PUSHED: u8 = 4;
const PUSHED2: u8 = 8;
/// `ICSK_ACK_NOW`.
const NOW: u8 = 16;

/// `TCP_MSS_DEFAULT`, the first guess of the peer's segment size.
const FIRST_RCV_MSS: u32 = 536;
/// `TCP_MIN_MSS`: below, a segment says nothing of the size.
const MIN_MSS: u32 = 88;
/// The receive window that Linux begins with (`tcp_select_initial_window` with the default
/// buffer), of which `tcp_incr_quickack` takes its count.
const INITIAL_WINDOW: u32 = 64_240;

/// The receiving half of a socket.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    /// What comes next.
    pub rcv_nxt: u32,
    /// What was acknowledged last.
    pub rcv_wup: u32,
    /// The peer's time stamp to echo.
    pub ts_recent: u32,
    /// The time stamp that the segment at hand echoes.
    pub rcv_tsecr: u32,
    /// Up to where the program has read.
    copied_seq: u32,
    pending: u8,
    /// Jiffies (`icsk_ack.ato`); 0 before the first data.
    ato: u32,
    quick: u32,
    pingpong: u8,
    lrcvtime: u32,
    /// Its event.
    last_received_at: u16,
    rcv_mss: u32,
    last_seg_size: u32,
    delack_timeout: u32,
    /// The event that set it and its jiffy, and how long the delay is at least and at most,
    /// jiffies, where that is noted.
    delack_set_at: (u16, u32),
    delack_delay: (u32, u32),
    /// Data beyond a hole, ascending and apart; and the same by recency, for SACK.
    out_of_order: Vec<Range>,
    recent: Vec<Range>,
    duplicate: Option<Range>,
}

/// What a segment did to the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    Nothing,
    /// New bytes are there for the program.
    InOrder,
}

/// What a segment's time stamp says (PAWS, RFC 7323 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    Fine,
    /// Older than the one of a segment that came before: its content counts for nothing, even where
    /// it would fill a hole, and the peer is told what is still missing.
    Old,
    /// The same of an acknowledgement without data that later ones have overtaken: nothing is said.
    OldAcknowledgement,
}

impl Receiver {
    pub(crate) fn reset(&mut self) {
        let mut out_of_order = std::mem::take(&mut self.out_of_order);
        let mut recent = std::mem::take(&mut self.recent);
        out_of_order.clear();
        recent.clear();
        *self = Receiver { out_of_order, recent, rcv_mss: FIRST_RCV_MSS, ..Receiver::default() };
    }

    /// The peer's SYN has come.
    pub(super) fn begin(&mut self, stamp: u32, clock: &Clock) {
        self.rcv_nxt = 1;
        self.rcv_wup = 1;
        self.copied_seq = 1;
        self.ts_recent = stamp;
        self.lrcvtime = clock.jiffies;
        self.last_received_at = clock.event;
    }

    /// Remembers the peer's time stamp if the segment begins where the last acknowledgement
    /// ended or before (`tcp_replace_ts_recent`; RFC 7323 section 4.3).
    pub(super) fn note_stamp(&mut self, packet: &TcpSegment) {
        self.rcv_tsecr = packet.echo;
        if packet.seq <= self.rcv_wup && packet.stamp >= self.ts_recent {
            self.ts_recent = packet.stamp;
        }
    }

    /// Puts what is to be selectively acknowledged into a segment (RFC 2018, RFC 2883).
    pub(super) fn write_sacks(&mut self, packet: &mut TcpSegment) {
        let blocks = self.duplicate.take().into_iter().chain(self.recent.iter().copied());
        for block in blocks.take(SACK_BLOCKS) {
            packet.sack[usize::from(packet.sacks)] = block;
            packet.sacks += 1;
        }
    }

    /// Everything has been acknowledged (`tcp_event_ack_sent`).
    pub(super) fn ack_sent(&mut self, ato_min: u32) {
        if self.quick > 0 && self.pending & SCHEDULED != 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = ato_min;
            }
        }
        self.pending = 0;
        self.rcv_wup = self.rcv_nxt;
    }

    /// Data has been sent; soon after received data, that makes the connection interactive
    /// (`tcp_event_data_sent`).
    pub(super) fn data_sent(&mut self, clock: &Clock) {
        let gap = clock.jiffies.wrapping_sub(self.lrcvtime);
        if !clock.is_noting() {
            clock.doubt(self.ato > 0 && gap + 1 >= self.ato && gap <= self.ato);
        } else if self.ato > 0 {
            let soon = gap < self.ato;
            let within = if soon { (0, self.ato - 1) } else { (self.ato, u32::MAX) };
            clock.rely_on_ticks(self.last_received_at, gap, within);
        }
        if gap < self.ato {
            self.pingpong = self.pingpong.saturating_add(1);
        }
    }

    fn interactive(&self, kernel: &Kernel) -> bool {
        self.pingpong >= kernel.pingpong_thresh
    }

    fn quick_mode(&self, kernel: &Kernel) -> bool {
        self.quick > 0 && !self.interactive(kernel)
    }

    fn increase_quick(&mut self, kernel: &Kernel) {
        let count = (INITIAL_WINDOW / (2 * self.rcv_mss)).max(2);
        self.quick = self.quick.max(count.min(kernel.max_quickacks));
    }

    /// `tcp_enter_quickack_mode`.
    fn enter_quick_mode(&mut self, kernel: &Kernel) {
        self.increase_quick(kernel);
        self.pingpong = 0;
        self.ato = kernel.ato_min;
    }

    /// Learns the peer's segment size (`tcp_measure_rcv_mss`).
    fn measure_size(&mut self, bytes: u32, pushed: bool, mss: u32) {
        let last = std::mem::take(&mut self.last_seg_size);
        if bytes >= self.rcv_mss {
            self.rcv_mss = bytes.min(mss);
            if pushed {
                self.pending |= PUSHED;
            }
            return;
        }
        // The kernel counts the time stamps' 12 bytes as well.
        if bytes + 12 >= FIRST_RCV_MSS || (bytes + 12 >= MIN_MSS && !pushed) {
            self.last_seg_size = bytes;
            if last == bytes {
                self.rcv_mss = bytes;
                return;
            }
        }
        if self.pending & PUSHED != 0 {
            self.pending |= PUSHED2;
        }
        self.pending |= PUSHED;
    }

    /// Data came: adapts the delay of acknowledgements (`tcp_event_data_recv`).
    fn data_received(
        &mut self,
        context: &Context<'_, '_>,
        packet: &TcpSegment,
        round_trip: &RoundTrip,
    ) {
        let rto = round_trip.rto;
        let kernel = &context.settings.kernel;
        self.pending |= SCHEDULED;
        let pushed = packet.flags & PSH != 0;
        self.measure_size(packet.end - packet.seq, pushed, context.settings.mss);
        let now = context.clock.jiffies;
        if self.ato == 0 {
            self.increase_quick(kernel);
            self.ato = kernel.ato_min;
        } else {
            let gap = now.wrapping_sub(self.lrcvtime);
            if context.clock.is_noting() {
                self.rely_on_gap(context, gap, round_trip);
            } else {
                let short = gap < kernel.ato_min / 2;
                let middling = gap > self.ato.max(kernel.ato_min / 2) + 1 && gap < rto;
                let long = gap > self.ato + 1 && gap > rto + 1;
                context.clock.doubt(!(short || middling || long));
            }
            if gap <= kernel.ato_min / 2 {
                self.ato = (self.ato >> 1) + kernel.ato_min / 2;
            } else if gap < self.ato {
                self.ato = ((self.ato >> 1) + gap).min(rto);
            } else if gap > rto {
                self.increase_quick(kernel);
            }
        }
        self.lrcvtime = now;
        self.last_received_at = context.clock.event;
    }

    /// Notes between which gaps the delay is adapted in the same way as to this one, in jiffies.
    /// The timeout is known within bounds.
    #[cold]
    fn rely_on_gap(&self, context: &Context<'_, '_>, gap: u32, round_trip: &RoundTrip) {
        let kernel = &context.settings.kernel;
        let half = kernel.ato_min / 2;
        let least_rto = round_trip.least_timeout(kernel);
        let most_rto = round_trip.most_timeout(kernel);
        let usual = self.ato.max(half + 1);
        let within = if gap <= half {
            (0, half)
        } else if gap < self.ato && (self.ato >> 1) + gap <= least_rto {
            (gap, gap)
        } else if (usual..=least_rto).contains(&gap) {
            (usual, least_rto)
        } else if gap > usual.max(most_rto) {
            (usual.max(most_rto) + 1, u32::MAX)
        } else {
            return context.clock.rely_on_all();
        };
        context.clock.rely_on_ticks(self.last_received_at, gap, within);
    }

    /// Notes what it rests on whether the delay within which an acknowledgement is to leave already
    /// is over soon, or before a new one that is between so many jiffies long: that so many of it
    /// have passed.
    #[cold]
    fn rely_on_delack(&self, context: &Context<'_, '_>, (least_ato, most_ato): (u32, u32)) {
        let (set_at, set_in) = self.delack_set_at;
        let (least_delay, most_delay) = self.delack_delay;
        let passed = context.clock.jiffies.wrapping_sub(set_in);
        let soon = most_delay.saturating_sub(least_ato >> 2);
        let not_soon = least_delay.saturating_sub(most_ato >> 2);
        let most_ack_delay = context.settings.kernel.delack_max;
        let kept = most_delay.saturating_sub(least_ato.min(most_ack_delay));
        let replaced = least_delay.saturating_sub(most_ato.min(most_ack_delay));
        let within = if passed >= soon {
            (soon, u32::MAX)
        } else if passed >= not_soon {
            return context.clock.rely_on_all();
        } else if passed >= kept {
            (kept, not_soon - 1)
        } else if passed < replaced {
            (0, replaced - 1)
        } else {
            return context.clock.rely_on_all();
        };
        context.clock.rely_on_ticks(set_at, passed, within);
    }

    /// Adds a range beyond a hole, joining what touches.
    fn put_aside(&mut self, range: Range) {
        let mut joined = range;
        self.out_of_order.retain(|held| {
            let apart = held.end < joined.start || joined.end < held.start;
            if !apart {
                joined.start = joined.start.min(held.start);
                joined.end = joined.end.max(held.end);
            }
            apart
        });
        let at = self.out_of_order.partition_point(|held| held.start < joined.start);
        self.out_of_order.insert(at, joined);
        self.recent.retain(|held| held.end < joined.start || joined.end < held.start);
        self.recent.insert(0, joined);
        // tcp_sack_new_ofo_skb: only so many are remembered.
        self.recent.truncate(4);
    }

    /// Takes over what a filled hole connects.
    fn drain_order(&mut self) {
        let nxt = &mut self.rcv_nxt;
        self.out_of_order.retain(|held| {
            let connected = held.start <= *nxt;
            if connected {
                *nxt = (*nxt).max(held.end);
            }
            !connected
        });
        let nxt = self.rcv_nxt;
        self.recent.retain(|held| held.start > nxt);
    }
}

impl Socket {
    /// Whether a segment's time stamp went back (`tcp_paws_check`, `tcp_disordered_ack_check`).
    /// Once the copy of a flight's first segment is there, what is late of the flight's other
    /// segments bears an older stamp than it.
    pub(super) fn check_stamp(&self, context: &Context<'_, '_>, packet: &TcpSegment) -> Stamp {
        let receiver = &self.receiver;
        // What was overtaken may bear the same stamp or an older one by the phase of their clock.
        context.clock.doubt(packet.seq != receiver.rcv_nxt || packet.ack < self.snd_una);
        if packet.stamp >= receiver.ts_recent {
            return Stamp::Fine;
        }
        if packet.end > packet.seq {
            return Stamp::Old;
        }
        if packet.seq != receiver.rcv_nxt {
            let overtaken = packet.seq < receiver.rcv_nxt;
            return if overtaken { Stamp::OldAcknowledgement } else { Stamp::Old };
        }
        // A duplicate that opens no window (`tcp_may_update_window`) is taken within a timeout,
        // which is counted in ticks of 1200 Hz, the quickest clock of a peer (`tcp_tsval_replay`).
        let duplicate = packet.ack == self.snd_una && packet.seq <= self.snd_wl1;
        let jiffy_us = context.settings.kernel.jiffy.us;
        let replay_ms = u64::from(self.round_trip.rto) * 1_200 * jiffy_us / 1_000_000;
        let age_ms = u64::from(receiver.ts_recent - packet.stamp);
        if duplicate && age_ms <= replay_ms { Stamp::Fine } else { Stamp::Old }
    }

    /// The segment is wholly before what was acknowledged, or its time stamp is too old: its
    /// content is passed over, and so is what it acknowledges (`tcp_sequence`, `tcp_send_dupack`).
    pub(super) fn answer_stale(&mut self, context: &mut Context<'_, '_>, packet: &TcpSegment) {
        if packet.end > packet.seq {
            if packet.seq < self.receiver.rcv_nxt {
                self.note_duplicate(context, packet);
            }
        } else if !self.request.may_answer_stale(context.clock) {
            return;
        }
        self.send_ack(context);
    }

    fn note_duplicate(&mut self, context: &Context<'_, '_>, packet: &TcpSegment) {
        let kernel = &context.settings.kernel;
        let receiver = &mut self.receiver;
        receiver.enter_quick_mode(kernel);
        if kernel.dsack {
            let end = packet.end.min(receiver.rcv_nxt);
            receiver.duplicate = Some(Range { start: packet.seq, end });
        }
    }

    /// Takes a segment's data (`tcp_data_queue`).
    pub(super) fn take_data(&mut self, context: &Context<'_, '_>, packet: &TcpSegment) -> Arrived {
        if packet.end == packet.seq {
            return Arrived::Nothing;
        }
        if packet.end <= self.receiver.rcv_nxt {
            self.note_duplicate(context, packet);
            self.receiver.pending |= SCHEDULED;
            return Arrived::Nothing;
        }
        let receiver = &mut self.receiver;
        if packet.seq > receiver.rcv_nxt {
            // tcp_data_queue_ofo: the number of segments is not counted for the delay.
            receiver.pending |= SCHEDULED;
            let held = receiver
                .out_of_order
                .iter()
                .any(|held| held.start <= packet.seq && packet.end <= held.end);
            let range = Range { start: packet.seq, end: packet.end };
            if held && context.settings.kernel.dsack {
                receiver.duplicate = Some(range);
            }
            receiver.put_aside(range);
            return Arrived::Nothing;
        }
        if packet.seq < receiver.rcv_nxt && context.settings.kernel.dsack {
            // Its first part is a duplicate, as of segments that were joined to be sent again.
            receiver.duplicate = Some(Range { start: packet.seq, end: receiver.rcv_nxt });
        }
        receiver.rcv_nxt = packet.end;
        receiver.data_received(context, packet, &self.round_trip);
        if !receiver.out_of_order.is_empty() {
            receiver.drain_order();
            if receiver.out_of_order.is_empty() {
                // RFC 5681 section 4.2: at once when the last hole is filled.
                receiver.pending |= NOW;
            }
        }
        Arrived::InOrder
    }

    /// Acknowledges now or later, if there is something (`tcp_ack_snd_check`).
    pub(super) fn check_ack(&mut self, context: &mut Context<'_, '_>) {
        let kernel = &context.settings.kernel;
        let receiver = &self.receiver;
        if receiver.pending & SCHEDULED == 0 {
            return;
        }
        let more_than_one = receiver.rcv_nxt - receiver.rcv_wup > receiver.rcv_mss;
        if more_than_one
            || receiver.quick_mode(kernel)
            || receiver.pending & NOW != 0
            || !receiver.out_of_order.is_empty()
        {
            self.send_ack(context);
        } else {
            self.delay_ack(context);
        }
    }

    /// How long an acknowledgement may wait now, jiffies, where the smoothed round trip is so long,
    /// us; 0 for not known.
    fn ack_delay(&self, kernel: &Kernel, srtt_us: u32) -> u32 {
        let receiver = &self.receiver;
        if receiver.ato <= kernel.delack_min {
            return receiver.ato;
        }
        let interactive =
            receiver.pingpong >= kernel.pingpong_thresh || receiver.pending & PUSHED != 0;
        // HZ / 2 where the connection is neither interactive nor pushed.
        let half_second = kernel.jiffy.ceil_us(500_000);
        let mut most = if interactive { kernel.delack_max } else { half_second };
        if srtt_us > 0 {
            most = most.min(kernel.jiffy.ceil_us(u64::from(srtt_us)).max(kernel.delack_min));
        }
        receiver.ato.min(most)
    }

    /// The same in all trials whose round trips are of the same kinds: at least and at most.
    #[cold]
    fn ack_delays(&self, kernel: &Kernel) -> (u32, u32) {
        if self.round_trip.srtt >> 3 == 0 {
            let delay = self.ack_delay(kernel, 0);
            return (delay, delay);
        }
        let least = self.ack_delay(kernel, self.round_trip.least_us().max(1));
        (least, self.ack_delay(kernel, self.round_trip.most_us()))
    }

    /// `tcp_send_delayed_ack`.
    fn delay_ack(&mut self, context: &mut Context<'_, '_>) {
        let kernel = &context.settings.kernel;
        let now = context.clock.jiffies;
        let ato = self.ack_delay(kernel, self.round_trip.srtt >> 3);
        let noted = context.clock.is_noting().then(|| self.ack_delays(kernel));
        let receiver = &mut self.receiver;
        let mut timeout = now + ato.min(kernel.delack_max);
        if receiver.pending & TIMER != 0 {
            match noted {
                Some(delays) => receiver.rely_on_delack(context, delays),
                None => context.clock.doubt(true),
            }
            if receiver.delack_timeout <= now + (ato >> 2) {
                self.send_ack(context);
                return;
            }
            timeout = timeout.min(receiver.delack_timeout);
        }
        // One that is kept was set before.
        let is_new = receiver.pending & TIMER == 0 || timeout < receiver.delack_timeout;
        receiver.pending |= SCHEDULED | TIMER;
        receiver.delack_timeout = timeout;
        if let (true, Some((least, most))) = (is_new, noted) {
            receiver.delack_set_at = (context.clock.event, now);
            receiver.delack_delay = (least.min(kernel.delack_max), most.min(kernel.delack_max));
            // A longer delay may be cut down by the estimate of the round trip.
            let least = (timeout - now).min(kernel.delack_min);
            self.delack_bounds = Bounds::of(context.clock, least);
        }
        self.delack_timer.set(context.clock, timeout - now);
    }

    /// The timer of a delayed acknowledgement ran (`tcp_delack_timer_handler`).
    pub(crate) fn on_delack_timer(&mut self, context: &mut Context<'_, '_>) {
        self.delack_timer = WheelTimer::Stopped;
        context.clock.doubt(true);
        let kernel = &context.settings.kernel;
        let receiver = &mut self.receiver;
        if receiver.pending & TIMER == 0 {
            return;
        }
        receiver.pending &= !TIMER;
        if receiver.pending & SCHEDULED == 0 {
            return;
        }
        if receiver.interactive(kernel) {
            receiver.pingpong = 0;
            receiver.ato = kernel.ato_min;
        } else {
            receiver.ato = (receiver.ato << 1).min(self.round_trip.rto);
        }
        self.send_ack(context);
    }

    /// Whether something is to be acknowledged, for which reading may be the moment.
    #[inline]
    pub(super) fn owes_ack(&mut self) -> bool {
        let owes = self.receiver.pending & SCHEDULED != 0;
        if !owes {
            self.receiver.copied_seq = self.receiver.rcv_nxt;
        }
        owes
    }

    /// The program has read all there was: that may be the moment to acknowledge
    /// (`tcp_cleanup_rbuf`).
    pub(crate) fn after_read(&mut self, context: &mut Context<'_, '_>) {
        let kernel = &context.settings.kernel;
        let receiver = &mut self.receiver;
        let copied = receiver.rcv_nxt > receiver.copied_seq;
        receiver.copied_seq = receiver.rcv_nxt;
        if receiver.pending & SCHEDULED == 0 {
            return;
        }
        let pushed = receiver.pending & PUSHED2 != 0
            || (receiver.pending & PUSHED != 0 && !receiver.interactive(kernel));
        if receiver.rcv_nxt - receiver.rcv_wup > receiver.rcv_mss || (copied && pushed) {
            self.send_ack(context);
        }
    }
}
