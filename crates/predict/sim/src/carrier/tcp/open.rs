// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The three-way handshake, with the server's request that answers before there is a socket
//! (net/ipv4/tcp_minisocks.c, inet_connection_sock.c).

use super::queue::{SYN_SEGMENT, Segment};
use super::receive::{Arrived, Stamp};
use super::wire::{ACK, AGAIN, SYN, TcpSegment};
use super::{CaState, Context, Pending, Socket, State};
use crate::carrier::Arrival;
use crate::clock::Clock;

/// `tcp_invalid_ratelimit`: how often a stale segment is answered.
const STALE_EVERY_US: u64 = 500_000;

/// What a listening server keeps of a SYN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Request {
    /// When the first SYN-ACK left, ns, at which event, and its time stamp.
    sent: u64,
    sent_at: u16,
    first_stamp: u32,
    num_timeout: u32,
    num_retrans: u32,
    /// Jiffy of the last answer to a stale segment, and whether there was one.
    stale_answered: Option<u32>,
    /// Jiffies between such answers.
    stale_every: u32,
}

impl Request {
    /// Whether a stale segment without data may be answered now (`tcp_oow_rate_limited`).
    pub(super) fn may_answer_stale(&mut self, clock: &Clock) -> bool {
        let now = clock.jiffies;
        clock.doubt(true);
        let allowed =
            self.stale_answered.is_none_or(|last| now.wrapping_sub(last) >= self.stale_every);
        if allowed {
            self.stale_answered = Some(now);
        }
        allowed
    }
}

impl Socket {
    /// connect(): sends the SYN.
    pub(crate) fn connect(&mut self, context: &mut Context<'_, '_>) {
        let kernel = &context.settings.kernel;
        self.state = State::SynSent;
        self.request.stale_every = kernel.jiffy.ceil_us(STALE_EVERY_US);
        self.snd_nxt = 1;
        self.packets_out = 1;
        let stamp = context.clock.stamp;
        self.recovery.retrans_stamp = stamp;
        self.queue.push(Segment {
            seq: 0,
            end: 1,
            sent: context.clock.now,
            event: context.clock.event,
            order: 0,
            first_sent: context.clock.now,
            stamp,
            flags: SYN_SEGMENT,
        });
        let packet = self.segment(context, 0, 1, SYN);
        context.send(&packet, context.clock.now);
        self.set_timer(context, Pending::Retransmit, self.round_trip.rto);
    }

    /// A segment has come; the one entry for all states.
    pub(crate) fn receive(
        &mut self,
        context: &mut Context<'_, '_>,
        packet: &TcpSegment,
    ) -> Arrival {
        match self.state {
            State::Established => self.receive_established(context, packet),
            State::SynSent if packet.flags & SYN != 0 => self.receive_syn_ack(context, packet),
            State::Closed if packet.flags & SYN != 0 => self.receive_syn(context, packet),
            State::SynReceived => self.receive_for_request(context, packet),
            _ => Arrival::Nothing,
        }
    }

    fn receive_established(
        &mut self,
        context: &mut Context<'_, '_>,
        packet: &TcpSegment,
    ) -> Arrival {
        self.receiver.rcv_tsecr = packet.echo;
        if packet.flags & SYN != 0 {
            // A SYN-ACK again: a challenge acknowledgement (RFC 5961 section 4).
            if self.request.may_answer_stale(context.clock) {
                self.send_ack(context);
            }
            return Arrival::Nothing;
        }
        match self.check_stamp(context, packet) {
            Stamp::Fine if packet.end >= self.receiver.rcv_wup => {}
            Stamp::Fine | Stamp::Old => {
                self.answer_stale(context, packet);
                return Arrival::Nothing;
            }
            Stamp::OldAcknowledgement => return Arrival::Nothing,
        }
        self.receiver.note_stamp(packet);
        self.process_ack(context, packet);
        let arrived = self.take_data(context, packet);
        self.push_pending(context);
        self.check_ack(context);
        if arrived == Arrived::InOrder { Arrival::Content } else { Arrival::Nothing }
    }

    /// `tcp_rcv_synsent_state_process`.
    fn receive_syn_ack(&mut self, context: &mut Context<'_, '_>, packet: &TcpSegment) -> Arrival {
        self.receiver.rcv_tsecr = packet.echo;
        self.undo_spurious_syn();
        self.process_ack(context, packet);
        self.receiver.begin(packet.stamp, context.clock);
        self.snd_wl1 = packet.seq;
        self.state = State::Established;
        self.begin_transfer(context);
        self.send_ack(context);
        Arrival::Open { with_content: false }
    }

    /// A SYN at a listening server: a request and a SYN-ACK (`tcp_conn_request`).
    fn receive_syn(&mut self, context: &mut Context<'_, '_>, packet: &TcpSegment) -> Arrival {
        let kernel = &context.settings.kernel;
        self.state = State::SynReceived;
        self.receiver.begin(packet.stamp, context.clock);
        self.request = Request {
            sent: context.clock.now,
            sent_at: context.clock.event,
            first_stamp: context.clock.stamp,
            stale_every: kernel.jiffy.ceil_us(STALE_EVERY_US),
            ..Request::default()
        };
        self.send_syn_ack(context, false);
        self.arm(context, kernel.timeout_init);
        Arrival::Request
    }

