// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loss detection and recovery: RACK (RFC 8985), fast recovery with proportional rate
//! reduction (RFC 6937), timeouts with F-RTO (RFC 5682), and undoing what was needless by DSACK
//! and time stamps (Eifel, RFC 3522). Follows net/ipv4/tcp_input.c and tcp_recovery.c of 6.18.

use super::queue::{EVER_RETRANS, LOST, RETRANS, SACKED, Segment};
use super::{CaState, Context, Pending, Socket, State};
use crate::kernel::Kernel;

/// `TCP_RACK_RECOVERY_THRESH`.
const RACK_PERSISTENCE: u8 = 16;

/// What a recovery must remember.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recovery {
    /// `snd_nxt` when the present state was entered.
    pub high_seq: u32,
    /// Where undoing would begin; `None` when there is nothing to undo.
    pub undo_marker: Option<u32>,
    pub undo_retrans: i32,
    /// Time stamp of the first retransmission, ms; 0 for none.
    pub retrans_stamp: u32,
    prior_cwnd: u32,
    prior_ssthresh: u32,
    prr_delivered: u32,
    pub prr_out: u32,
    frto: bool,
    pub tlp_high_seq: u32,
    pub tlp_retrans: bool,
    /// Segments marked lost in all.
    pub lost: u32,
    pub reordering: u32,
    pub reord_seen: u32,
    pub dsack_dups: u32,
    /// RACK: which transmission was the latest of those delivered; its round trip, us.
    rack_order: u32,
    rack_rtt_us: u32,
    rack_advanced: bool,
    pub rack_dsack_seen: bool,
    rack_steps: u8,
    rack_persist: u8,
    rack_adjusted_at: u32,
}

/// What an acknowledgement brought (the kernel's `FLAG_*`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub data: bool,
    pub window_update: bool,
    pub data_acked: bool,
    pub syn_acked: bool,
    pub advanced: bool,
    pub data_sacked: bool,
    pub original_acked: bool,
    pub dsacking: bool,
    pub dsack_of_probe: bool,
    pub set_timer: bool,
    pub lost_retransmission: bool,
}

/// What is to be sent after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retransmit {
    No,
    Lost,
    New,
}

impl Flags {
    pub(super) fn acked(&self) -> bool {
        self.data_acked || self.syn_acked
    }

    fn not_duplicate(&self) -> bool {
        self.data || self.window_update || self.acked()
    }

    /// `tcp_ack_is_dubious`, but for the state.
    pub(super) fn dubious(&self) -> bool {
        !self.not_duplicate() || self.data_sacked || self.dsacking
    }

    fn plain_duplicate(&self) -> bool {
        !(self.advanced || self.not_duplicate() || self.dsacking)
    }
}

impl Recovery {
    pub(crate) fn reset(&mut self, kernel: &Kernel) {
        *self = Recovery { reordering: kernel.reordering, rack_steps: 1, ..Recovery::default() };
    }
}

impl Socket {
    /// The state machine of congestion (`tcp_fastretrans_alert`).
    pub(super) fn alert(
        &mut self,
        context: &mut Context<'_>,
        prior_una: u32,
        flags: &mut Flags,
        retransmit: &mut Retransmit,
    ) {
        if self.packets_out == 0 {
            self.sacked_out = 0;
        }
        if self.ca_state == CaState::Open {
            self.recovery.retrans_stamp = 0;
        } else if self.snd_una >= self.recovery.high_seq {
            match self.ca_state {
                CaState::Cwr if self.snd_una != self.recovery.high_seq => {
                    self.end_reduction();
                    self.ca_state = CaState::Open;
                }
                CaState::Recovery => {
                    self.try_undo_recovery();
                    self.end_reduction();
                }
                _ => {}
            }
        }
        match self.ca_state {
            CaState::Recovery => {
                if flags.advanced && self.try_undo_partial(context, prior_una) {
                    return;
                }
                if self.try_undo_dsack() {
                    self.try_keep_open();
                }
                self.identify_loss(context, flags);
                if self.ca_state != CaState::Recovery {
                    if self.lost_out == 0 {
                        return;
                    }
                    self.enter_recovery(context);
                }
            }
            CaState::Loss => {
                self.process_loss(context, flags, retransmit);
                self.identify_loss(context, flags);
                if self.ca_state != CaState::Open && !flags.lost_retransmission {
                    return;
                }
                self.alert_by_default(context, flags, retransmit);
                return;
            }
            _ => {
                self.alert_by_default(context, flags, retransmit);
                return;
            }
        }
        *retransmit = Retransmit::Lost;
    }

