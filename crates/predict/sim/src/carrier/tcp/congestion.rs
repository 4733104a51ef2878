// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The congestion window: slow start, Reno and CUBIC, and what an idle time leaves of it.

use warifu_model::CongestionControl;

use super::{CaState, Context, Settings, Socket};

/// `TCP_INFINITE_SSTHRESH`.
pub(crate) const INFINITE: u32 = 0x7fff_ffff;

/// The congestion window and its growth.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Congestion {
    /// Segments.
    pub cwnd: u32,
    pub ssthresh: u32,
    cwnd_cnt: u32,
    max_packets_out: u32,
    cwnd_usage_seq: u32,
    is_cwnd_limited: bool,
    last_max_cwnd: u32,
    /// CUBIC: when this epoch began, us, 0 for not yet; its origin; the time to it, s.
    epoch_start_us: u64,
    origin: u32,
    k_seconds: f64,
    /// What Reno would have reached meanwhile, and what it has counted.
    tcp_cwnd: u32,
    ack_cnt: u32,
}

impl Congestion {
    pub(crate) fn reset(&mut self) {
        // TCP_INIT_CWND holds for the SYN whatever the route says.
        *self = Congestion { cwnd: 10, ssthresh: INFINITE, ..Congestion::default() };
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The threshold after a loss (`cubictcp_recalc_ssthresh`, `tcp_reno_ssthresh`).
    pub(crate) fn recalculated_ssthresh(&mut self, settings: &Settings) -> u32 {
        match settings.congestion_control {
            CongestionControl::Reno => (self.cwnd >> 1).max(2),
            CongestionControl::Cubic => {
                let beta = settings.kernel.cubic_beta;
                self.epoch_start_us = 0;
                self.last_max_cwnd = if self.cwnd < self.last_max_cwnd {
                    // Fast convergence.
                    self.cwnd * (1_024 + beta) / (2 * 1_024)
                } else {
                    self.cwnd
                };
                (self.cwnd * beta / 1_024).max(2)
            }
        }
    }

    /// CUBIC forgets its history on a timeout (`cubictcp_state`).
    pub(crate) fn on_timeout(&mut self) {
        self.last_max_cwnd = 0;
        self.epoch_start_us = 0;
        self.cwnd_cnt = 0;
    }

    pub(crate) fn clear_count(&mut self) {
        self.cwnd_cnt = 0;
    }

    /// Grows the window by acknowledged segments (`cubictcp_cong_avoid`,
    /// `tcp_reno_cong_avoid`).
    fn avoid(&mut self, settings: &Settings, now_us: u64, min_rtt_us: u32, mut acked: u32) {
        if !self.limited() {
            return;
        }
        if self.in_slow_start() {
            let cwnd = (self.cwnd + acked).min(self.ssthresh);
            acked -= cwnd - self.cwnd;
            self.cwnd = cwnd;
            if acked == 0 {
                return;
            }
        }
        let count = match settings.congestion_control {
            CongestionControl::Reno => self.cwnd,
            CongestionControl::Cubic => self.cubic_count(settings, now_us, min_rtt_us, acked),
        };
        self.grow_one_per(count, acked);
    }

    /// Whether the window is what limits the flow (`tcp_is_cwnd_limited`).
    fn limited(&self) -> bool {
        self.is_cwnd_limited || (self.in_slow_start() && self.cwnd < 2 * self.max_packets_out)
    }

    /// `tcp_cong_avoid_ai`: one segment more for each `count` acknowledged.
    fn grow_one_per(&mut self, count: u32, acked: u32) {
        if self.cwnd_cnt >= count {
            self.cwnd_cnt = 0;
            self.cwnd += 1;
        }
        self.cwnd_cnt += acked;
        if self.cwnd_cnt >= count {
            let more = self.cwnd_cnt / count;
            self.cwnd_cnt -= more * count;
            self.cwnd += more;
        }
    }

    /// After how many acknowledged segments CUBIC grows by one (`bictcp_update`; RFC 9438
    /// section 4.2), in floating point where the kernel has fixed.
    fn cubic_count(
        &mut self,
        settings: &Settings,
        now_us: u64,
        min_rtt_us: u32,
        acked: u32,
    ) -> u32 {
        // C = bic_scale * 10 / 1024, in segments per second cubed.
        let c = f64::from(settings.kernel.cubic_scale) * 10.0 / 1_024.0;
        self.ack_cnt += acked;
        if self.epoch_start_us == 0 {
            self.epoch_start_us = now_us.max(1);
            self.ack_cnt = acked;
            self.tcp_cwnd = self.cwnd;
            self.origin = self.last_max_cwnd.max(self.cwnd);
            self.k_seconds = (f64::from(self.origin - self.cwnd) / c).cbrt();
        }
        let rtt_us = if min_rtt_us == u32::MAX { 0 } else { min_rtt_us };
        let elapsed = (now_us - self.epoch_start_us + u64::from(rtt_us)) as f64 / 1e6;
        // The kernel's distance from the origin is in whole segments, before it and after.
        let target = f64::from(self.origin) + (c * (elapsed - self.k_seconds).powi(3)).trunc();
        let cwnd = f64::from(self.cwnd);
        let mut count =
            if target > cwnd { (cwnd / (target - cwnd)) as u32 } else { 100 * self.cwnd };
        if self.last_max_cwnd == 0 {
            count = count.min(20);
        }
        // RFC 9438 section 4.3: not slower than Reno would be.
        let beta = settings.kernel.cubic_beta;
        let scale = 8 * (1_024 + beta) / 3 / (1_024 - beta);
        let step = (self.cwnd * scale) >> 3;
        while step > 0 && self.ack_cnt > step {
            self.ack_cnt -= step;
            self.tcp_cwnd += 1;
        }
        if self.tcp_cwnd > self.cwnd {
            count = count.min(self.cwnd / (self.tcp_cwnd - self.cwnd));
        }
        count.max(2)
    }
}

impl Socket {
    /// Lets the window follow what an acknowledgement delivered (`tcp_cong_control`).
    pub(super) fn control_congestion(
        &mut self,
        context: &Context<'_, '_>,
        delivered: u32,
        newly_lost: u32,
        advanced: bool,
        data_acked: bool,
    ) {
        if matches!(self.ca_state, CaState::Cwr | CaState::Recovery) {
            self.reduce_window(delivered, newly_lost, advanced);
        } else if data_acked {
            let now_us = context.clock.now_us;
            self.congestion.avoid(context.settings, now_us, self.round_trip.min_rtt, delivered);
        }
    }

