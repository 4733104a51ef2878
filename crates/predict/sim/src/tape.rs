// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a trial without loss went, as a list of what takes time, so that other trials that go the
//! same way need nothing but their own draws.
//!
//! A tape is recorded while the event engine runs a trial: every draw, packet and waking in its
//! order, and every decision that depends on a time. A trial that is played from it draws from the
//! same streams in the same order, and does the same sums by the same functions; wherever the
//! engine would have decided, the decision is checked, and if one falls otherwise the trial is left
//! to the engine. So a played trial has the engine's outcome to the nanosecond, whatever its costs
//! are: constant, drawn, by a board's place in a band.
//!
//! What TCP decides by its clock is known from the spans that it notes ([`Clock::rely`]): ticks,
//! timers and estimates of the round trip are bounded in them. Where another tick would decide
//! otherwise, as of a delayed acknowledgement when answers come 40 ms later, each trial counts its
//! own ([`Clock::rely_on_ticks`]), before what comes of it. Events come in the order of the tape
//! if each is later than the one before, for then none of those that were waiting was earlier.
//!
//! [`Clock::rely`]: crate::clock::Clock::rely
//! [`Clock::rely_on_ticks`]: crate::clock::Clock::rely_on_ticks

use warifu_model::{Mark, Role, Stage};

use crate::clock::{Span, Ticks};
use crate::event_queue::Event;
use crate::outcome::ConnectionOutcome;
use crate::program::{Op, PROCESSING};
use crate::route::Heading;

/// What happens in a trial, as the player does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// A packet arrives, by its number among all.
    Arrive { packet: u16 },
    /// A program's own time has come.
    GoOn { party: u8 },
    /// A party's processing takes time by a law, of [`Programs::costs`].
    ///
    /// [`Programs::costs`]: crate::program::Programs::costs
    Draw { party: u8, cold: bool, stage: Stage, cost: u32 },
    /// A party does nothing for so long.
    Pause { party: u8, ns: u64 },
    /// A party's processing takes as long as it always does.
    Constant { party: u8, cold: bool, stage: Stage, ns: u64 },
    /// A party's processing, one after the other; the index is of [`Ways::runs`].
    Compute { party: u8, run: u32 },
    /// A call to the key store, after which the party's caches are cold if it took longer.
    KeyStore { party: u8, call: u32, signs: bool, colder: bool },
    /// A packet is put on the link.
    Send { heading: Heading, bytes: u32 },
    /// A party writes messages, by the number of the first.
    Write { party: u8, first: u16 },
    /// A party opens a channel.
    Open { party: u8, channel: u16 },
    /// The packet at hand asks the acceptor to open a channel.
    Request { channel: u16 },
    /// A channel is open at one end; its party takes the account over if it waited for that.
    Opened { party: u8, channel: u16, opens: bool, wakes: bool },
    /// What a party waited for has come with the packet at hand: it was written then.
    Wake { party: u8, whole: bool, write: u16 },
    /// A party waits from its own time on.
    Rest { party: u8 },
    /// Whether a party's caches are cold.
    IsCold { party: u8, cold: bool },
    /// Whether a party's own time is before now.
    IsBehind { party: u8, behind: bool },
    /// Whether a party's own time has come.
    IsDue { party: u8, due: bool },
    /// Since the event of that number at least so long has passed, ns.
    Least { since: u16, ns: u64 },
    /// And at most so long.
    Most { since: u16, ns: u64 },
    /// All of these at once; the index is of [`Ways::spans`].
    Spans { spans: u32 },
    /// Since an event at least and at most so many ticks of a clock have begun.
    Ticks { clock: u8, ticks: Ticks },
    /// A party passes a mark.
    Mark { party: u8, mark: Mark },
    /// The trial has ended; the index is of [`Ways::ends`].
    End { end: u32 },
}

/// The ways that trials without loss are known to go: their tapes, where those that begin in the
/// same way have it in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    pub steps: Vec<Step>,
    pub ends: Vec<End>,
    /// What parties compute from one decision to the next.
    pub runs: Vec<Box<[Piece]>>,
    /// What is relied on together, once of each event.
    pub spans: Vec<Box<[Span]>>,
    tapes: usize,
    bytes: usize,
}

/// A piece of a party's processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub stage: Stage,
    pub time: Taken,
}

/// How long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// As long as a law has it, of [`Programs::costs`].
    ///
    /// [`Programs::costs`]: crate::program::Programs::costs
    Drawn { cost: u32, cold: bool },
    /// Always so long, but for what a connection's computing has in common.
    Always { cold: bool, ns: u64 },
    /// So long by the program's own will.
    Paused { ns: u64 },
}

