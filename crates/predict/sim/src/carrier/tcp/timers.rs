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

/// What is known of when a timer runs at the earliest, in any trial whose decisions until it was
/// set were the same and whose round trips met [`RoundTrip::rely`]: not before both times.
///
/// [`RoundTrip::rely`]: super::round_trip::RoundTrip::rely
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// The event that set it, and for how long at least, ns.
    set_at: u16,
    least: u64,
    /// The event at which the first segment without an answer was sent, and for how long at least
    /// the timeout is, ns.
    sent_at: u16,
    least_timeout: u64,
}

impl Bounds {
    /// Of a timer that is set now to at least so many jiffies.
    pub(super) fn of(clock: &Clock, jiffies: u32) -> Bounds {
        let least = u64::from(jiffies) * clock.jiffy_ns();
        Bounds { set_at: clock.event, least, sent_at: clock.event, least_timeout: least }
    }
}

impl WheelTimer {
    /// Notes that it has not run yet. A timer never runs before its delay is over.
    #[inline]
    pub(super) fn rely(&self, clock: &Clock, bounds: &Bounds) {
        if clock.is_noting() && !matches!(self, WheelTimer::Stopped) {
            clock.rely(bounds.set_at, 0, bounds.least.saturating_sub(1));
            clock.rely(bounds.sent_at, 0, bounds.least_timeout.saturating_sub(1));
        }
    }

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
        self.arm(context, delay);
    }

    /// Notes that neither timer has run yet.
    pub(super) fn rely_on_timers(&self, clock: &Clock) {
        self.write_timer.rely(clock, &self.write_bounds);
        self.delack_timer.rely(clock, &self.delack_bounds);
    }

    /// What the timer for sending rests on that is set now to so many jiffies.
    ///
    /// Round trips are bounded from below, and so are both timeouts that come from them
    /// (`schedule_loss_probe`, `rearm_rto`): the smoothed round trip is no shorter than the
    /// shortest, the variance term at least the least timeout.
    #[cold]
    pub(super) fn bounds_of_write_timer(&self, context: &Context<'_, '_>, delay: u32) -> Bounds {
        let (clock, kernel) = (context.clock, &context.settings.kernel);
        if self.state != State::Established {
            // The timeout of a SYN or SYN-ACK depends on nothing.
            return Bounds::of(clock, delay);
        }
        let least_rtt_us = self.round_trip.least_us();
        let timeout_us = least_rtt_us + kernel.rto_min_us;
        let more = if self.packets_out == 1 { kernel.rto_min_us } else { kernel.timeout_min_us };
        let least_us = match self.pending {
            Pending::LossProbe => (2 * least_rtt_us + more).min(timeout_us),
            Pending::Retransmit => timeout_us,
            Pending::None | Pending::Reorder => 0,
        };
        Bounds {
            set_at: clock.event,
            least: u64::from(least_us) * 1_000,
            sent_at: self.queue.first().map_or(clock.event, |segment| segment.event),
            least_timeout: u64::from(timeout_us) * 1_000,
        }
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
        segment.event = context.clock.event;
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
            self.last_sent_at = context.clock.event;
            self.receiver.data_sent(context.clock);
        }
    }
}
