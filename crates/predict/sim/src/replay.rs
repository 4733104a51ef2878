// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaying what a link did to the packets of a connection that was measured.
//!
//! A packet of the trial is the one in the log that goes the same way, has the same sequence
//! numbers and flags, and is the same copy of them; of those without content, the one that
//! acknowledges the same. It meets the same fate: lost, or so long on its way. Its number among all
//! packets would not do: one bare acknowledgement more would shift every fate after it.
//! One that the log does not have comes through in the link's own time.

use std::collections::HashMap;

use crate::carrier::tcp::wire::{ACK, FIN, SYN, TcpSegment};
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
    fates: HashMap<Key, Fate>,
    /// Times that each packet was sent so far, under the key of copy 0.
    copies: HashMap<Key, u32>,
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
        let numbers = len + u32::from(flags & TELLING != 0);
        Key::new(heading, seq, seq.wrapping_add(numbers), ack, flags)
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
        let fates = keys(packets).zip(packets).map(|(key, packet)| (key, packet.fate)).collect();
        Replay { fates, ..Replay::default() }
    }

    /// The fate of a packet that is sent now; `None` for one that the log does not have.
    pub(crate) fn fate(&mut self, heading: Heading, body: &Body, now: u64) -> Option<Fate> {
        let Body::Tcp(segment) = body else { return None };
        let key = Key::of_segment(heading, segment).next_copy(&mut self.copies);
        self.sent.push((key, now));
        self.fates.get(&key).copied()
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
        let again = |list: &[(Key, u64)], ends: u64, down: bool| -> Vec<Key> {
            let of = list.iter().filter(|(key, at)| {
                key.copy > 1 && !key.bare && key.down == down && in_time(key, *at, ends)
            });
            of.map(|(key, _)| *key).collect()
        };
        let same = [false, true]
            .into_iter()
            .all(|down| again(&self.sent, ends_ns, down) == again(&logged, log_ends_ns, down));
        (unmatched, same)
    }
}

/// The keys of a log's packets, in their order.
fn keys(packets: &[LoggedPacket]) -> impl Iterator<Item = Key> {
    let mut copies = HashMap::new();
    packets.iter().map(move |packet| Key::of_logged(packet).next_copy(&mut copies))
}
