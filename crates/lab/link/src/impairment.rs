// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What one direction of the link does to each packet: when it arrives, or why it does not.
//!
//! In order: the queue may be full; the packet takes its time on the wire; it may be lost there (a lost packet has used the wire, as it
//! has on a real one); then come the propagation delay and the jitter. Random numbers are drawn for every arriving packet, also for those
//! that the queue drops, so a seed gives the same losses whatever the timing was.

use crate::config::LinkConfig;
use crate::jitter::Jitter;
use crate::loss::LossState;
use crate::queue::Queue;
use crate::random::{Direction, Streams};
use crate::time::Nanos;

/// What the impairments need to know of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Length of the IP packet; a TUN device has no link layer.
    pub bytes: u64,
    /// Whether the IP packet carries TCP, which is what a drop script counts.
    pub tcp: bool,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is to be handed over at this instant.
    Deliver(Nanos),
    /// It is gone.
    Drop(Cause),
}

/// Why a packet is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The loss model.
    Loss,
    /// The drop script.
    Script,
    /// The full queue.
    Queue,
}

/// One direction of the link. It reads no clock and holds no randomness.
#[derive(Clone, Debug)]
pub struct Path {
    delay: Nanos,
    jitter: Jitter,
    keep_order: bool,
    queue: Queue,
    loss: LossState,
    /// Ascending indices, counting TCP packets from 0, that are still to be dropped are those from `script_next` on.
    script: Vec<u64>,
    script_next: usize,
    tcp_packets: u64,
    last_due: Nanos,
}

impl Path {
    /// The path of `direction` as `link` describes it.
    #[must_use]
    pub fn new(link: &LinkConfig, direction: Direction) -> Path {
        let (delay_ns, rate_bps, script) = match direction {
            Direction::AToB => {
                (link.delay_a_to_b_ns, link.rate_a_to_b_bps, &link.drop_script_a_to_b)
            }
            Direction::BToA => {
                (link.delay_b_to_a_ns, link.rate_b_to_a_bps, &link.drop_script_b_to_a)
            }
        };
        let mut script = script.clone();
        script.sort_unstable();
        Path {
            delay: Nanos(delay_ns),
            jitter: Jitter::new(&link.jitter_ns),
            keep_order: link.keep_order,
            queue: Queue::new(rate_bps, link.queue_bytes, link.queue_packets),
            loss: LossState::new(link.loss.clone()),
            script,
            script_next: 0,
            tcp_packets: 0,
            last_due: Nanos::ZERO,
        }
    }

    /// Takes a packet at `now`, which must not be before an earlier call's.
    pub fn arrive(&mut self, now: Nanos, packet: Arrival, streams: &mut Streams) -> Fate {
        let lost = self.loss.next_is_lost(&mut streams.loss);
        let jitter = self.jitter.draw(&mut streams.jitter);
        let scripted = packet.tcp && self.next_is_scripted();
        let Some(sent) = self.queue.offer(now, packet.bytes) else {
            return Fate::Drop(Cause::Queue);
        };
        if scripted {
            return Fate::Drop(Cause::Script);
        }
        if lost {
            return Fate::Drop(Cause::Loss);
        }
        let mut due = sent + self.delay + jitter;
        if self.keep_order {
            due = due.max(self.last_due);
            self.last_due = due;
        }
        Fate::Deliver(due)
    }

    fn next_is_scripted(&mut self) -> bool {
        let index = self.tcp_packets;
        self.tcp_packets += 1;
        let mut scripted = false;
        while self.script.get(self.script_next) == Some(&index) {
            self.script_next += 1;
            scripted = true;
        }
        scripted
    }
}

