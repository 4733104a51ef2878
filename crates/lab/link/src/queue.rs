// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sender's side of a rate: a drop-tail queue in front of a serialiser.

use std::collections::VecDeque;
use warifu_model::{BitsPerSecond, Nanos};

/// A drop-tail queue that empties at a constant rate.
///
/// A packet occupies the queue from its arrival until its last bit is sent, so the packet in
/// transmission counts against the limits. Without a rate nothing ever waits, and the limits have
/// no effect.
#[derive(Clone, Debug)]
pub struct Queue {
    rate: Option<BitsPerSecond>,
    limit_bytes: Option<u64>,
    limit_packets: Option<u64>,
    busy_until: Nanos,
    /// (when the last bit is sent, bytes), in order of departure.
    waiting: VecDeque<(Nanos, u64)>,
    waiting_bytes: u64,
}

impl Queue {
    /// An empty queue; `None` means unlimited.
    #[must_use]
    pub fn new(
        rate: Option<BitsPerSecond>,
        limit_bytes: Option<u64>,
        limit_packets: Option<u64>,
    ) -> Queue {
        Queue {
            rate,
            limit_bytes,
            limit_packets,
            busy_until: Nanos::ZERO,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Offers a packet of `bytes` at `now` (not before an earlier call's `now`): when its last bit
    /// is sent, or `None` if it does not fit.
    pub fn offer(&mut self, now: Nanos, bytes: u64) -> Option<Nanos> {
        let Some(rate) = self.rate else { return Some(now) };
        self.leave(now);
        let packets_full =
            self.limit_packets.is_some_and(|limit| self.waiting.len() as u64 >= limit);
        let bytes_full = self.limit_bytes.is_some_and(|limit| self.waiting_bytes + bytes > limit);
        if packets_full || bytes_full {
            return None;
        }
        let sent = self.busy_until.max(now) + serialisation_time(bytes, rate);
        self.busy_until = sent;
        self.waiting.push_back((sent, bytes));
        self.waiting_bytes += bytes;
        Some(sent)
    }

    /// Packets that have not been sent wholly at `now`.
    pub fn backlog_packets(&mut self, now: Nanos) -> usize {
        self.leave(now);
        self.waiting.len()
    }

    fn leave(&mut self, now: Nanos) {
        while let Some(&(sent, bytes)) = self.waiting.front() {
            if sent > now {
                break;
            }
            self.waiting.pop_front();
            self.waiting_bytes -= bytes;
        }
    }
}

/// The time that `bytes` occupy a wire of this rate, rounded up: the rate is a ceiling.
#[must_use]
pub fn serialisation_time(bytes: u64, rate: BitsPerSecond) -> Nanos {
    // A rate is never 0; one made by hand in code counts as the least.
    let nanos = (u128::from(bytes) * 8 * 1_000_000_000).div_ceil(u128::from(rate.0.max(1)));
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(bps: u64) -> Option<BitsPerSecond> {
        Some(BitsPerSecond(bps))
    }

    #[test]
    fn packet_waits_for_those_before_it() {
        let mut queue = Queue::new(rate(10_000_000), None, None);
        assert_eq!(queue.offer(Nanos(0), 1500), Some(Nanos(1_200_000)));
        assert_eq!(queue.offer(Nanos(0), 1500), Some(Nanos(2_400_000)));
        assert_eq!(queue.offer(Nanos(9_000_000), 1250), Some(Nanos(10_000_000)));
    }

    #[test]
    fn limits_count_the_packet_in_transmission() {
        let mut queue = Queue::new(rate(8_000_000_000), None, Some(2));
        assert!(queue.offer(Nanos(0), 100).is_some());
        assert!(queue.offer(Nanos(0), 100).is_some());
        assert_eq!(queue.offer(Nanos(0), 100), None);
        assert!(queue.offer(Nanos(100), 100).is_some(), "the first has left after 100 ns");
        let mut queue = Queue::new(rate(8), Some(3000), None);
        assert!(queue.offer(Nanos(0), 1500).is_some());
        assert!(queue.offer(Nanos(0), 1500).is_some());
        assert_eq!(queue.offer(Nanos(0), 1), None);
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut queue = Queue::new(None, Some(0), Some(0));
        assert_eq!(queue.offer(Nanos(5), 1500), Some(Nanos(5)));
        assert_eq!(queue.backlog_packets(Nanos(5)), 0);
    }

    #[test]
    fn serialisation_time_saturates() {
        assert_eq!(serialisation_time(u64::MAX, BitsPerSecond(1)), Nanos(u64::MAX));
    }

    proptest! {
        #[test]
        fn the_rate_is_never_exceeded(
            bps in 1_000..10_000_000_000_u64,
            limit in prop::option::of(1..40_u64),
            arrivals in prop::collection::vec((0..3_000_000_u64, 20..1500_u64), 1..200),
        ) {
            let mut queue = Queue::new(rate(bps), None, limit);
            let mut now = Nanos(0);
            let mut sent: Vec<(Nanos, Nanos, u64)> = Vec::new();
            for (gap, bytes) in arrivals {
                now = now + Nanos(gap);
                if let Some(last_bit) = queue.offer(now, bytes) {
                    sent.push((now, last_bit, bytes));
                }
                prop_assert!(queue.backlog_packets(now) as u64 <= limit.unwrap_or(u64::MAX));
            }
            for (index, &(arrived, first, _)) in sent.iter().enumerate() {
                let mut bits: u128 = 0;
                prop_assert!(first > arrived);
                for &(_, later, bytes) in &sent[index + 1..] {
                    bits += u128::from(bytes) * 8;
                    let most = u128::from(bps) * u128::from((later - first).0);
                    prop_assert!(bits * 1_000_000_000 <= most);
                }
            }
        }

        #[test]
        fn busy_wire_is_never_idle(
            bps in 1_000..1_000_000_000_u64,
            sizes in prop::collection::vec(20..1500_u64, 1..100),
        ) {
            let mut queue = Queue::new(rate(bps), None, None);
            let sent = sizes.iter().filter_map(|&bytes| queue.offer(Nanos(0), bytes));
            let last = u128::from(sent.last().unwrap().0);
            let bits: u128 = sizes.iter().map(|&bytes| u128::from(bytes) * 8).sum();
            let exact = bits * 1_000_000_000 / u128::from(bps);
            // Each packet's time is rounded up by less than 1 ns.
            prop_assert!(last >= exact && last <= exact + 1 + sizes.len() as u128);
        }
    }
}
