// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loss recovery: fast recovery with proportional rate reduction (RFC 6937) and timeouts with F-RTO
//! (RFC 5682). Follows net/ipv4/tcp_input.c of 6.18.

use super::flags::Flags;
use super::kernel::Kernel;
use super::queue::{EVER_RETRANS, LOST, RETRANS, SACKED};
use super::rack::Rack;
use super::{CaState, Context, Pending, Socket, State};

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
    pub prior_cwnd: u32,
    pub prior_ssthresh: u32,
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
    pub rack: Rack,
}

/// What is to be sent after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retransmit {
    No,
    Lost,
    New,
}

impl Recovery {
    pub(crate) fn reset(&mut self, kernel: &Kernel) {
        *self =
            Recovery { reordering: kernel.reordering, rack: Rack::new(), ..Recovery::default() };
    }
}

impl Socket {
    /// The state machine of congestion (`tcp_fastretrans_alert`).
    pub(super) fn alert(
        &mut self,
        context: &mut Context<'_, '_>,
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
        context: &mut Context<'_, '_>,
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
    pub(super) fn any_retransmission(&self) -> bool {
        let head = self.queue.first();
        self.retrans_out > 0 || head.is_some_and(|head| head.flags & EVER_RETRANS != 0)
    }

    pub(super) fn try_keep_open(&mut self) {
        let disorder = self.left_out() > 0 || self.any_retransmission();
        let state = if disorder { CaState::Disorder } else { CaState::Open };
        if state != self.ca_state {
            self.ca_state = state;
            self.recovery.high_seq = self.snd_nxt;
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
    pub(super) fn enter_recovery(&mut self, context: &Context<'_, '_>) {
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
    pub(super) fn enter_loss(&mut self, context: &Context<'_, '_>) {
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
    fn mark_timed_out(&mut self, context: &Context<'_, '_>) {
        for index in 0..self.queue.all().len() {
            let segment = self.queue.all()[index];
            if index > 0 && self.rack_left_us(context, &segment, 0) > 0 {
                continue;
            }
            self.mark_lost(index);
        }
    }

    fn init_reduction(&mut self, context: &Context<'_, '_>) {
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

    // ---- timeouts and probes ----

    /// An acknowledgement after a timeout (`tcp_process_loss`; F-RTO, RFC 5682 section 3.1).
    fn process_loss(
        &mut self,
        _context: &Context<'_, '_>,
        flags: &Flags,
        retransmit: &mut Retransmit,
    ) {
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
    pub(super) fn process_probe_ack(&mut self, context: &Context<'_, '_>, ack: u32, flags: &Flags) {
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
    pub(super) fn transmit_recovery(&mut self, context: &mut Context<'_, '_>, what: Retransmit) {
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
    pub(super) fn retransmit_lost(&mut self, context: &mut Context<'_, '_>) {
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
    pub(super) fn retransmit(&mut self, context: &mut Context<'_, '_>, index: usize) {
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