    fn alert_by_default(
        &mut self,
        context: &mut Context<'_>,
        flags: &mut Flags,
        retransmit: &mut Retransmit,
    ) {
        if self.ca_state <= CaState::Disorder {
            self.try_undo_dsack();
        }
        self.identify_loss(context, flags);
        if self.lost_out == 0 {
            self.try_to_open();
            return;
        }
        self.enter_recovery(context);
        *retransmit = Retransmit::Lost;
    }

    fn try_to_open(&mut self) {
        if !self.any_retransmission() {
            self.recovery.retrans_stamp = 0;
        }
        if self.ca_state != CaState::Cwr {
            self.try_keep_open();
        }
    }

    /// Whether something sent again may still be unanswered (`tcp_any_retrans_done`).
    fn any_retransmission(&self) -> bool {
        let head = self.queue.first();
        self.retrans_out > 0 || head.is_some_and(|head| head.flags & EVER_RETRANS != 0)
    }

    fn try_keep_open(&mut self) {
        let disorder = self.left_out() > 0 || self.any_retransmission();
        let state = if disorder { CaState::Disorder } else { CaState::Open };
        if state != self.ca_state {
            self.ca_state = state;
            self.recovery.high_seq = self.snd_nxt;
        }
    }

    // ---- RACK ----

    /// Notes a delivered segment (`tcp_rack_advance`).
    pub(super) fn advance_rack(&mut self, context: &Context<'_>, segment: &Segment) {
        let rtt_us = (context.clock.now_us - segment.sent / 1_000) as u32;
        if rtt_us < self.round_trip.min_rtt && segment.flags & (EVER_RETRANS | RETRANS) != 0 {
            // Too quick for the copy: the first one was delivered, late.
            return;
        }
        let recovery = &mut self.recovery;
        recovery.rack_advanced = true;
        recovery.rack_rtt_us = rtt_us;
        recovery.rack_order = recovery.rack_order.max(segment.order);
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
        let steps = u32::from(self.recovery.rack_steps);
        (self.round_trip.min_rtt >> 2).saturating_mul(steps).min(self.round_trip.srtt >> 3)
    }

    /// Time left until a segment counts as lost, us (`tcp_rack_skb_timeout`).
    fn rack_left_us(&self, context: &Context<'_>, segment: &Segment, window_us: u32) -> i64 {
        let since = context.clock.now_us as i64 - (segment.sent / 1_000) as i64;
        i64::from(self.recovery.rack_rtt_us) + i64::from(window_us) - since
    }

    /// Marks what is lost; the time until more may be, us (`tcp_rack_detect_loss`).
    fn detect_loss(&mut self, context: &Context<'_>) -> u32 {
        let window_us = self.reordering_window_us(&context.settings.kernel);
        let latest = self.recovery.rack_order;
        let mut left_us = 0;
        for index in 0..self.queue.all().len() {
            let segment = self.queue.all()[index];
            let waits = segment.flags & LOST != 0 && segment.flags & RETRANS == 0;
            if segment.flags & SACKED != 0 || waits || segment.order >= latest {
                continue;
            }
            let left = self.rack_left_us(context, &segment, window_us);
            if left <= 0 {
                self.mark_lost(index);
            } else {
                left_us = left_us.max(left as u32);
            }
        }
        left_us
    }

