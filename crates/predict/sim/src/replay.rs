// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaying what a link did to the packets of a connection that was measured.
//!
//! Each packet of the trial meets the fate of one in the log: lost, or so long on its way. Its
//! number among all packets would not tell which: one bare acknowledgement more would shift every
//! fate after it. What tells is what it carries.
//!
//! - *Data* are told by their first byte. A segment that is the n-th of its direction to carry its
//!   first byte meets the fate of the log's n-th packet that carries that byte. Where both halves
//!   cut a write alike, that is the same segment. Where they do not (writes coalesce within
//!   microseconds), the byte was in that packet all the same: two halves of a packet that was lost
//!   are both lost, and a segment made of two packets meets the fate of the first. So a loss is
//!   neither left out nor met by a byte that was sent again. The connection counts as divergent,
//!   since each half has packets that the other does not have.
//! - *SYN and FIN without data* are those with the same sequence numbers and flags, and *bare
//!   acknowledgements* those that acknowledge the same; of several copies the same copy. So where
//!   one half sends one duplicate acknowledgement more, later duplicates of the same number meet
//!   the fate of the one before them; packets of any other kind or number do not.
//!
//! One that the log does not have comes through in the link's own time.

use std::collections::HashMap;

use crate::carrier::tcp::wire::{ACK, FIN, Range, SYN, TcpSegment};
use crate::clock::KernelTime;
use crate::outcome::ConnectionOutcome;
use crate::packet::Body;
use crate::route::Heading;

/// Flags that tell packets apart. PSH ends a write, and where the kernel cuts segments anew it may
/// come and go.
const TELLING: u8 = FIN | SYN;

/// A packet as the link logged it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedPacket {
    /// Which way.
    pub heading: Heading,
    /// When it came to the link, from the connection's first mark on, ns.
    pub at_ns: u64,
    /// First sequence number, from the sender's SYN, which is 0.
    pub seq: u32,
    /// Bytes of data.
    pub len: u32,
    /// What it acknowledges, from the peer's SYN.
    pub ack: u32,
    /// TCP's flags (RFC 9293 section 3.1).
    pub flags: u8,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It came out so long after it came in, ns.
    Delivered {
        /// ns.
        delay_ns: u64,
    },
    /// It did not come out.
    Lost,
}

/// A connection as it was measured.
#[derive(Clone, Copy, Debug)]
pub struct LoggedConnection<'a> {
    /// The lengths of messages that depend on chance, B, by the message's number in the trace.
    pub sizes: &'a [(u32, u32)],
    /// Its packets in the order in which the link got them.
    pub packets: &'a [LoggedPacket],
    /// When the first byte of its response came, from its first mark on, ns.
    pub ends_ns: u64,
    /// The kernel's time at its first mark, where it is known: whether a timer expires before a
    /// packet comes is chance, as a packet's fate is.
    pub began: Option<KernelTime>,
}

/// What a connection gave whose packets met the fates of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// As of any trial.
    pub outcome: ConnectionOutcome,
    /// Packets of either half that the other does not have, up to the first response of each:
    /// those with content, SYN or FIN, and bare acknowledgements.
    pub unmatched: Unmatched,
    /// Whether both halves sent the same segments again, in each direction in the same order.
    pub same_retransmissions: bool,
}

/// Packets of one half that the other does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Segments with content, SYN or FIN, that only the simulator sent.
    pub only_simulated: u32,
    /// Such segments that only the log has.
    pub only_logged: u32,
    /// Bare acknowledgements that only one of the two has.
    pub acknowledgements: u32,
}

/// What stands for a packet in both halves: way, sequence numbers or what it acknowledges, flags
/// that tell, and which copy it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    down: bool,
    bare: bool,
    start: u32,
    end: u32,
    flags: u8,
    copy: u32,
}

/// The fates of one connection's packets, while a trial asks for them.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// Of packets without data.
    fates: HashMap<Key, Fate>,
    /// Of packets with data, by direction, in the order of the log.
    data_fates: [Vec<(Range, Fate)>; 2],
    /// Times that each packet was sent so far, under the key of copy 0.
    copies: HashMap<Key, u32>,
    /// The data that the trial sent so far, by direction.
    data_sent: [Vec<Range>; 2],
    /// What the trial sent, in its order, ns.
    sent: Vec<(Key, u64)>,
}

