// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The timer for sending: retransmission, tail loss probe, reordering (net/ipv4/tcp_timer.c).

use super::queue::{EVER_RETRANS, UNLISTED};
use super::wire::{AGAIN, SYN};
use super::{CaState, Context, Pending, Socket, State};
use crate::clock::Clock;
use crate::time::Time;

/// A timer on the kernel's wheel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WheelTimer {
    /// Not set.
    Stopped,
    /// Set in the event at hand; when it expires is worked out at the event's end, for most are set
    /// anew before that.
    Set {
        /// The jiffy at which it was set.
        set_at: u32,
        /// Jiffies.
        delay: u32,
    },
    /// Set in an earlier event.
    Running {
        /// The jiffy at which it was set.
        set_at: u32,
        /// Jiffies.
        delay: u32,
        /// ns.
        expires_at: u64,
    },
}

impl WheelTimer {
    /// Sets it, or sets it anew.
    pub(super) fn set(&mut self, clock: &Clock, delay: u32) {
        self.doubt(clock);
        *self = WheelTimer::Set { set_at: clock.jiffies, delay };
    }

    /// Stops it.
    pub(super) fn stop(&mut self, clock: &Clock) {
        self.doubt(clock);
        *self = WheelTimer::Stopped;
    }

    /// When it expires; to be asked at the end of an event.
    #[inline]
    pub(super) fn expires_at(&mut self, clock: &Clock) -> Time {
        match *self {
            WheelTimer::Stopped => Time::NONE,
            WheelTimer::Running { expires_at, .. } => Time::at(expires_at),
            WheelTimer::Set { set_at, delay } => {
                let expires_at = clock.timer_ns(delay);
                *self = WheelTimer::Running { set_at, delay, expires_at };
                Time::at(expires_at)
            }
        }
    }

    /// See [`Clock::doubt_timer`].
    #[inline]
    pub(super) fn doubt(&self, clock: &Clock) {
        match *self {
            WheelTimer::Stopped => {}
            WheelTimer::Set { set_at, delay } | WheelTimer::Running { set_at, delay, .. } => {
                clock.doubt_timer(set_at, delay);
            }
        }
    }
}

impl Socket {
    /// Sets the timer for sending to a number of jiffies from now.
    pub(super) fn set_timer(&mut self, context: &Context<'_, '_>, pending: Pending, jiffies: u32) {
        self.pending = pending;
        let delay = jiffies.min(context.settings.kernel.rto_max);
        self.arm(context.clock, delay);
    }

    /// The timer for sending ran (`tcp_write_timer_handler`).
    pub(crate) fn on_write_timer(&mut self, context: &mut Context<'_, '_>) {
        self.write_timer = WheelTimer::Stopped;
        context.clock.doubt(true);
        if self.state == State::SynReceived {
            self.on_request_timer(context);
            return;
        }
        match std::mem::replace(&mut self.pending, Pending::None) {
            Pending::None => {}
            Pending::Reorder => {
                self.pending = Pending::Reorder;
                self.on_reorder_timer(context);
            }
            Pending::LossProbe => {
                self.pending = Pending::LossProbe;
                self.send_loss_probe(context);
            }
            Pending::Retransmit => self.on_retransmit_timer(context),
        }
    }

    /// `tcp_retransmit_timer`.
    fn on_retransmit_timer(&mut self, context: &mut Context<'_, '_>) {
        let kernel = &context.settings.kernel;
        if self.packets_out == 0 {
            return;
        }
        self.recovery.tlp_high_seq = 0;
        let opening = self.state == State::SynSent;
        if self.gives_up(context) {
            self.state = State::Failed;
            self.clear_timer(context);
            return;
        }
        self.enter_loss(context);
        self.retransmits += 1;
        self.total_rto += 1;
        self.retransmit(context, 0);
        if !opening || self.total_rto > u32::from(kernel.syn_linear_timeouts) {
            self.round_trip.back_off(kernel);
        }
        self.set_timer(context, Pending::Retransmit, self.round_trip.rto);
    }

    /// Whether the timeouts have been enough (`tcp_write_timeout`): counted for a SYN, of which the
    /// linear ones come on top; for data a time since the first copy (`retransmits_timed_out`).
    fn gives_up(&self, context: &Context<'_, '_>) -> bool {
        let kernel = &context.settings.kernel;
        if self.state == State::SynSent {
            let most = u32::from(kernel.syn_retries) + u32::from(kernel.syn_linear_timeouts);
            return self.retransmits >= most;
        }
        let since_ms = context.clock.stamp.wrapping_sub(self.recovery.retrans_stamp);
        self.retransmits > 0 && since_ms >= kernel.data_timeout_ms
    }

