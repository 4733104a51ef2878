// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long participants of Cyclone DDS 0.10.2 take until all their endpoints have matched: SPDP,
//! authentication (DDS Security 1.1, section 9.3), tokens and SEDP between each two of them, by
//! round trips and Cyclone's timers. Read from its finest traces of two participants over the
//! lab's link at round trips of 0 to 400 ms; `tests/system/lab/test_dds_discovery.py` holds it
//! against others.
//!
//! Emulated: all announce themselves at once, over a link that loses nothing and whose rate does
//! not matter; samples or submessages are protected, and so is discovery. Not emulated: making a
//! participant (its plugins, keys and documents), what is announced again later, participants that
//! join, and Fast DDS.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use warifu_model::{CertificateType, DeviceProfile, Group, Nanos, Primitive, SignatureAlgorithm};

/// Before a participant that was heard of is validated (`INITIAL_DELAY`, handshake FSM).
const INITIAL_DELAY: u64 = 10_000_000;
/// From the last handshake message until its sender gives its tokens out
/// (`state_send_crypto_tokens_final_wait`): the other may not have read it yet.
const TOKENS_DELAY: u64 = 100_000_000;
/// From a match of builtin endpoints to their writer's first heartbeat.
const FIRST_HEARTBEAT: u64 = 1_000_000;
/// From one heartbeat that nobody acknowledges to the next (Internal/HeartbeatInterval).
const HEARTBEAT_INTERVAL: u64 = 100_000_000;
/// From a match to the reader's asking by itself (Internal/PreEmptiveAckDelay).
const PREEMPTIVE_ACK: u64 = 10_000_000;
/// By how much what is ready at about the same time may be late on a busy machine: assumed, and
/// chosen so that some 24 runs over the emulated link lay within the least and the most.
const MARGIN: u64 = 10_000_000;

/// What authentication takes of a processor, ns: one pair's steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeWork {
    /// begin_handshake_request: a key pair.
    pub request: Nanos,
    /// begin_handshake_reply: the other's certificate verified, a key pair, a signature.
    pub reply: Nanos,
    /// process_handshake of the reply: certificate, signature and permissions verified, the
    /// secret, a signature.
    pub process: Nanos,
    /// process_handshake of the last message: signature and permissions verified, the secret.
    pub finish: Nanos,
}

/// Participants that discover each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// How many, 2 or more.
    pub nodes: u32,
    /// From one to another.
    pub one_way: Nanos,
    /// With DDS Security; `None` without.
    pub security: Option<HandshakeWork>,
}

/// The least and the most, counted from the announcements: what two threads, or two programs that
/// start, happen to do first is not predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// With [`Luck::Good`] everywhere.
    pub least: Nanos,
    /// With [`Luck::Bad`].
    pub most: Nanos,
}

/// Which of two is first, where Cyclone leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Luck {
    /// Announcements find the other there, tokens come behind the first heartbeat of their channel,
    /// and keys are there when what needs them is.
    Good,
    /// Who begins the handshake hears of the other by the answer to its own announcement; tokens
    /// come before the heartbeat, where they can, and are asked for again; keys are there
    /// [`MARGIN`] too late.
    Bad,
}

/// When the two ends of a pair are through with its handshake, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    /// The last message leaves the one that began.
    sent: u64,
    /// The other has processed it.
    taken: u64,
}

/// A step of a pair's handshake that waits for its node's thread: when, then the pair, its step.
type Waiting = Reverse<(u64, usize, u8)>;

impl HandshakeWork {
    /// By a device's primitives, their medians: the algorithms of section 9.3.4 with P-256.
    ///
    /// # Errors
    /// Those that the profile has no cost for.
    pub fn of(device: &DeviceProfile) -> Result<HandshakeWork, Vec<Primitive>> {
        let algorithm = SignatureAlgorithm::Certificate(CertificateType::EcdsaSecp256r1);
        let needed = [
            Primitive::EcdhKeygen(Group::Secp256r1),
            Primitive::EcdhDerive(Group::Secp256r1),
            Primitive::Sign(algorithm),
            Primitive::Verify(algorithm),
        ];
        let found = needed.map(|primitive| {
            let cost = device.primitive(primitive, 0).ok_or(primitive)?;
            Ok(cost.law(false).quantile(0.5).0)
        });
        let [Ok(keygen), Ok(derive), Ok(sign), Ok(verify)] = found else {
            return Err(found.into_iter().filter_map(Result::err).collect());
        };
        Ok(HandshakeWork {
            request: Nanos(keygen),
            reply: Nanos(verify + keygen + sign),
            process: Nanos(3 * verify + derive + sign),
            finish: Nanos(2 * verify + derive),
        })
    }
}

impl Discovery {
    /// How many handshakes there are.
    pub fn handshakes(&self) -> u64 {
        let nodes = u64::from(self.nodes);
        if self.security.is_some() { nodes * nodes.saturating_sub(1) / 2 } else { 0 }
    }

    /// Until every endpoint of every participant has matched.
    pub fn until_matched(&self) -> Span {
        let one_way = self.one_way.0;
        let Some(work) = self.security else {
            // Announcement; heartbeat; acknowledgement, which asks; what is announced.
            let all = Nanos(4 * one_way + FIRST_HEARTBEAT);
            return Span { least: all, most: all };
        };
        let last = |luck| {
            let pairs = handshakes(self.nodes as usize, one_way, work, luck);
            let all = pairs.into_iter().map(|pair| matched(pair, one_way, luck));
            Nanos(all.max().unwrap_or(0))
        };
        Span { least: last(Luck::Good), most: last(Luck::Bad) }
    }
}