impl Key {
    fn new(heading: Heading, seq: u32, end: u32, ack: u32, flags: u8) -> Key {
        let bare = seq == end && flags & TELLING == 0;
        // A bare acknowledgement's own number says little: what it acknowledges does.
        let (start, end) = if bare { (ack, ack) } else { (seq, end) };
        let down = heading == Heading::Down;
        Key { down, bare, start, end, flags: flags & TELLING, copy: 0 }
    }

    fn of_logged(packet: &LoggedPacket) -> Key {
        let LoggedPacket { heading, seq, len, ack, flags, .. } = *packet;
        let numbers = u32::from(flags & TELLING != 0);
        Key::new(heading, seq, seq.wrapping_add(len).wrapping_add(numbers), ack, flags)
    }

    fn of_segment(heading: Heading, segment: &TcpSegment) -> Key {
        let ack = if segment.flags & ACK != 0 { segment.ack } else { 0 };
        Key::new(heading, segment.seq, segment.end, ack, segment.flags)
    }

    /// The next copy, counted from 1.
    fn next_copy(self, copies: &mut HashMap<Key, u32>) -> Key {
        let copy = copies.entry(self).or_default();
        *copy += 1;
        Key { copy: *copy, ..self }
    }
}

impl Replay {
    /// Of a connection's packets, in the order in which the link got them.
    pub(crate) fn new(packets: &[LoggedPacket]) -> Replay {
        let mut replay = Replay::default();
        for (key, packet) in keys(packets).zip(packets) {
            if packet.len > 0 {
                let data = data(packet.seq, packet.len);
                replay.data_fates[packet.heading as usize].push((data, packet.fate));
            } else {
                replay.fates.insert(key, packet.fate);
            }
        }
        replay
    }

    /// The fate of a packet that is sent now; `None` for one that the log does not have.
    pub(crate) fn fate(&mut self, heading: Heading, body: &Body, now: u64) -> Option<Fate> {
        let Body::Tcp(segment) = body else { return None };
        let key = Key::of_segment(heading, segment).next_copy(&mut self.copies);
        self.sent.push((key, now));
        match segment.data_bytes() {
            0 => self.fates.get(&key).copied(),
            bytes => self.fate_of_data(heading, data(segment.seq, bytes)),
        }
    }

    /// The fate of the logged packet that carries the first byte of data as often as it has been
    /// sent now. Two segments may share it, so that none is used up.
    fn fate_of_data(&mut self, heading: Heading, data: Range) -> Option<Fate> {
        let first = data.start;
        let sent = &mut self.data_sent[heading as usize];
        let sent_before = sent.iter().filter(|of| carries(of, first)).count();
        sent.push(data);
        let mut logged =
            self.data_fates[heading as usize].iter().filter(|(of, _)| carries(of, first));
        logged.nth(sent_before).map(|&(_, fate)| fate)
    }

    /// How a trial that is over compares with the log. `log_ends_ns` and `ends_ns` are when the
    /// first response came in each; what was sent later, or too late to come before, is not
    /// compared: `way_down_ns` is the link's delay towards the client.
    pub(crate) fn compare(
        &self,
        packets: &[LoggedPacket],
        (log_ends_ns, ends_ns): (u64, u64),
        way_down_ns: u64,
    ) -> (Unmatched, bool) {
        let in_time = |key: &Key, at: u64, ends: u64| {
            let way = if key.down { way_down_ns } else { 0 };
            at.saturating_add(way) < ends
        };
        let logged: Vec<(Key, u64)> =
            keys(packets).zip(packets.iter().map(|packet| packet.at_ns)).collect();
        let all_logged: HashMap<Key, u64> = logged.iter().copied().collect();
        let all_sent: HashMap<Key, u64> = self.sent.iter().copied().collect();
        let mut unmatched = Unmatched::default();
        for (key, _) in self.sent.iter().filter(|(key, at)| in_time(key, *at, ends_ns)) {
            if !all_logged.contains_key(key) {
                let to = &mut unmatched;
                *(if key.bare { &mut to.acknowledgements } else { &mut to.only_simulated }) += 1;
            }
        }
        for (key, _) in logged.iter().filter(|(key, at)| in_time(key, *at, log_ends_ns)) {
            if !all_sent.contains_key(key) {
                let to = &mut unmatched;
                *(if key.bare { &mut to.acknowledgements } else { &mut to.only_logged }) += 1;
            }
        }
        let in_time_of = |list: &[(Key, u64)], ends: u64| -> Vec<Key> {
            let of = list.iter().filter(|(key, at)| in_time(key, *at, ends));
            of.map(|(key, _)| *key).collect()
        };
        let (ours, theirs) = (in_time_of(&self.sent, ends_ns), in_time_of(&logged, log_ends_ns));
        let same = [false, true]
            .into_iter()
            .all(|down| sent_again(&ours, down) == sent_again(&theirs, down));
        (unmatched, same)
    }
}

