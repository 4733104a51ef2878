// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaying the packets of a trial, as a link's log would have them.

mod common;

use proptest::prelude::*;
use warifu_model::{Mark, Metric};
use warifu_sim::{
    CaseModel, Fate, KernelTime, LoggedConnection, LoggedPacket, Outcome, PacketEvent, Replayed,
    Simulator, Unmatched,
};

/// A link that loses packets, and one that lets them overtake as well.
const LOSSY: &str = "key_store = \"software\"\n[link]\nprofile = \"loopback\"\nrtt = \"60 ms\"\n\
                     loss = \"8 %\"\n[stack]\nprotocol = \"https\"\ntls = \"1.3\"\n";
const REORDERING: &str = "key_store = \"software\"\n[link]\nprofile = \"loopback\"\n\
                          rtt = \"95 ms\"\n\
                          loss = \"5 %\"\njitter = [\"0 ms\", \"5 ms\", \"20 ms\", \"150 ms\"]\n\
                          keep_order = false\n[stack]\nprotocol = \"https\"\ntls = \"1.3\"\n";

/// A packet as the link would log it; the catalog's ends have no interfaces.
fn logged(event: &PacketEvent) -> LoggedPacket {
    let flag = |letter: char, bit: u8| if event.flags.contains(letter) { bit } else { 0 };
    LoggedPacket {
        heading: event.heading,
        at_ns: event.time_ns,
        seq: event.seq,
        len: event.len,
        ack: event.ack,
        flags: flag('F', 1) | flag('S', 2) | flag('P', 8) | flag('.', 16),
        fate: match event.arrives_ns {
            Some(arrives) => Fate::Delivered { delay_ns: arrives - event.time_ns },
            None => Fate::Lost,
        },
    }
}