/// All pairs' handshakes; each node has one thread for them, and takes what came first.
fn handshakes(nodes: usize, one_way: u64, work: HandshakeWork, luck: Luck) -> Vec<Handshake> {
    let of: Vec<(usize, usize)> =
        (0..nodes).flat_map(|one| (one + 1..nodes).map(move |other| (one, other))).collect();
    let costs = [work.request, work.reply, work.process, work.finish];
    let mut free_at = vec![0_u64; nodes];
    let mut done = vec![Handshake::default(); of.len()];
    let announcements = if luck == Luck::Good { 1 } else { 2 };
    let begin = announcements * one_way + INITIAL_DELAY;
    let mut waiting: BinaryHeap<Waiting> =
        (0..of.len()).map(|pair| Reverse((begin, pair, 0))).collect();
    while let Some(Reverse((at, pair, step))) = waiting.pop() {
        let node = if step % 2 == 0 { of[pair].0 } else { of[pair].1 };
        let end = at.max(free_at[node]) + costs[usize::from(step)].0;
        free_at[node] = end;
        match step {
            2 => done[pair].sent = end,
            3 => done[pair].taken = end,
            _ => {}
        }
        if step < 3 {
            waiting.push(Reverse((end + one_way, pair, step + 1)));
        }
    }
    done
}

/// When both ends of a pair have matched all endpoints.
fn matched(pair: Handshake, one_way: u64, luck: Luck) -> u64 {
    let Handshake { sent, taken } = pair;
    let repair = if luck == Luck::Bad { 2 * one_way } else { 0 };
    // Tokens of the one that answered leave at once; the one that began uses them when its own are
    // on their way.
    let began = (sent + TOKENS_DELAY).max(taken + one_way + repair);
    // Its own come later: perhaps behind the heartbeat that answers what the reader asked by
    // itself.
    let arrived = sent + TOKENS_DELAY + one_way;
    let seen = taken + PREEMPTIVE_ACK + 2 * one_way <= arrived;
    let answered = taken.max(arrived) + if seen { 0 } else { repair };
    // Announcements of endpoints: a heartbeat that can be read, an acknowledgement, the data.
    let at_answered = heartbeat(began, answered, one_way, luck) + 2 * one_way;
    let at_began = heartbeat(answered, began, one_way, luck) + 2 * one_way;
    // Whoever has read them sends the endpoints' tokens.
    at_answered.max(at_began) + one_way
}

/// When a reader that has its keys from `reader` on takes the first heartbeat of a writer that has
/// them from `writer` on.
fn heartbeat(writer: u64, reader: u64, one_way: u64, luck: Luck) -> u64 {
    let ready = if luck == Luck::Good { reader } else { reader + MARGIN };
    let first = writer + FIRST_HEARTBEAT + one_way;
    let missed = ready.saturating_sub(first).div_ceil(HEARTBEAT_INTERVAL);
    let by_the_clock = first + missed * HEARTBEAT_INTERVAL;
    let asked = reader + PREEMPTIVE_ACK + one_way;
    if asked < writer { by_the_clock } else { by_the_clock.min(asked + one_way) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn until_matched(nodes: u32, rtt_ms: u64, work: HandshakeWork) -> [u64; 2] {
        let one_way = Nanos(rtt_ms * MS / 2);
        let span = Discovery { nodes, one_way, security: Some(work) }.until_matched();
        [span.least.0 / MS, span.most.0 / MS]
    }

    #[test]
    fn without_security_two_round_trips() {
        for nodes in [2, 20] {
            let discovery = Discovery { nodes, one_way: Nanos(50 * MS), security: None };
            let all = Nanos(201 * MS);
            assert_eq!(discovery.until_matched(), Span { least: all, most: all });
            assert_eq!(discovery.handshakes(), 0);
        }
    }

    /// At no delay two timers are all: 10 and 100 ms. At 200 ms the announcement takes 100 ms (or
    /// 200 with its answer), the timer 10, three messages 300, tokens 100 (or 300), heartbeat,
    /// acknowledgement and data 300, the endpoints' tokens 100, and a heartbeat is 1 ms late. Where
    /// a heartbeat just misses its keys, the reader asks 10 ms later.
    #[test]
    fn with_security_by_hand() {
        let nothing = HandshakeWork::default();
        assert_eq!(until_matched(2, 0, nothing), [111, 120]);
        assert_eq!(until_matched(2, 200, nothing), [911, 1_211]);
        // The wait of 100 ms covers the peer's tokens, and a heartbeat was there before its own.
        let (least, most) = (10 + 10 + 20 + 100 + 1 + 50, 20 + 10 + 20 + 100 + 10 + 30 + 30);
        assert_eq!(until_matched(2, 20, nothing), [least, most]);
    }

    #[test]
    fn handshakes_of_one_node_one_after_the_other() {
        let work = HandshakeWork {
            request: Nanos(MS),
            reply: Nanos(3 * MS),
            process: Nanos(4 * MS),
            finish: Nanos(2 * MS),
        };
        let [alone, _] = until_matched(2, 0, work);
        assert_eq!(alone, 111 + 1 + 3 + 4);
        let [many, _] = until_matched(20, 0, work);
        // Of each pair 10 ms; the busiest node has 19 of them, at least half a pair's each.
        assert!(many > alone + 18 * 3 && many < alone + 190 * 10, "{many}");
        let discovery = Discovery { nodes: 20, one_way: Nanos::ZERO, security: Some(work) };
        assert_eq!(discovery.handshakes(), 190);
    }

    #[test]
    fn longer_links_take_longer() {
        let mut before = [0; 2];
        for rtt in (0..500).step_by(10) {
            let span = until_matched(2, rtt, HandshakeWork::default());
            assert!(span[0] <= span[1], "{rtt}");
            assert!(span[0] >= before[0], "{rtt}: {span:?} {before:?}");
            before = span;
        }
    }
}