    /// How long until the first segment's timeout, us; not positive when it is over
    /// (`tcp_rto_delta_us`).
    fn rto_delta_us(&self, context: &Context<'_, '_>) -> i64 {
        let sent = self.queue.first().map_or(context.clock.now, |segment| segment.sent);
        let rto_us = u64::from(self.round_trip.rto) * context.settings.kernel.jiffy.us;
        (sent / 1_000 + rto_us) as i64 - context.clock.now_us as i64
    }

    /// `tcp_rearm_rto`.
    pub(super) fn rearm_rto(&mut self, context: &Context<'_, '_>) {
        if self.packets_out == 0 {
            self.clear_timer(context);
            return;
        }
        let mut rto = self.round_trip.rto;
        if matches!(self.pending, Pending::Reorder | Pending::LossProbe) {
            let left = self.rto_delta_us(context).max(1) as u64;
            rto = context.settings.kernel.jiffy.ceil_us(left);
        }
        self.set_timer(context, Pending::Retransmit, rto);
    }

    /// Sets the timer for a tail loss probe, if one may be sent (`tcp_schedule_loss_probe`;
    /// RFC 8985 section 7.2).
    pub(super) fn schedule_loss_probe(
        &mut self,
        context: &Context<'_, '_>,
        advancing: bool,
    ) -> bool {
        let kernel = &context.settings.kernel;
        if !kernel.tail_loss_probe
            || self.packets_out == 0
            || !matches!(self.ca_state, CaState::Open | CaState::Cwr)
        {
            return false;
        }
        let mut timeout = if self.round_trip.srtt > 0 {
            // Twice the round trip, and for a lone segment the longest delay of its
            // acknowledgement.
            let more =
                if self.packets_out == 1 { kernel.rto_min_us } else { kernel.timeout_min_us };
            kernel.jiffy.ceil_us(u64::from(self.round_trip.srtt >> 2) + u64::from(more))
        } else {
            kernel.timeout_init
        };
        let rto_us = if advancing {
            i64::from(self.round_trip.rto) * kernel.jiffy.us as i64
        } else {
            self.rto_delta_us(context)
        };
        if rto_us > 0 {
            timeout = timeout.min(kernel.jiffy.ceil_us(rto_us as u64));
        }
        self.set_timer(context, Pending::LossProbe, timeout);
        true
    }

    /// `tcp_send_loss_probe`.
    fn send_loss_probe(&mut self, context: &mut Context<'_, '_>) {
        if self.recovery.tlp_high_seq != 0 {
            self.rearm_rto(context);
            return;
        }
        self.recovery.tlp_retrans = false;
        let sent_new = self.write_seq > self.snd_nxt && {
            let before = self.packets_out;
            self.write_probe(context);
            self.packets_out > before
        };
        if !sent_new {
            let Some(last) = self.queue.all().len().checked_sub(1) else {
                self.rearm_rto(context);
                return;
            };
            self.send_again(context, last);
            self.recovery.tlp_retrans = true;
        }
        self.recovery.tlp_high_seq = self.snd_nxt;
        // So that the retransmission timer starts from now.
        self.pending = Pending::None;
        self.rearm_rto(context);
    }

    /// Puts a copy of a sent segment on the link (`__tcp_retransmit_skb`).
    pub(super) fn send_again(&mut self, context: &mut Context<'_, '_>, index: usize) {
        self.collapse(context, index);
        let stamp = context.clock.stamp;
        let now = context.clock.now;
        self.transmissions += 1;
        let segment = &mut self.queue.all_mut()[index];
        segment.sent = now;
        segment.order = self.transmissions;
        segment.stamp = stamp;
        segment.flags |= EVER_RETRANS;
        // tcp_update_skb_after_send.
        segment.flags &= !UNLISTED;
        let segment = *segment;
        self.total_retrans += 1;
        let flags = if self.state == State::SynSent { SYN } else { self.data_flags(segment.end) };
        let mut packet = self.segment(context, segment.seq, segment.end, flags | AGAIN);
        if self.state == State::SynSent {
            context.send(&packet, segment.first_sent);
        } else {
            self.transmit(context, &mut packet, segment.first_sent);
            self.lsndtime = context.clock.jiffies;
            self.receiver.data_sent(context.clock);
        }
    }
}