/// An act, and where to go on if it is not what happens: the index of another step, 0 if nothing
/// else is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub act: Act,
    pub otherwise: u32,
}

/// What is known of a trial at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The outcome of the trial that was recorded; counters are those of all that go its way.
    pub outcome: ConnectionOutcome,
    /// Packets of each direction that arrived before it.
    pub packets: [u64; 2],
    /// Packets, and programs that were to go on, whose time had not come.
    pub late_packets: Vec<u16>,
    pub late_programs: Vec<u8>,
}

/// A trial that was recorded to its end.
#[derive(Clone, Debug)]
pub(crate) struct Tape {
    acts: Vec<Act>,
    pub end: End,
}

/// Ways of the same lengths, at most: each costs a trial that is recorded, and memory.
const MOST_TAPES: usize = 500;

impl Ways {
    /// Whether another way may be remembered.
    pub(crate) fn have_room(&self) -> bool {
        self.tapes < MOST_TAPES
    }

    /// The memory that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The steps to go on with if one's act is not what happens; `None` if nothing else is known.
    #[inline]
    pub(crate) fn otherwise(&self, step: &Step) -> Option<&[Step]> {
        if step.otherwise == 0 { None } else { self.steps.get(step.otherwise as usize..) }
    }

    /// Adds a way to go.
    pub(crate) fn add(&mut self, tape: Tape) {
        self.tapes += 1;
        let acts = self.join(&tape.acts);
        let mut at = 0;
        for (index, &act) in acts.iter().enumerate() {
            loop {
                match self.steps.get(at) {
                    Some(step) if step.act == act => break,
                    Some(step) if step.otherwise != 0 => at = step.otherwise as usize,
                    Some(step) => {
                        // Events are looked for among each other.
                        let both_events = step.act.is_event() && act.is_event();
                        if step.act.is_check() || both_events {
                            self.steps[at].otherwise = self.steps.len() as u32;
                            self.append(&acts[index..], tape.end);
                        }
                        return;
                    }
                    None => return self.append(&acts[index..], tape.end),
                }
            }
            at += 1;
        }
    }

    /// The same acts, with what a party computes without a decision in between as one, and what is
    /// relied on at once.
    fn join(&mut self, acts: &[Act]) -> Vec<Act> {
        let mut joined = Vec::with_capacity(acts.len());
        let party_of = |act: &Act| act.piece().map(|(party, _)| party);
        let go_together = |a: &Act, b: &Act| {
            (party_of(a).is_some() && party_of(a) == party_of(b)) || (a.is_bound() && b.is_bound())
        };
        for group in acts.chunk_by(go_together) {
            if let Some(party) = party_of(&group[0]) {
                let pieces = group.iter().filter_map(Act::piece).map(|(_, piece)| piece);
                let run = number(&mut self.runs, pieces.collect(), &mut self.bytes);
                joined.push(Act::Compute { party, run });
            } else if group[0].is_bound() {
                let spans = number(&mut self.spans, bounds(group), &mut self.bytes);
                joined.push(Act::Spans { spans });
            } else {
                joined.extend_from_slice(group);
            }
        }
        joined
    }

    fn append(&mut self, acts: &[Act], end: End) {
        self.steps.extend(acts.iter().map(|&act| Step { act, otherwise: 0 }));
        let act = Act::End { end: self.ends.len() as u32 };
        self.steps.push(Step { act, otherwise: 0 });
        self.ends.push(end);
        self.bytes += (acts.len() + 1) * size_of::<Step>() + size_of::<End>();
    }
}

/// The number of something among all that are known, of which it is one from now on; what it takes
/// is added to `bytes`.
fn number<T: PartialEq>(known: &mut Vec<Box<[T]>>, wanted: Box<[T]>, bytes: &mut usize) -> u32 {
    let found = known.iter().position(|other| *other == wanted);
    let number = found.unwrap_or_else(|| {
        *bytes += size_of::<Box<[T]>>() + size_of_val::<[T]>(&wanted);
        known.push(wanted);
        known.len() - 1
    });
    number as u32
}

/// Bounds on spans, one of each.
fn bounds(acts: &[Act]) -> Box<[Span]> {
    let mut spans: Vec<Span> = Vec::new();
    for act in acts {
        let (Act::Least { since, .. } | Act::Most { since, .. }) = *act else { continue };
        let known = spans.iter().position(|span| span.from == since);
        let at = known.unwrap_or_else(|| {
            spans.push(Span { from: since, least: 0, most: u64::MAX });
            spans.len() - 1
        });
        let span = &mut spans[at];
        match *act {
            Act::Least { ns, .. } => span.least = span.least.max(ns),
            Act::Most { ns, .. } => span.most = span.most.min(ns),
            _ => {}
        }
    }
    spans.into()
}