/// The packets of one direction that were sent again, whole, cut anew or joined with what follows:
/// those with content, SYN or FIN whose first number was in an earlier one. Their order is kept.
fn sent_again(packets: &[Key], down: bool) -> Vec<(Range, u8)> {
    let mut before: Vec<Range> = Vec::new();
    let mut again = Vec::new();
    for key in packets.iter().filter(|key| !key.bare && key.down == down) {
        let numbers = Range { start: key.start, end: key.end };
        if before.iter().any(|of| carries(of, numbers.start)) {
            again.push((numbers, key.flags));
        }
        before.push(numbers);
    }
    again
}

/// The sequence numbers of so many bytes of data.
fn data(seq: u32, bytes: u32) -> Range {
    Range { start: seq, end: seq.wrapping_add(bytes) }
}

/// Whether a byte is among data.
fn carries(data: &Range, byte: u32) -> bool {
    byte.wrapping_sub(data.start) < data.end.wrapping_sub(data.start)
}

/// The keys of a log's packets, in their order.
fn keys(packets: &[LoggedPacket]) -> impl Iterator<Item = Key> {
    let mut copies = HashMap::new();
    packets.iter().map(move |packet| Key::of_logged(packet).next_copy(&mut copies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::tcp::wire::{PSH, SACK_BLOCKS};

    const LATE: Fate = Fate::Delivered { delay_ns: 90_000_000 };
    const SOON: Fate = Fate::Delivered { delay_ns: 30_000_000 };

    /// A logged packet from the server, at an instant that is its number.
    fn logged(number: u64, seq: u32, len: u32, fate: Fate) -> LoggedPacket {
        let heading = Heading::Down;
        LoggedPacket { heading, at_ns: number, seq, len, ack: 1, flags: ACK | PSH, fate }
    }

    fn body(seq: u32, end: u32, flags: u8) -> Body {
        let sack = [Range::default(); SACK_BLOCKS];
        Body::Tcp(TcpSegment { seq, end, ack: 1, stamp: 0, echo: 0, flags, sacks: 0, sack })
    }

    /// The fates of segments from the server, each of these sequence numbers.
    fn fates(replay: &mut Replay, segments: &[(u32, u32)]) -> Vec<Option<Fate>> {
        let fate = |&(seq, end): &(u32, u32)| replay.fate(Heading::Down, &body(seq, end, ACK), 7);
        segments.iter().map(fate).collect()
    }

    /// Packets with content that only the trial sent, and that only the log has.
    fn divergence(replay: &Replay, packets: &[LoggedPacket]) -> (u32, u32) {
        let (unmatched, _) = replay.compare(packets, (1_000, 1_000), 0);
        (unmatched.only_simulated, unmatched.only_logged)
    }

    #[test]
    fn both_halves_of_a_packet_that_was_lost() {
        let packets = [logged(0, 1, 1_000, Fate::Lost), logged(1, 1, 1_000, LATE)];
        let mut replay = Replay::new(&packets);
        let found = fates(&mut replay, &[(1, 401), (401, 1_001)]);
        assert_eq!(found, [Some(Fate::Lost); 2]);
        // Each half is sent again, and so was its first byte.
        assert_eq!(fates(&mut replay, &[(401, 1_001), (1, 401)]), [Some(LATE); 2]);
        assert_eq!(divergence(&replay, &packets), (4, 2));
    }

    #[test]
    fn halves_that_are_joined_when_sent_again() {
        let packets = [logged(0, 1, 1_000, Fate::Lost), logged(1, 1, 1_000, LATE)];
        let mut replay = Replay::new(&packets);
        fates(&mut replay, &[(1, 401), (401, 1_001)]);
        // The first that is cut like the log's, and yet its bytes are sent for the second time.
        assert_eq!(fates(&mut replay, &[(1, 1_001)]), [Some(LATE)]);
    }

    #[test]
    fn segment_made_of_two_packets() {
        for (first, second) in [(Fate::Lost, SOON), (LATE, Fate::Lost)] {
            let packets = [logged(0, 1, 400, first), logged(1, 401, 600, second)];
            let mut replay = Replay::new(&packets);
            assert_eq!(fates(&mut replay, &[(1, 1_001)]), [Some(first)]);
            assert_eq!(divergence(&replay, &packets), (1, 2));
        }
    }

    #[test]
    fn rest_of_a_packet_that_is_sent_again() {
        let packets =
            [logged(0, 1, 1_000, LATE), logged(1, 401, 600, Fate::Lost), logged(2, 401, 600, SOON)];
        let mut replay = Replay::new(&packets);
        let found = fates(&mut replay, &[(1, 1_001), (401, 1_001), (401, 1_001)]);
        assert_eq!(found, packets.map(|packet| Some(packet.fate)));
        assert_eq!(divergence(&replay, &packets), (0, 0));
    }

    /// Whether a trial that sent these segments from the server sent the same again as the log.
    fn same_again(packets: &[LoggedPacket], segments: &[(u32, u32)]) -> bool {
        let mut replay = Replay::new(packets);
        fates(&mut replay, segments);
        replay.compare(packets, (1_000, 1_000), 0).1
    }

    /// A segment that is made of two when it is sent again is no new one.
    #[test]
    fn segments_that_are_joined_are_sent_again() {
        let two = [logged(0, 1, 400, Fate::Lost), logged(1, 401, 600, Fate::Lost)];
        let joined = [two[0], two[1], logged(2, 1, 1_000, SOON)];
        assert!(!same_again(&joined, &[(1, 401), (401, 1_001)]), "only the log sent it again");
        assert!(!same_again(&two, &[(1, 401), (401, 1_001), (1, 1_001)]), "only the trial");
        assert!(!same_again(&joined, &[(1, 401), (401, 1_001), (1, 401)]), "another length");
        assert!(same_again(&joined, &[(1, 401), (401, 1_001), (1, 1_001)]));
        // Cut otherwise the first time, and sent again alike.
        assert!(same_again(&joined, &[(1, 1_001), (1, 1_001)]));
    }

    #[test]
    fn bytes_that_the_log_does_not_have() {
        let mut replay = Replay::new(&[logged(0, 1, 1_000, Fate::Lost)]);
        let once = replay.fate(Heading::Up, &body(1, 1_001, ACK), 7);
        assert_eq!(once, None, "they went the other way");
        let found = fates(&mut replay, &[(1_001, 2_001), (1, 1_001), (1, 1_001)]);
        assert_eq!(found, [None, Some(Fate::Lost), None]);
    }

    /// Neither a FIN nor a bare acknowledgement is taken for the data beside it.
    #[test]
    fn packets_without_data() {
        let fin = |fate| LoggedPacket { flags: FIN | ACK, ..logged(1, 1_001, 0, fate) };
        let packets = [logged(0, 1, 1_000, Fate::Lost), fin(LATE)];
        let mut replay = Replay::new(&packets);
        let fate = |replay: &mut Replay, seq, end, flags| {
            replay.fate(Heading::Down, &body(seq, end, flags), 7)
        };
        assert_eq!(fate(&mut replay, 1_001, 1_002, FIN | ACK), Some(LATE));
        assert_eq!(fate(&mut replay, 501, 502, FIN | ACK), None);
        assert_eq!(fate(&mut replay, 501, 501, ACK), None);
        // A segment that ends the stream as well is told by its data.
        assert_eq!(fate(&mut replay, 501, 1_002, FIN | ACK), Some(Fate::Lost));
    }
}
