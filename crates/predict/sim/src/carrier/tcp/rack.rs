// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loss detection by time: RACK (RFC 8985). Follows net/ipv4/tcp_recovery.c of 6.18.

use super::flags::Flags;
use super::kernel::Kernel;
use super::queue::{EVER_RETRANS, LOST, RETRANS, SACKED, Segment, UNLISTED};
use super::{CaState, Context, Pending, Socket};

/// `TCP_RACK_RECOVERY_THRESH`.
pub(super) const PERSISTENCE: u8 = 16;

/// What RACK must remember.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rack {
    /// Which transmission was the latest of those delivered; its round trip, us.
    order: u32,
    rtt_us: u32,
    pub advanced: bool,
    pub dsack_seen: bool,
    steps: u8,
    pub persist: u8,
    adjusted_at: u32,
}

impl Rack {
    pub(crate) fn new() -> Rack {
        Rack { steps: 1, ..Rack::default() }
    }
}

impl Socket {
    /// Notes a delivered segment (`tcp_rack_advance`).
    pub(super) fn advance_rack(&mut self, context: &Context<'_, '_>, segment: &Segment) {
        let rtt_us = (context.clock.now_us - segment.sent / 1_000) as u32;
        if rtt_us < self.round_trip.min_rtt && segment.flags & (EVER_RETRANS | RETRANS) != 0 {
            // Too quick for the copy: the first one was delivered, late.
            return;
        }
        let recovery = &mut self.recovery;
        recovery.rack.advanced = true;
        recovery.rack.rtt_us = rtt_us;
        recovery.rack.order = recovery.rack.order.max(segment.order);
    }

    /// How long a segment may come after one sent later, us (`tcp_rack_reo_wnd`).
    fn reordering_window_us(&self, kernel: &Kernel) -> u32 {
        if self.recovery.reord_seen == 0 {
            if self.ca_state >= CaState::Recovery {
                return 0;
            }
            if self.sacked_out >= self.recovery.reordering && !kernel.rack_no_dupthresh {
                return 0;
            }
        }
        let steps = u32::from(self.recovery.rack.steps);
        (self.round_trip.min_rtt >> 2).saturating_mul(steps).min(self.round_trip.srtt >> 3)
    }

    /// Time left until a segment counts as lost, us (`tcp_rack_skb_timeout`).
    pub(super) fn rack_left_us(
        &self,
        context: &Context<'_, '_>,
        segment: &Segment,
        window_us: u32,
    ) -> i64 {
        let since = context.clock.now_us as i64 - (segment.sent / 1_000) as i64;
        i64::from(self.recovery.rack.rtt_us) + i64::from(window_us) - since
    }

    /// Marks what is lost; the time until more may be, us (`tcp_rack_detect_loss`).
    fn detect_loss(&mut self, context: &Context<'_, '_>) -> u32 {
        context.clock.rely_on_all();
        let window_us = self.reordering_window_us(&context.settings.kernel);
        let latest = self.recovery.rack.order;
        let mut left_us = 0;
        for index in 0..self.queue.all().len() {
            let segment = self.queue.all()[index];
            let waits = segment.flags & LOST != 0 && segment.flags & RETRANS == 0;
            if segment.flags & (SACKED | UNLISTED) != 0 || waits || segment.order >= latest {
                continue;
            }
            let left = self.rack_left_us(context, &segment, window_us);
            if left <= 0 {
                self.mark_lost(index);
                // An undo takes the mark away and leaves it off the list: if it is lost indeed,
                // only a timeout sends it again.
                self.queue.all_mut()[index].flags |= UNLISTED;
            } else {
                left_us = left_us.max(left as u32);
            }
        }
        left_us
    }

    /// `tcp_mark_skb_lost`.
    pub(super) fn mark_lost(&mut self, index: usize) {
        let segment = &mut self.queue.all_mut()[index];
        if segment.flags & SACKED != 0 {
            return;
        }
        if segment.flags & LOST == 0 {
            segment.flags |= LOST;
            self.lost_out += 1;
            self.recovery.lost += 1;
        } else if segment.flags & RETRANS != 0 {
            self.recovery.lost += 1;
        }
        if segment.flags & RETRANS != 0 {
            segment.flags &= !RETRANS;
            self.retrans_out -= 1;
        }
    }

    /// `tcp_identify_packet_loss` with `tcp_rack_mark_lost`.
    pub(super) fn identify_loss(&mut self, context: &Context<'_, '_>, flags: &mut Flags) {
        if self.queue.first().is_none() || !self.recovery.rack.advanced {
            return;
        }
        let prior_retrans = self.retrans_out;
        self.recovery.rack.advanced = false;
        let left_us = self.detect_loss(context);
        if left_us > 0 {
            let kernel = &context.settings.kernel;
            let delay = kernel.jiffy.ceil_us(u64::from(left_us + kernel.timeout_min_us));
            // Not later than the timeout (`inet_csk_reset_xmit_timer`, `max_when`).
            self.set_timer(context, Pending::Reorder, delay.min(self.round_trip.rto));
            flags.set_timer = false;
        }
        if prior_retrans > self.retrans_out {
            flags.lost_retransmission = true;
        }
    }

    /// The time for reordering is over (`tcp_rack_reo_timeout`).
    pub(super) fn on_reorder_timer(&mut self, context: &mut Context<'_, '_>) {
        let prior = self.packets_in_flight();
        self.detect_loss(context);
        if prior != self.packets_in_flight() {
            if self.ca_state != CaState::Recovery {
                self.enter_recovery(context);
                self.reduce_window(1, 0, false);
            }
            self.retransmit_lost(context);
        }
        if self.pending != Pending::Retransmit {
            self.rearm_rto(context);
        }
    }

    /// Widens RACK's window when duplicates say that it was too narrow
    /// (`tcp_rack_update_reo_wnd`).
    pub(super) fn update_reordering_window(&mut self, context: &Context<'_, '_>) {
        let recovery = &mut self.recovery;
        if context.settings.kernel.rack_static_window {
            return;
        }
        if self.snd_una < recovery.rack.adjusted_at {
            // Once a round trip.
            recovery.rack.dsack_seen = false;
        }
        if recovery.rack.dsack_seen {
            recovery.rack.steps = recovery.rack.steps.saturating_add(1);
            recovery.rack.dsack_seen = false;
            recovery.rack.adjusted_at = self.snd_nxt;
            recovery.rack.persist = PERSISTENCE;
        } else if recovery.rack.persist == 0 {
            recovery.rack.steps = 1;
        }
    }
}
