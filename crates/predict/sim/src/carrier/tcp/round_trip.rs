// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The round-trip time and the retransmission timeout.

use super::kernel::Kernel;
use crate::clock::Clock;

/// Sums of whole microseconds that the estimate may lose, us: far more than its few samples round
/// away, far less than a tick.
const ROUNDING_US: u32 = 50;
/// How much longer than the link's delay a round trip may be beside an eighth of it, ns: far more
/// than computing on the way takes, less than the delay of an acknowledgement.
const SLACK_NS: u64 = 10_000_000;

/// The estimate of the round-trip time (`tcp_rtt_estimator`), and the timeout from it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrip {
    /// Smoothed, us, times 8; 0 before the first sample.
    pub srtt: u32,
    mdev: u32,
    mdev_max: u32,
    rttvar: u32,
    rtt_seq: u32,
    /// The least so far, us; `u32::MAX` before the first sample (the kernel's window for it is
    /// 300 s, longer than a handshake).
    pub min_rtt: u32,
    /// Between which all of them are in every trial of the same kind ([`RoundTrip::rely`]), us; the
    /// second 0 before the first sample.
    bounds_us: [u32; 2],
    /// The timeout, jiffies (`icsk_rto`); doubled by each timeout.
    pub rto: u32,
}

impl RoundTrip {
    pub(crate) fn reset(&mut self, kernel: &Kernel) {
        let mdev = kernel.timeout_init * kernel.jiffy.us as u32;
        *self =
            RoundTrip { rto: kernel.timeout_init, min_rtt: u32::MAX, mdev, ..RoundTrip::default() };
    }

    /// Takes a sample, us; `una` and `nxt` say when a round trip is over.
    pub(crate) fn sample(&mut self, kernel: &Kernel, rtt_us: u32, una: u32, nxt: u32) {
        if self.srtt == 0 {
            self.srtt = rtt_us << 3;
            self.mdev = rtt_us << 1;
            self.rttvar = self.mdev.max(kernel.rto_min_us);
            self.mdev_max = self.rttvar;
            self.rtt_seq = nxt;
        } else {
            self.smooth(kernel, i64::from(rtt_us), una, nxt);
        }
        self.srtt = self.srtt.max(1);
        self.set_rto(kernel);
    }

    fn smooth(&mut self, kernel: &Kernel, rtt_us: i64, una: u32, nxt: u32) {
        let mut error = rtt_us - i64::from(self.srtt >> 3);
        self.srtt = (i64::from(self.srtt) + error) as u32;
        let quarter = i64::from(self.mdev >> 2);
        if error < 0 {
            // A falling round-trip time shall not inflate the deviation (Eifel).
            error = -error - quarter;
            if error > 0 {
                error >>= 3;
            }
        } else {
            error -= quarter;
        }
        self.mdev = (i64::from(self.mdev) + error) as u32;
        if self.mdev > self.mdev_max {
            self.mdev_max = self.mdev;
            self.rttvar = self.rttvar.max(self.mdev_max);
        }
        if una > self.rtt_seq {
            if self.mdev_max < self.rttvar {
                self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
            }
            self.rtt_seq = nxt;
            self.mdev_max = kernel.rto_min_us;
        }
    }

    /// The timeout from the estimate (`tcp_set_rto`).
    fn set_rto(&mut self, kernel: &Kernel) {
        let us = u64::from(self.srtt >> 3) + u64::from(self.rttvar);
        self.rto = kernel.jiffy.ceil_us(us).min(kernel.rto_max);
    }

    /// Notes that a round trip that began with an event, at that time in ns, and ends now is one of
    /// few kinds of lengths: about the link's delay, or else within a power of two. What depends on
    /// the estimate is then bounded in every trial whose round trips are of the same kinds, by
    /// [`RoundTrip::least_us`] and [`RoundTrip::most_timeout`].
    pub(crate) fn rely(&mut self, clock: &Clock, event: u16, began: u64) {
        if !clock.is_noting() {
            return;
        }
        let ns = clock.now - began;
        let least = clock.least_rtt_ns;
        let usual = least + least / 8 + SLACK_NS;
        let (least, most) = if (least..=usual).contains(&ns) {
            (least, usual)
        } else {
            let power = ns.max(1).ilog2();
            (1 << power, (2 << power) - 1)
        };
        clock.rely(event, least, most);
        let [all_least, all_most] = &mut self.bounds_us;
        let (least_us, most_us) = ((least / 1_000) as u32, (most / 1_000) as u32 + 1);
        *all_least = if *all_most == 0 { least_us } else { least_us.min(*all_least) };
        *all_most = most_us.max(*all_most);
    }

    /// What no smoothed round trip is below, us, in any such trial; 0 before the first.
    pub(crate) fn least_us(&self) -> u32 {
        self.bounds_us[0].saturating_sub(ROUNDING_US)
    }

    /// What none is above, us.
    pub(crate) fn most_us(&self) -> u32 {
        self.bounds_us[1] + ROUNDING_US
    }

    /// What the timeout is at most in any such trial, jiffies: the variance term is never above
    /// four times the longest round trip.
    pub(crate) fn most_timeout(&self, kernel: &Kernel) -> u32 {
        let most_us = u64::from(self.most_us());
        let us = most_us + (4 * most_us).max(u64::from(kernel.rto_min_us));
        kernel.jiffy.ceil_us(us).max(kernel.timeout_init).min(kernel.rto_max)
    }

    /// What it is at least in any such trial, jiffies: the variance term is never below the least
    /// timeout.
    pub(crate) fn least_timeout(&self, kernel: &Kernel) -> u32 {
        kernel
            .jiffy
            .ceil_us(u64::from(self.least_us() + kernel.rto_min_us))
            .min(kernel.timeout_init)
    }

    /// Doubles the timeout after it has run.
    pub(crate) fn back_off(&mut self, kernel: &Kernel) {
        self.rto = (self.rto << 1).min(kernel.rto_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_sets_the_timeout_as_linux_does() {
        let kernel = Kernel::linux();
        for (rtt_ms, rto_ms) in [(1, 204), (60, 260), (100, 300), (150, 452)] {
            let mut rtt = RoundTrip::default();
            rtt.reset(&kernel);
            rtt.sample(&kernel, rtt_ms * 1_000, 1, 1);
            // srtt + max(200 ms, 2 srtt), up to whole jiffies.
            assert_eq!(rtt.rto * 4, rto_ms, "{rtt_ms} ms");
        }
    }

    #[test]
    fn the_deviation_decays_once_a_round_trip() {
        let kernel = Kernel::linux();
        let mut rtt = RoundTrip::default();
        rtt.reset(&kernel);
        rtt.sample(&kernel, 150_000, 1, 1);
        let timeouts: Vec<u32> = (1..5)
            .map(|round| {
                rtt.sample(&kernel, 150_000, round * 100, round * 100 + 50);
                rtt.rto * 4
            })
            .collect();
        // rttvar: 300 (mdev_max was set by the first sample), 275, 256, 242 ms.
        assert_eq!(timeouts, [452, 428, 408, 396]);
    }
}
