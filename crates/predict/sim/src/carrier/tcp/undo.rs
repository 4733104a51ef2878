// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Undoing a reduction that was needless: by DSACK (RFC 2883) and by time stamps (Eifel, RFC 3522).
//! Follows net/ipv4/tcp_input.c of 6.18.

use super::queue::{EVER_RETRANS, LOST, RETRANS, Segment};
use super::rack::PERSISTENCE;
use super::{CaState, Context, Socket, State};

impl Socket {
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

    pub(super) fn may_undo(&self) -> bool {
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
        recovery.rack.advanced = true;
    }

    pub(super) fn try_undo_recovery(&mut self) {
        if self.may_undo() {
            self.undo(false);
        } else {
            self.recovery.rack.persist = self.recovery.rack.persist.saturating_sub(1);
        }
        self.ca_state = CaState::Open;
    }

    pub(super) fn try_undo_dsack(&mut self) -> bool {
        if self.recovery.undo_marker.is_none() || self.recovery.undo_retrans != 0 {
            return false;
        }
        self.recovery.rack.persist = (self.recovery.rack.persist + 1).min(PERSISTENCE);
        self.undo(false);
        true
    }

    /// `tcp_try_undo_loss`.
    pub(super) fn try_undo_loss(&mut self, by_frto: bool) -> bool {
        if !by_frto && !self.may_undo() {
            return false;
        }
        self.undo(true);
        self.retransmits = 0;
        self.ca_state = CaState::Open;
        true
    }

    /// `tcp_try_undo_partial`.
    pub(super) fn try_undo_partial(&mut self, context: &Context<'_, '_>, prior_una: u32) -> bool {
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
}