impl Act {
    /// A piece of a party's processing.
    fn piece(&self) -> Option<(u8, Piece)> {
        match *self {
            Act::Draw { party, cold, stage, cost } => {
                Some((party, Piece { stage, time: Taken::Drawn { cost, cold } }))
            }
            Act::Constant { party, cold, stage, ns } => {
                Some((party, Piece { stage, time: Taken::Always { cold, ns } }))
            }
            Act::Pause { party, ns } => {
                Some((party, Piece { stage: Stage::Idle, time: Taken::Paused { ns } }))
            }
            _ => None,
        }
    }

    /// Whether it bounds a span.
    fn is_bound(&self) -> bool {
        matches!(self, Act::Least { .. } | Act::Most { .. })
    }

    /// Whether it does nothing but see if something is so.
    fn is_check(&self) -> bool {
        use Act::{IsBehind, IsCold, IsDue, Spans, Ticks};
        matches!(self, IsBehind { .. } | IsCold { .. } | IsDue { .. } | Spans { .. } | Ticks { .. })
    }

    /// Whether it is an event.
    pub(crate) fn is_event(&self) -> bool {
        matches!(self, Act::Arrive { .. } | Act::GoOn { .. })
    }
}

/// A trial that is being recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    acts: Vec<Act>,
    /// When each event happened, from the beginning on, which is the first.
    events: Vec<u64>,
    /// What is on its way in each direction: when it arrives, and its number.
    on_way: [Vec<(u64, u16)>; 2],
    /// Packets sent so far; how many of each direction have arrived.
    sent: u16,
    arrived: [u64; 2],
    /// Programs that will go on at their own time.
    waiting: Vec<u8>,
    /// Whether something happened that no tape can tell.
    spoilt: bool,
}

impl Recorder {
    /// A trial that begins now.
    pub(crate) fn new() -> Recorder {
        Recorder { events: vec![0], ..Recorder::default() }
    }

    /// Something happens that depends on more than a tape can tell: what was noted is of no use,
    /// and nothing more is.
    pub(crate) fn spoil(&mut self) {
        *self = Recorder { spoilt: true, ..Recorder::default() };
    }

    /// Something is done.
    pub(crate) fn push(&mut self, act: Act) {
        if self.spoilt {
            return;
        }
        // A program that goes on at its own time does so because it has come.
        let goes_on = |party| self.acts.last() == Some(&Act::GoOn { party });
        if !matches!(act, Act::IsDue { party, due: true } if goes_on(party)) {
            self.acts.push(act);
        }
    }

    /// An event happens; its number, 0 where there will be no tape.
    pub(crate) fn event(&mut self, time: u64, event: Event) -> u16 {
        if self.spoilt {
            return 0;
        }
        let Ok(number) = u16::try_from(self.events.len()) else {
            self.spoil();
            return 0;
        };
        self.events.push(time);
        match event {
            Event::Arrival(heading) if !self.on_way[heading as usize].is_empty() => {
                let (_, packet) = self.on_way[heading as usize].remove(0);
                self.arrived[heading as usize] += 1;
                self.push(Act::Arrive { packet });
            }
            Event::Program { party, .. } => {
                self.waiting.retain(|&of| u32::from(of) != party);
                self.push(Act::GoOn { party: party as u8 });
            }
            _ => self.spoil(),
        }
        number
    }

    /// A packet was put on the link that arrives then, if it is not lost.
    pub(crate) fn sent(&mut self, heading: Heading, bytes: u32, arrival: Option<u64>) {
        if self.spoilt {
            return;
        }
        let (Some(arrival), Some(sent)) = (arrival, self.sent.checked_add(1)) else {
            return self.spoil();
        };
        let way = &mut self.on_way[heading as usize];
        let at = way.partition_point(|&(other, _)| other <= arrival);
        way.insert(at, (arrival, self.sent));
        self.sent = sent;
        self.push(Act::Send { heading, bytes });
    }

    /// A program will go on at its own time.
    pub(crate) fn waits(&mut self, party: usize) {
        if self.spoilt {
            return;
        }
        self.waiting.push(party as u8);
    }