    /// Notes whether the window held something back (`tcp_cwnd_validate`).
    pub(super) fn validate_window(&mut self, limited: bool) {
        let congestion = &mut self.congestion;
        if self.snd_una >= congestion.cwnd_usage_seq
            || limited
            || (!congestion.is_cwnd_limited && self.packets_out > congestion.max_packets_out)
        {
            congestion.is_cwnd_limited = limited;
            congestion.max_packets_out = self.packets_out;
            congestion.cwnd_usage_seq = self.snd_nxt;
        }
    }

    /// After a time longer than the timeout without sending, the window shrinks
    /// (`tcp_slow_start_after_idle_check`, `tcp_cwnd_restart`).
    pub(super) fn restart_after_idle(&mut self, context: &Context<'_, '_>) {
        if !context.settings.kernel.slow_start_after_idle || self.packets_out > 0 {
            return;
        }
        let rto = i64::from(self.round_trip.rto);
        let mut idle = i64::from(context.clock.jiffies.wrapping_sub(self.lsndtime));
        let unchanged = self.congestion.cwnd <= context.settings.initcwnd
            && self.congestion.ssthresh == INFINITE;
        if !context.clock.is_noting() {
            context.clock.doubt(idle + 1 >= rto && !unchanged);
        } else if !unchanged {
            let least_rto = self.round_trip.least_timeout(&context.settings.kernel);
            if idle <= i64::from(least_rto) {
                context.clock.rely_on_ticks(self.last_sent_at, idle as u32, (0, least_rto));
            } else {
                context.clock.rely_on_all();
            }
        }
        if idle <= rto {
            return;
        }
        let congestion = &mut self.congestion;
        let restart = context.settings.initcwnd.min(congestion.cwnd);
        // tcp_current_ssthresh: three quarters of the window stay remembered.
        let remembered = (congestion.cwnd >> 1) + (congestion.cwnd >> 2);
        congestion.ssthresh = congestion.ssthresh.max(remembered);
        let mut cwnd = congestion.cwnd;
        loop {
            idle -= rto;
            if idle <= 0 || cwnd <= restart {
                break;
            }
            cwnd >>= 1;
        }
        congestion.cwnd = cwnd.max(restart);
    }
}