/// A trial of a case, its packets, and their replay after a change.
fn again(
    text: &str,
    seed: u64,
    change: impl FnOnce(&mut Vec<LoggedPacket>),
) -> Option<(u64, Replayed)> {
    let catalog = common::catalog("1 ms");
    let model = CaseModel::compile(&common::case(text, &catalog), &catalog).unwrap();
    let mut simulator = Simulator::new();
    let mut outcome = Outcome::default();
    simulator.run(&model, seed, &mut outcome);
    let of = outcome.connections.first().filter(|of| !of.failed)?;
    let ends_ns = of.marks[Mark::FirstResponse as usize];
    let mut packets: Vec<_> = simulator.packets(&model, seed).iter().map(logged).collect();
    change(&mut packets);
    let connection = LoggedConnection { sizes: &[], packets: &packets, ends_ns, began: None };
    let replayed = simulator.replay(&model.to_replay(), seed, &connection)?;
    Some((of.value(Metric::HttpsEstablishment), replayed))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// What a trial sent, replayed with the same draws, is the same trial.
    #[test]
    fn replay_of_the_same_trial(seed: u64, reordering: bool) {
        let text = if reordering { REORDERING } else { LOSSY };
        let Some((total, replayed)) = again(text, seed, |_| {}) else { return Ok(()) };
        prop_assert_eq!(replayed.outcome.value(Metric::HttpsEstablishment), total);
        prop_assert_eq!(replayed.unmatched, Unmatched::default());
        prop_assert!(replayed.same_retransmissions);
    }

    /// Where the log says where the kernel's ticks were, they are not drawn: with costs that never
    /// vary, nothing is.
    #[test]
    fn ticks_of_the_log(seed: u64, another: u64, jiffies: u64, since_ns in 0_u64..1 << 40) {
        let at = KernelTime {
            tick_ns: 4_000_000,
            jiffies,
            since_ns,
            monotonic_ns: jiffies.wrapping_mul(77) >> 1,
        };
        let catalog = common::catalog("1 ms");
        let model = CaseModel::compile(&common::case(LOSSY, &catalog), &catalog).unwrap();
        let mut simulator = Simulator::new();
        let packets: Vec<_> = simulator.packets(&model, seed).iter().map(logged).collect();
        let model = model.to_replay();
        // Lengths are drawn as well.
        let sizes: Vec<(u32, u32)> = (0..100).map(|message| (message, 300)).collect();
        let mut replayed = |seed| {
            let (began, ends_ns) = (Some(at), u64::MAX);
            let connection = LoggedConnection { sizes: &sizes, packets: &packets, ends_ns, began };
            let of = simulator.replay(&model, seed, &connection)?;
            Some(of.outcome.value(Metric::HttpsEstablishment))
        };
        prop_assert_eq!(replayed(seed), replayed(another));
    }

    /// A log of the same losses whose packets are cut otherwise is the same trial, and divergent.
    #[test]
    fn log_that_is_cut_otherwise(seed: u64, share in 1_u32..100) {
        let mut cut = 0;
        let halves = |packets: &mut Vec<LoggedPacket>| {
            let whole = std::mem::take(packets);
            for packet in whole {
                let first = packet.len * share / 100;
                if first == 0 {
                    packets.push(packet);
                    continue;
                }
                cut += 1;
                let (seq, len) = (packet.seq + first, packet.len - first);
                packets.push(LoggedPacket { len: first, ..packet });
                packets.push(LoggedPacket { seq, len, ..packet });
            }
        };
        let Some((total, replayed)) = again(LOSSY, seed, halves) else { return Ok(()) };
        prop_assert_eq!(replayed.outcome.value(Metric::HttpsEstablishment), total);
        prop_assert!(cut > 0);
        prop_assert!(replayed.unmatched.only_simulated > 0, "{:?}", replayed.unmatched);
        prop_assert!(replayed.unmatched.only_logged > 0, "{:?}", replayed.unmatched);
        prop_assert_eq!(replayed.unmatched.acknowledgements, 0);
    }

    /// A bare acknowledgement of another number, which the simulator does not send, moves no other
    /// packet's fate.
    #[test]
    fn one_acknowledgement_more(seed: u64) {
        let mut added = false;
        let more = |packets: &mut Vec<LoggedPacket>| {
            let bare = |packet: &LoggedPacket| packet.len == 0 && packet.flags == 16;
            if let Some(at) = packets.iter().position(bare) {
                packets.insert(at, LoggedPacket { ack: packets[at].ack - 1, ..packets[at] });
                added = true;
            }
        };
        let Some((total, replayed)) = again(LOSSY, seed, more) else { return Ok(()) };
        prop_assert_eq!(replayed.outcome.value(Metric::HttpsEstablishment), total);
        let expected = Unmatched { acknowledgements: u32::from(added), ..Unmatched::default() };
        prop_assert_eq!(replayed.unmatched, expected);
        prop_assert!(replayed.same_retransmissions);
    }
}

#[test]
fn retransmission_that_the_log_does_not_have() {
    for seed in 0..1_000 {
        let mut kept = false;
        let keep_first = |packets: &mut Vec<LoggedPacket>| {
            let content = |packet: &LoggedPacket| packet.len > 0 && packet.fate == Fate::Lost;
            if let Some(at) = packets.iter().position(content) {
                packets[at].fate = Fate::Delivered { delay_ns: 30_000_000 };
                kept = true;
            }
        };
        let found = again(LOSSY, seed, keep_first);
        if let Some((total, replayed)) = found.filter(|_| kept) {
            assert!(!replayed.same_retransmissions, "{replayed:?}");
            assert!(replayed.unmatched.only_logged > 0, "{replayed:?}");
            assert!(replayed.outcome.value(Metric::HttpsEstablishment) < total);
            return;
        }
    }
    panic!("of 1,000 connections with 8 % loss none lost content");
}

#[test]
fn packets_of_another_connection() {
    let shifted = |packets: &mut Vec<LoggedPacket>| {
        for packet in packets.iter_mut().filter(|packet| packet.len > 0) {
            packet.seq += 1;
        }
    };
    let (_, replayed) = again(LOSSY, 1, shifted).unwrap();
    assert!(replayed.unmatched.only_simulated > 2, "{replayed:?}");
    assert!(replayed.unmatched.only_logged > 2, "{replayed:?}");
}