    /// A party has run these steps of its program, with its caches as they are.
    pub(crate) fn ran(&mut self, party: usize, steps: &[Op], is_cold: bool) {
        let party = party as u8;
        for step in steps {
            match *step {
                Op::Constant { stages, warm, cold } => {
                    let times = if is_cold { cold } else { warm };
                    for (stage, ns) in stages.into_iter().zip(times) {
                        if ns > 0 {
                            self.push(Act::Constant { party, cold: is_cold, stage, ns });
                        }
                    }
                }
                Op::Draw { cost, stage, .. } => {
                    self.push(Act::Draw { party, cold: is_cold, stage, cost });
                }
                Op::Step { .. } => self.spoil(),
                _ => {}
            }
        }
    }

    /// A party with a role has woken up.
    pub(crate) fn woke(&mut self, party: usize, role: Role, cold: bool, cost: u32) {
        let stage = PROCESSING[role as usize][1];
        self.push(Act::Draw { party: party as u8, cold, stage, cost });
    }

    /// The numbers of ticks that TCP has relied on: before what came of it is put on the tape.
    pub(crate) fn counted(&mut self, clock: u8, counts: Vec<Ticks>) {
        for ticks in counts {
            self.push(Act::Ticks { clock, ticks });
        }
    }

    /// What TCP relied on in the event at hand.
    pub(crate) fn relied_on(&mut self, spans: Vec<Span>) {
        if self.spoilt {
            return;
        }
        let now = self.events.last().copied().unwrap_or(0);
        for Span { from, least, most } in spans {
            let began = self.events.get(usize::from(from)).copied().unwrap_or(now);
            if !(least..=most).contains(&(now - began)) {
                return self.spoil();
            }
            if most < u64::MAX / 2 {
                self.check(Act::Most { since: from, ns: most });
            }
            if least > 0 {
                self.check(Act::Least { since: from, ns: least });
            }
        }
    }

    /// Something is to be checked at the event at hand. Of several bounds on a span the tightest is
    /// enough.
    fn check(&mut self, act: Act) {
        let here = self.acts.iter().rposition(Act::is_event).map_or(0, |event| event + 1);
        for other in &mut self.acts[here..] {
            match (other, act) {
                (Act::Most { since, ns }, Act::Most { since: of, ns: most }) if *since == of => {
                    *ns = most.min(*ns);
                    return;
                }
                (Act::Least { since, ns }, Act::Least { since: of, ns: least }) if *since == of => {
                    *ns = least.max(*ns);
                    return;
                }
                _ => {}
            }
        }
        self.push(act);
    }

    /// The tape, if the trial can be told by one.
    pub(crate) fn finish(self, outcome: ConnectionOutcome) -> Option<Tape> {
        let fits = self.events.len() < usize::from(u16::MAX) && self.sent < u16::MAX;
        let late_packets = self.on_way.iter().flatten().map(|&(_, packet)| packet).collect();
        let (packets, late_programs) = (self.arrived, self.waiting);
        let end = End { outcome, packets, late_packets, late_programs };
        (fits && !self.spoilt && !outcome.failed).then_some(Tape { acts: self.acts, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEND: Act = Act::Send { heading: Heading::Up, bytes: 40 };

    /// A trial in which so many packets are sent, and arrive.
    fn trial(packets: usize) -> Recorder {
        let mut recorder = Recorder::new();
        for packet in 0..packets as u64 {
            recorder.sent(Heading::Up, 40, Some(packet));
            recorder.event(packet, Event::Arrival(Heading::Up));
        }
        recorder
    }

    #[test]
    fn a_trial_of_more_than_can_be_numbered_has_no_tape() {
        let tape = trial(65_533).finish(ConnectionOutcome::default());
        assert_eq!(tape.map(|tape| tape.acts.len()), Some(2 * 65_533));
        for packets in [65_534, 65_536, 70_000] {
            let recorder = trial(packets);
            assert!(packets < 65_536 || recorder.acts.is_empty(), "it ends early");
            assert!(recorder.finish(ConnectionOutcome::default()).is_none(), "{packets}");
        }
        let mut recorder = Recorder::new();
        for _ in 0..70_000 {
            recorder.sent(Heading::Up, 40, Some(1));
        }
        assert!(recorder.acts.is_empty());
        assert!(recorder.finish(ConnectionOutcome::default()).is_none());
    }

    #[test]
    fn nothing_is_noted_of_a_trial_that_is_spoilt() {
        let mut recorder = trial(3);
        recorder.sent(Heading::Up, 40, None);
        recorder.push(SEND);
        recorder.waits(0);
        recorder.sent(Heading::Up, 40, Some(9));
        assert_eq!(recorder.event(9, Event::Arrival(Heading::Up)), 0);
        recorder.relied_on(vec![Span { from: 2, least: 1, most: 2 }]);
        assert!(recorder.acts.is_empty() && recorder.waiting.is_empty());
        assert!(recorder.finish(ConnectionOutcome::default()).is_none());
    }
}