/// Whether an IP packet (no link layer) carries TCP (protocol number 6): byte 9 in IPv4, the first next header in IPv6.
#[must_use]
pub fn carries_tcp(packet: &[u8]) -> bool {
    const TCP: u8 = 6;
    match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(9) == Some(&TCP),
        Some(6) => packet.get(6) == Some(&TCP),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;
    use proptest::prelude::*;
    use std::num::NonZeroU64;

    const TCP_1500: Arrival = Arrival { bytes: 1500, tcp: true };

    fn link() -> LinkConfig {
        LinkConfig::default()
    }

    #[test]
    fn delay_follows_serialisation_and_directions_differ() {
        let link = LinkConfig {
            delay_a_to_b_ns: 30_000_000,
            delay_b_to_a_ns: 5,
            rate_a_to_b_bps: NonZeroU64::new(10_000_000),
            ..link()
        };
        for (direction, expected) in [(Direction::AToB, 31_200_000), (Direction::BToA, 5)] {
            let mut streams = Streams::new(1, direction);
            let fate = Path::new(&link, direction).arrive(Nanos(0), TCP_1500, &mut streams);
            assert_eq!(fate, Fate::Deliver(Nanos(expected)));
        }
    }

    #[test]
    fn a_script_counts_only_tcp() {
        let link = LinkConfig { drop_script_a_to_b: vec![2, 0, 2], ..link() };
        let mut path = Path::new(&link, Direction::AToB);
        let mut streams = Streams::new(1, Direction::AToB);
        let tcp = [true, false, true, false, true, true];
        let dropped: Vec<bool> = tcp
            .iter()
            .map(|&tcp| {
                path.arrive(Nanos(0), Arrival { bytes: 40, tcp }, &mut streams)
                    == Fate::Drop(Cause::Script)
            })
            .collect();
        assert_eq!(dropped, [true, false, false, false, true, false]);
    }

    #[test]
    fn protocols_are_told_apart() {
        let mut ipv4 = [0_u8; 20];
        ipv4[0] = 0x45;
        ipv4[9] = 6;
        assert!(carries_tcp(&ipv4));
        ipv4[9] = 17;
        assert!(!carries_tcp(&ipv4));
        let mut ipv6 = [0_u8; 40];
        ipv6[0] = 0x60;
        ipv6[6] = 6;
        assert!(carries_tcp(&ipv6));
        assert!(!carries_tcp(&[]));
        assert!(!carries_tcp(&[0x45]));
    }

    #[test]
    fn a_lost_packet_has_used_the_wire() {
        let rate = NonZeroU64::new(12_000);
        let link = LinkConfig { rate_a_to_b_bps: rate, drop_script_a_to_b: vec![0], ..link() };
        let mut path = Path::new(&link, Direction::AToB);
        let mut streams = Streams::new(1, Direction::AToB);
        assert_eq!(path.arrive(Nanos(0), TCP_1500, &mut streams), Fate::Drop(Cause::Script));
        assert_eq!(
            path.arrive(Nanos(0), TCP_1500, &mut streams),
            Fate::Deliver(Nanos(2_000_000_000))
        );
    }

    fn links() -> impl Strategy<Value = LinkConfig> {
        (
            0..1_000_000_000_u64,
            prop::collection::vec(0..50_000_000_u64, 0..6),
            any::<bool>(),
            prop::option::of(10_000..1_000_000_000_u64),
            prop::option::of(1..64_u64),
            0.0..0.5_f64,
        )
            .prop_map(
                |(delay, mut jitter, keep_order, rate, queue_packets, probability)| {
                    jitter.sort_unstable();
                    LinkConfig {
                        delay_a_to_b_ns: delay,
                        jitter_ns: jitter,
                        keep_order,
                        rate_a_to_b_bps: rate.and_then(NonZeroU64::new),
                        queue_packets,
                        loss: Loss::Independent { probability },
                        ..LinkConfig::default()
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn never_early_in_order_if_asked_and_within_the_jitter(
            link in links(), seed: u64, gaps in prop::collection::vec(0..2_000_000_u64, 1..300),
        ) {
            let mut path = Path::new(&link, Direction::AToB);
            let mut streams = Streams::new(seed, Direction::AToB);
            let (mut now, mut last) = (Nanos(0), Nanos(0));
            for gap in gaps {
                now = now + Nanos(gap);
                if let Fate::Deliver(due) = path.arrive(now, TCP_1500, &mut streams) {
                    let least = now + Nanos(link.delay_a_to_b_ns) + Nanos(link.jitter_ns.first().copied().unwrap_or(0));
                    prop_assert!(due >= least);
                    if link.keep_order {
                        prop_assert!(due >= last);
                    } else if link.rate_a_to_b_bps.is_none() {
                        prop_assert!(due <= now + Nanos(link.delay_a_to_b_ns + link.jitter_ns.last().copied().unwrap_or(0)));
                    }
                    last = due;
                }
            }
        }

        #[test]
        fn timing_changes_no_random_decision(
            link in links(), seed: u64, gaps in prop::collection::vec(0..2_000_000_u64, 1..300),
        ) {
            // The same packets, spread out or all at once: those lost to the loss model are the same, where neither queue was full.
            let unqueued = LinkConfig { queue_packets: None, ..link };
            let lost = |gaps: &[u64]| -> Vec<bool> {
                let mut path = Path::new(&unqueued, Direction::AToB);
                let mut streams = Streams::new(seed, Direction::AToB);
                let mut now = Nanos(0);
                gaps.iter().map(|&gap| {
                    now = now + Nanos(gap);
                    path.arrive(now, TCP_1500, &mut streams) == Fate::Drop(Cause::Loss)
                }).collect()
            };
            prop_assert_eq!(lost(&gaps), lost(&vec![0; gaps.len()]));
        }

        #[test]
        fn jitter_changes_no_loss(link in links(), seed: u64) {
            let lost = |link: &LinkConfig| -> Vec<bool> {
                let mut path = Path::new(link, Direction::BToA);
                let mut streams = Streams::new(seed, Direction::BToA);
                (0..200).map(|_| path.arrive(Nanos(0), TCP_1500, &mut streams) == Fate::Drop(Cause::Loss)).collect()
            };
            let without = LinkConfig { jitter_ns: Vec::new(), ..link.clone() };
            prop_assert_eq!(lost(&link), lost(&without));
        }
    }
}