    /// `tcp_mark_skb_lost`.
    fn mark_lost(&mut self, index: usize) {
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
    fn identify_loss(&mut self, context: &Context<'_>, flags: &mut Flags) {
        if self.queue.first().is_none() || !self.recovery.rack_advanced {
            return;
        }
        let prior_retrans = self.retrans_out;
        self.recovery.rack_advanced = false;
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
    pub(super) fn on_reorder_timer(&mut self, context: &mut Context<'_>) {
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
    pub(super) fn update_reordering_window(&mut self, context: &Context<'_>) {
        let recovery = &mut self.recovery;
        if context.settings.kernel.rack_static_window {
            return;
        }
        if self.snd_una < recovery.rack_adjusted_at {
            // Once a round trip.
            recovery.rack_dsack_seen = false;
        }
        if recovery.rack_dsack_seen {
            recovery.rack_steps = recovery.rack_steps.saturating_add(1);
            recovery.rack_dsack_seen = false;
            recovery.rack_adjusted_at = self.snd_nxt;
            recovery.rack_persist = RACK_PERSISTENCE;
        } else if recovery.rack_persist == 0 {
            recovery.rack_steps = 1;
        }
    }

    // ---- entering ----

    fn init_undo(&mut self) {
        let recovery = &mut self.recovery;
        recovery.undo_marker = Some(self.snd_una);
        let probes = i32::from(recovery.tlp_high_seq != 0 && recovery.tlp_retrans);
        let copies = self.retrans_out as i32 + probes;
        // 0 would mean "undo now".
        recovery.undo_retrans = if copies == 0 { -1 } else { copies };
    }

    /// `tcp_current_ssthresh`.
    fn current_ssthresh(&self) -> u32 {
        let congestion = &self.congestion;
        if matches!(self.ca_state, CaState::Cwr | CaState::Recovery) {
            return congestion.ssthresh;
        }
        congestion.ssthresh.max((congestion.cwnd >> 1) + (congestion.cwnd >> 2))
    }

    /// `tcp_enter_recovery`.
    fn enter_recovery(&mut self, context: &Context<'_>) {
        if !self.any_retransmission() {
            self.recovery.retrans_stamp = 0;
        }
        self.recovery.prior_ssthresh = 0;
        self.init_undo();
        if !matches!(self.ca_state, CaState::Cwr | CaState::Recovery) {
            self.recovery.prior_ssthresh = self.current_ssthresh();
            self.init_reduction(context);
        }
        self.ca_state = CaState::Recovery;
    }

    /// `tcp_enter_loss`.
    pub(super) fn enter_loss(&mut self, context: &Context<'_>) {
        let new_recovery = self.ca_state < CaState::Recovery;
        self.mark_timed_out(context);
        if self.ca_state <= CaState::Disorder
            || self.recovery.high_seq <= self.snd_una
            || (self.ca_state == CaState::Loss && self.retransmits == 0)
        {
            self.recovery.prior_ssthresh = self.current_ssthresh();
            self.recovery.prior_cwnd = self.congestion.cwnd;
            self.congestion.ssthresh = self.congestion.recalculated_ssthresh(context.settings);
            self.init_undo();
        }
        self.congestion.cwnd = self.packets_in_flight() + 1;
        self.congestion.on_timeout();
        let kernel = &context.settings.kernel;
        if self.ca_state <= CaState::Disorder && self.sacked_out >= kernel.reordering {
            self.recovery.reordering = self.recovery.reordering.min(kernel.reordering);
        }
        self.ca_state = CaState::Loss;
        self.recovery.high_seq = self.snd_nxt;
        self.recovery.tlp_high_seq = 0;
        self.recovery.frto = kernel.frto && (new_recovery || self.retransmits > 0);
    }

    /// All but what was sent a short while ago (`tcp_timeout_mark_lost`).
    fn mark_timed_out(&mut self, context: &Context<'_>) {
        for index in 0..self.queue.all().len() {
            let segment = self.queue.all()[index];
            if index > 0 && self.rack_left_us(context, &segment, 0) > 0 {
                continue;
            }
            self.mark_lost(index);
        }
    }

    fn init_reduction(&mut self, context: &Context<'_>) {
        let recovery = &mut self.recovery;
        recovery.high_seq = self.snd_nxt;
        recovery.tlp_high_seq = 0;
        recovery.prior_cwnd = self.congestion.cwnd;
        recovery.prr_delivered = 0;
        recovery.prr_out = 0;
        self.congestion.clear_count();
        self.congestion.ssthresh = self.congestion.recalculated_ssthresh(context.settings);
    }

    /// Proportional rate reduction (`tcp_cwnd_reduction`).
    pub(super) fn reduce_window(&mut self, delivered: u32, newly_lost: u32, advanced: bool) {
        let in_flight = self.packets_in_flight();
        let recovery = &mut self.recovery;
        if delivered == 0 || recovery.prior_cwnd == 0 {
            return;
        }
        recovery.prr_delivered += delivered;
        let ssthresh = self.congestion.ssthresh;
        let delta = i64::from(ssthresh) - i64::from(in_flight);
        let (made, out) = (i64::from(recovery.prr_delivered), i64::from(recovery.prr_out));
        let count = if delta < 0 {
            let prior = i64::from(recovery.prior_cwnd);
            (i64::from(ssthresh) * made + prior - 1) / prior - out
        } else {
            let mut count = (made - out).max(i64::from(delivered));
            if advanced && newly_lost == 0 {
                count += 1;
            }
            count.min(delta)
        };
        let count = count.max(i64::from(recovery.prr_out == 0));
        self.congestion.cwnd = (i64::from(in_flight) + count).max(0) as u32;
    }

    fn end_reduction(&mut self) {
        let undoable = self.recovery.undo_marker.is_some();
        if self.congestion.ssthresh < super::congestion::INFINITE
            && (self.ca_state == CaState::Cwr || undoable)
        {
            self.congestion.cwnd = self.congestion.ssthresh;
        }
    }

    // ---- undoing ----

    /// Whether the echoed time stamp is older than a given one (`tcp_tsopt_ecr_before`).
    fn echo_before(&self, stamp: u32) -> bool {
        self.receiver.rcv_tsecr != 0 && self.receiver.rcv_tsecr < stamp
    }

    /// What is acknowledged is the first copy, not the one sent again
    /// (`tcp_skb_spurious_retrans`).
    pub(super) fn spurious_retransmission(&self, segment: &Segment) -> bool {
        segment.flags & (EVER_RETRANS | RETRANS) != 0 && self.echo_before(segment.stamp)
    }

    /// `tcp_packet_delayed`.
    fn packet_delayed(&self) -> bool {
        if self.recovery.retrans_stamp != 0 {
            return self.echo_before(self.recovery.retrans_stamp);
        }
        self.state != State::SynSent
    }

    fn may_undo(&self) -> bool {
        self.recovery.undo_marker.is_some()
            && (self.recovery.undo_retrans == 0 || self.packet_delayed())
    }

    /// `tcp_undo_cwnd_reduction`.
    fn undo(&mut self, unmark: bool) {
        if unmark {
            for segment in self.queue.all_mut() {
                segment.flags &= !LOST;
            }
            self.lost_out = 0;
        }
        let recovery = &mut self.recovery;
        if recovery.prior_ssthresh != 0 {
            self.congestion.cwnd = self.congestion.cwnd.max(recovery.prior_cwnd);
            self.congestion.ssthresh = self.congestion.ssthresh.max(recovery.prior_ssthresh);
        }
        recovery.undo_marker = None;
        recovery.rack_advanced = true;
    }

    fn try_undo_recovery(&mut self) {
        if self.may_undo() {
            self.undo(false);
        } else {
            self.recovery.rack_persist = self.recovery.rack_persist.saturating_sub(1);
        }
        self.ca_state = CaState::Open;
    }

    fn try_undo_dsack(&mut self) -> bool {
        if self.recovery.undo_marker.is_none() || self.recovery.undo_retrans != 0 {
            return false;
        }
        self.recovery.rack_persist = (self.recovery.rack_persist + 1).min(RACK_PERSISTENCE);
        self.undo(false);
        true
    }

    /// `tcp_try_undo_loss`.
    fn try_undo_loss(&mut self, by_frto: bool) -> bool {
        if !by_frto && !self.may_undo() {
            return false;
        }
        self.undo(true);
        self.retransmits = 0;
        self.ca_state = CaState::Open;
        true
    }

    /// `tcp_try_undo_partial`.
    fn try_undo_partial(&mut self, context: &Context<'_>, prior_una: u32) -> bool {
        if self.recovery.undo_marker.is_none() || !self.packet_delayed() {
            return false;
        }
        self.note_reordering(context, prior_una);
        if self.retrans_out > 0 {
            return true;
        }
        if !self.any_retransmission() {
            self.recovery.retrans_stamp = 0;
        }
        self.undo(true);
        self.try_keep_open();
        false
    }

    // ---- timeouts and probes ----

    /// An acknowledgement after a timeout (`tcp_process_loss`; F-RTO, RFC 5682 section 3.1).
    fn process_loss(&mut self, _context: &Context<'_>, flags: &Flags, retransmit: &mut Retransmit) {
        let recovered = self.snd_una >= self.recovery.high_seq;
        if flags.advanced && self.try_undo_loss(false) {
            return;
        }
        if self.recovery.frto {
            if flags.original_acked && self.try_undo_loss(true) {
                return;
            }
            if self.snd_nxt > self.recovery.high_seq {
                if flags.data_sacked || flags.plain_duplicate() {
                    self.recovery.frto = false;
                }
            } else if flags.advanced && !recovered {
                self.recovery.high_seq = self.snd_nxt;
                if self.write_seq > self.snd_nxt {
                    *retransmit = Retransmit::New;
                    return;
                }
                self.recovery.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery();
            return;
        }
        *retransmit = Retransmit::Lost;
    }

    /// `tcp_process_tlp_ack`.
    pub(super) fn process_probe_ack(&mut self, context: &Context<'_>, ack: u32, flags: &Flags) {
        let high = self.recovery.tlp_high_seq;
        if ack < high {
            return;
        }
        if !self.recovery.tlp_retrans || flags.dsack_of_probe {
            self.recovery.tlp_high_seq = 0;
        } else if ack > high {
            // The probe repaired a loss, which is a sign of congestion.
            self.init_reduction(context);
            self.ca_state = CaState::Cwr;
            self.end_reduction();
            self.try_keep_open();
        } else if !(flags.advanced || flags.not_duplicate() || flags.data_sacked) {
            self.recovery.tlp_high_seq = 0;
        }
    }

    // ---- sending again ----

    /// `tcp_xmit_recovery`.
    pub(super) fn transmit_recovery(&mut self, context: &mut Context<'_>, what: Retransmit) {
        if what == Retransmit::No || self.state == State::SynSent {
            return;
        }
        if what == Retransmit::New {
            self.push_without_nagle(context);
            if self.snd_nxt > self.recovery.high_seq {
                return;
            }
            self.recovery.frto = false;
        }
        self.retransmit_lost(context);
    }

    /// Sends again what is lost, as the window allows (`tcp_xmit_retransmit_queue`).
    fn retransmit_lost(&mut self, context: &mut Context<'_>) {
        let mut rearm = false;
        let mut index = 0;
        while index < self.queue.all().len() {
            if self.congestion.cwnd <= self.packets_in_flight() || self.retrans_out >= self.lost_out
            {
                break;
            }
            let flags = self.queue.all()[index].flags;
            if flags & LOST != 0 && flags & (SACKED | RETRANS) == 0 {
                self.retransmit(context, index);
                if matches!(self.ca_state, CaState::Cwr | CaState::Recovery) {
                    self.recovery.prr_out += 1;
                }
                rearm |= index == 0 && self.pending != Pending::Reorder;
            }
            index += 1;
        }
        if rearm {
            self.set_timer(context, Pending::Retransmit, self.round_trip.rto);
        }
    }

    /// `tcp_retransmit_skb`.
    pub(super) fn retransmit(&mut self, context: &mut Context<'_>, index: usize) {
        if index >= self.queue.all().len() {
            return;
        }
        self.send_again(context, index);
        let segment = &mut self.queue.all_mut()[index];
        if segment.flags & RETRANS == 0 {
            segment.flags |= RETRANS;
            self.retrans_out += 1;
        }
        let recovery = &mut self.recovery;
        if recovery.retrans_stamp == 0 {
            recovery.retrans_stamp = segment.stamp;
        }
        recovery.undo_retrans = recovery.undo_retrans.max(0) + 1;
    }
}