    fn send_syn_ack(&mut self, context: &mut Context<'_, '_>, again: bool) {
        let flags = SYN | ACK | if again { AGAIN } else { 0 };
        let packet = self.segment(context, 0, 1, flags);
        context.send(&packet, self.request.sent);
        self.request.num_retrans += u32::from(again);
    }

    /// The request's timer: the SYN-ACK again (`reqsk_timer_handler`).
    pub(super) fn on_request_timer(&mut self, context: &mut Context<'_, '_>) {
        let kernel = &context.settings.kernel;
        if self.request.num_timeout >= u32::from(kernel.synack_retries) {
            // The request is dropped; a later SYN begins anew.
            self.state = State::Closed;
            self.disarm(context.clock);
            return;
        }
        self.send_syn_ack(context, true);
        self.request.num_timeout += 1;
        self.arm_request_timer(context);
    }

    fn arm_request_timer(&mut self, context: &Context<'_, '_>) {
        let kernel = &context.settings.kernel;
        let delay = u64::from(kernel.timeout_init) << self.request.num_timeout.min(31);
        self.arm(context, delay.min(u64::from(kernel.rto_max)) as u32);
    }

    /// A segment for a request (`tcp_check_req`).
    fn receive_for_request(
        &mut self,
        context: &mut Context<'_, '_>,
        packet: &TcpSegment,
    ) -> Arrival {
        if packet.flags & SYN != 0 {
            if self.request.may_answer_stale(context.clock) {
                // It echoes the first SYN's time stamp: `ts_recent` of a request changes with
                // its final ACK only.
                self.send_syn_ack(context, true);
                self.arm_request_timer(context);
            }
            return Arrival::Nothing;
        }
        self.become_established(context, packet);
        let arrived = self.take_data(context, packet);
        self.push_pending(context);
        self.check_ack(context);
        Arrival::Open { with_content: arrived == Arrived::InOrder }
    }

    /// The child socket of a request (`tcp_create_openreq_child`, `tcp_synack_rtt_meas`).
    fn become_established(&mut self, context: &mut Context<'_, '_>, packet: &TcpSegment) {
        let kernel = &context.settings.kernel;
        self.state = State::Established;
        self.disarm(context.clock);
        self.snd_una = 1;
        self.snd_nxt = 1;
        self.delivered = 1;
        self.total_retrans = self.request.num_retrans;
        self.total_rto = self.request.num_timeout;
        self.receiver.rcv_tsecr = packet.echo;
        let rtt_us = if self.request.num_retrans == 0 {
            ((context.clock.now - self.request.sent) / 1_000) as u32
        } else {
            self.stamp_rtt_us(context)
        };
        self.round_trip.rely(context.clock, self.request.sent_at, self.request.sent);
        self.round_trip.min_rtt = rtt_us;
        self.round_trip.sample(kernel, rtt_us.max(1), self.snd_una, self.snd_nxt);
        if self.request.num_timeout > 0 {
            self.recovery.undo_marker = Some(0);
            self.recovery.retrans_stamp = self.request.first_stamp;
        }
        self.undo_spurious_syn();
        self.recovery.retrans_stamp = 0;
        self.receiver.note_stamp(packet);
        self.snd_wl1 = packet.seq;
        self.begin_transfer(context);
    }

    /// The peer answered the first SYN or SYN-ACK, so the later ones were needless
    /// (`tcp_try_undo_spurious_syn`).
    fn undo_spurious_syn(&mut self) {
        let stamp = self.recovery.retrans_stamp;
        if stamp != 0 && stamp == self.receiver.rcv_tsecr {
            self.recovery.undo_marker = None;
        }
    }

    /// The windows that the transfer begins with (`tcp_init_transfer`): one segment if more
    /// than one SYN or SYN-ACK was sent again (RFC 5681 section 3.1), else the initial window.
    fn begin_transfer(&mut self, context: &Context<'_, '_>) {
        let punished = self.total_retrans > 1 && self.recovery.undo_marker.is_some();
        self.congestion.cwnd = if punished { 1 } else { context.settings.initcwnd };
        // tcp_init_metrics: whatever the handshake did to it.
        self.congestion.ssthresh = super::congestion::INFINITE;
        self.lsndtime = context.clock.jiffies;
        self.last_sent_at = context.clock.event;
        debug_assert!(self.ca_state <= CaState::Disorder);
    }

    /// A round-trip time from the echoed time stamp, us (`tcp_rtt_tsopt_us`).
    pub(super) fn stamp_rtt_us(&self, context: &Context<'_, '_>) -> u32 {
        let now = context.clock.stamp;
        now.saturating_sub(self.receiver.rcv_tsecr).max(1) * 1_000
    }
}
