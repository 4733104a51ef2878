// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What one direction of the link does to each packet: when it arrives, or why it does not.
//!
//! In order: the queue may be full; the packet takes its time on the wire; it may be lost there (a
//! lost packet has used the wire, as it has on a real one); then come the propagation delay and the
//! jitter. Random numbers are drawn for every arriving packet, also for those that the queue drops,
//! so a seed gives the same losses whatever the timing was.

use crate::config::LinkConfig;
use crate::jitter::Jitter;
use crate::loss::LossState;
use crate::queue::Queue;
use crate::random::{Direction, Streams};
use warifu_model::Nanos;

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
    /// Ascending indices, counting TCP packets from 0, that are still to be dropped are those from
    /// `script_next` on.
    script: Vec<u64>,
    script_next: usize,
    /// Indices as above, and how much longer each packet takes.
    hold: Vec<(u64, Nanos)>,
    tcp_packets: u64,
    last_due: Nanos,
}

impl Path {
    /// The path of `direction` as `link` describes it.
    #[must_use]
    pub fn new(link: &LinkConfig, direction: Direction) -> Path {
        let (delay, rate, script, hold) = match direction {
            Direction::AToB => (
                link.delay_a_to_b,
                link.rate_a_to_b,
                &link.drop_script_a_to_b,
                &link.hold_script_a_to_b,
            ),
            Direction::BToA => (
                link.delay_b_to_a,
                link.rate_b_to_a,
                &link.drop_script_b_to_a,
                &link.hold_script_b_to_a,
            ),
        };
        let mut script = script.clone();
        script.sort_unstable();
        Path {
            delay,
            jitter: Jitter::new(&link.jitter),
            keep_order: link.keep_order,
            queue: Queue::new(rate, link.queue_bytes, link.queue_packets),
            loss: LossState::new(link.loss),
            script,
            script_next: 0,
            hold: hold.clone(),
            tcp_packets: 0,
            last_due: Nanos::ZERO,
        }
    }

    /// Takes a packet at `now`, which must not be before an earlier call's.
    pub fn arrive(&mut self, now: Nanos, packet: Arrival, streams: &mut Streams) -> Fate {
        let lost = self.loss.next_is_lost(&mut streams.loss);
        let jitter = self.jitter.draw(&mut streams.jitter);
        let (scripted, held) =
            if packet.tcp { self.next_of_scripts() } else { (false, Nanos::ZERO) };
        let Some(sent) = self.queue.offer(now, packet.bytes) else {
            return Fate::Drop(Cause::Queue);
        };
        if scripted {
            return Fate::Drop(Cause::Script);
        }
        if lost {
            return Fate::Drop(Cause::Loss);
        }
        let mut due = sent + self.delay + jitter + held;
        if self.keep_order {
            due = due.max(self.last_due);
            self.last_due = due;
        }
        Fate::Deliver(due)
    }

    /// Whether the script drops the next TCP packet, and for how long it is held back.
    fn next_of_scripts(&mut self) -> (bool, Nanos) {
        let index = self.tcp_packets;
        self.tcp_packets += 1;
        let mut scripted = false;
        while self.script.get(self.script_next) == Some(&index) {
            self.script_next += 1;
            scripted = true;
        }
        let held = self.hold.iter().find(|(held, _)| *held == index);
        (scripted, held.map_or(Nanos::ZERO, |&(_, time)| time))
    }
}

/// Whether an IP packet (no link layer) carries TCP (protocol number 6): byte 9 in IPv4, the first
/// next header in IPv6.
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
    use proptest::prelude::*;
    use warifu_model::{BitsPerSecond, Loss, Probability};

    const TCP_1500: Arrival = Arrival { bytes: 1500, tcp: true };

    fn link() -> LinkConfig {
        LinkConfig::default()
    }

    #[test]
    fn delay_is_added_after_serialisation_in_each_direction() {
        let link = LinkConfig {
            delay_a_to_b: Nanos::from_millis(30),
            delay_b_to_a: Nanos(5),
            rate_a_to_b: Some(BitsPerSecond(10_000_000)),
            ..link()
        };
        for (direction, expected) in [(Direction::AToB, 31_200_000), (Direction::BToA, 5)] {
            let mut streams = Streams::new(1, direction);
            let fate = Path::new(&link, direction).arrive(Nanos(0), TCP_1500, &mut streams);
            assert_eq!(fate, Fate::Deliver(Nanos(expected)));
        }
    }

    #[test]
    fn drop_script_counts_tcp_packets_only() {
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
    fn held_packet_is_overtaken_unless_order_is_kept() {
        let hold_script_a_to_b = vec![(1, Nanos(50))];
        for (keep_order, dues) in [(false, [5, 55, 5]), (true, [5, 55, 55])] {
            let delay_a_to_b = Nanos(5);
            let hold_script_a_to_b = hold_script_a_to_b.clone();
            let link = LinkConfig { delay_a_to_b, keep_order, hold_script_a_to_b, ..link() };
            let mut path = Path::new(&link, Direction::AToB);
            let mut streams = Streams::new(1, Direction::AToB);
            let other = Arrival { bytes: 40, tcp: false };
            assert_eq!(path.arrive(Nanos(0), other, &mut streams), Fate::Deliver(Nanos(5)));
            for due in dues {
                let fate = path.arrive(Nanos(0), TCP_1500, &mut streams);
                assert_eq!(fate, Fate::Deliver(Nanos(due)), "keep_order {keep_order}");
            }
        }
    }

    #[test]
    fn carries_tcp_in_ipv4_and_ipv6() {
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
    fn lost_packet_occupies_the_wire() {
        let rate = Some(BitsPerSecond(12_000));
        let link = LinkConfig { rate_a_to_b: rate, drop_script_a_to_b: vec![0], ..link() };
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
                        delay_a_to_b: Nanos(delay),
                        jitter: jitter.into_iter().map(Nanos).collect(),
                        keep_order,
                        rate_a_to_b: rate.map(BitsPerSecond),
                        queue_packets,
                        loss: Loss::Independent { probability: Probability(probability) },
                        ..LinkConfig::default()
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn delivery_respects_delay_order_and_jitter(
            link in links(), seed: u64, gaps in prop::collection::vec(0..2_000_000_u64, 1..300),
        ) {
            let mut path = Path::new(&link, Direction::AToB);
            let mut streams = Streams::new(seed, Direction::AToB);
            let (mut now, mut last) = (Nanos(0), Nanos(0));
            for gap in gaps {
                now = now + Nanos(gap);
                if let Fate::Deliver(due) = path.arrive(now, TCP_1500, &mut streams) {
                    let least = now + link.delay_a_to_b;
                    let [shortest, longest] = [link.jitter.first(), link.jitter.last()]
                        .map(|extra| extra.copied().unwrap_or_default());
                    prop_assert!(due >= least + shortest);
                    if link.keep_order {
                        prop_assert!(due >= last);
                    } else if link.rate_a_to_b.is_none() {
                        prop_assert!(due <= least + longest);
                    }
                    last = due;
                }
            }
        }

        #[test]
        fn losses_do_not_depend_on_timing(
            link in links(), seed: u64, gaps in prop::collection::vec(0..2_000_000_u64, 1..300),
        ) {
            // The same packets, spread out or all at once: those lost to the loss model are the
            // same, where neither queue was full.
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
        fn losses_do_not_depend_on_jitter(link in links(), seed: u64) {
            let lost = |link: &LinkConfig| -> Vec<bool> {
                let mut path = Path::new(link, Direction::BToA);
                let mut streams = Streams::new(seed, Direction::BToA);
                let lost = Fate::Drop(Cause::Loss);
                (0..200)
                    .map(|_| path.arrive(Nanos(0), TCP_1500, &mut streams) == lost)
                    .collect()
            };
            let without = LinkConfig { jitter: Vec::new(), ..link.clone() };
            prop_assert_eq!(lost(&link), lost(&without));
        }
    }
}
