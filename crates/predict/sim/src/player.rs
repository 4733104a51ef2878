// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Playing a tape: a trial without events.

use warifu_model::{Mark, Stage};

use crate::case_model::CaseModel;
use crate::clock::{Clock, Span, Ticks};
use crate::outcome::ConnectionOutcome;
use crate::packet::Transit;
use crate::party::{Spent, Written};
use crate::route::Heading;
use crate::speed::Speeds;
use crate::tape::{Act, End, Piece, Step, Taken, Ways};
use crate::world::World;

/// Plays tapes one after the other; keeps its memory between them.
#[derive(Debug, Default)]
pub(crate) struct Player {
    parties: [Account; 2],
    /// When each event happened.
    events: Vec<u64>,
    packets: Vec<Carried>,
    writes: Vec<Written>,
    channels: Vec<Opening>,
    /// The device's account at the first mark, and since then at the response.
    start: Spent,
    stages: Spent,
    /// As of an outcome.
    marks: [u64; Mark::COUNT],
    /// The packet that arrived last.
    packet: usize,
    /// Whether the last event was a packet's arrival, and in which direction.
    heading: Option<usize>,
    now: u64,
    /// What each role's computing takes in the place of 1.
    speeds: Speeds,
    /// Packets of each direction that arrived in the last trial that was played to its end.
    pub arrived: [u64; 2],
}

/// A party's time, and where it went.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    time: u64,
    spent: Spent,
    /// Since when it waits.
    rests_since: u64,
}

/// A packet on the link.
#[derive(Clone, Copy, Debug)]
struct Carried {
    heading: usize,
    arrival: u64,
    transit: Transit,
}

/// As of a channel in motion.
#[derive(Clone, Copy, Debug, Default)]
struct Opening {
    opening: Option<Written>,
    request: Option<Written>,
    opened: Option<Written>,
}

impl Account {
    #[inline]
    fn spend(&mut self, stage: Stage, ns: u64) {
        self.time += ns;
        self.spent[stage as usize] += ns;
    }

    fn written(&self) -> Written {
        Written { time: self.time, spent: self.spent }
    }
}

impl Player {
    /// The outcome of a trial whose chance has been drawn, if it goes as the tape's did. If not,
    /// the world's streams and paths are no longer at their beginning.
    pub(crate) fn play(
        &mut self,
        ways: &Ways,
        model: &CaseModel,
        world: &mut World,
        seed: u64,
    ) -> Option<ConnectionOutcome> {
        self.begin(model);
        // As of the first episode of the first instance.
        self.speeds = model.speed.draw(seed, 0, 0);
        world.key_store.reset();
        let mut steps = ways.steps.iter();
        loop {
            let step = steps.next()?;
            let goes_so = match step.act {
                Act::Compute { party, run } => {
                    self.compute(&ways.runs[run as usize], party, model, world);
                    continue;
                }
                Act::Send { heading, bytes } => {
                    self.send(heading, bytes, model, world);
                    continue;
                }
                Act::Arrive { .. } | Act::GoOn { .. } => {
                    if let Some(after) = self.event(ways, step)? {
                        steps = after.iter();
                    }
                    continue;
                }
                Act::Spans { spans } => self.hold(&ways.spans[spans as usize]),
                Act::Ticks { clock, ticks } => {
                    self.have_begun(&world.clocks[usize::from(clock)], ticks)
                }
                Act::IsBehind { party, behind } => {
                    (self.parties[usize::from(party)].time < self.now) == behind
                }
                Act::IsDue { party, due } => {
                    (self.parties[usize::from(party)].time <= self.now) == due
                }
                Act::IsCold { party, cold } => self.is_cold(party, model) == cold,
                Act::KeyStore { party, call, signs, colder } => {
                    self.key_store(party, (call, signs), model, world) == colder
                }
                Act::End { end } => return self.end(&ways.ends[end as usize], model),
                _ => {
                    self.account(&step.act)?;
                    continue;
                }
            };
            if !goes_so {
                steps = ways.otherwise(step)?.iter();
            }
        }
    }

    /// Whether spans until now are as they must be.
    #[inline]
    fn hold(&self, spans: &[Span]) -> bool {
        spans.iter().all(|&Span { from, least, most }| {
            (least..=most).contains(&(self.now - self.events[usize::from(from)]))
        })
    }

    /// Whether so many ticks of a clock have begun.
    #[inline]
    fn have_begun(&self, clock: &Clock, Ticks { from, least, most }: Ticks) -> bool {
        let ticks = clock.ticks_between(self.events[usize::from(from)], self.now);
        (u64::from(least)..=u64::from(most)).contains(&ticks)
    }

    #[inline]
    fn compute(&mut self, run: &[Piece], party: u8, model: &CaseModel, world: &mut World) {
        let role = model.programs.parties[usize::from(party)].role;
        let account = &mut self.parties[usize::from(party)];
        let World { streams, places, .. } = world;
        let stream = &mut streams[role as usize];
        for piece in run {
            let (cold, ns) = match piece.time {
                Taken::Drawn { cost, cold } => {
                    (cold, model.programs.costs[cost as usize].draw(cold, stream, places))
                }
                Taken::Always { cold, ns } => (cold, ns),
                Taken::Paused { ns } => {
                    account.spend(piece.stage, ns);
                    continue;
                }
            };
            account.spend(piece.stage, self.speeds.of(role, piece.stage, cold, ns));
        }
    }

    #[inline]
    fn send(&mut self, heading: Heading, bytes: u32, model: &CaseModel, world: &mut World) {
        let path = &mut world.paths[heading as usize];
        let carried = path.carry(&model.paths[heading as usize], heading, self.now, bytes);
        // What would arrive after the end may be lost.
        let (arrival, transit) = carried.unwrap_or((u64::MAX, Transit::default()));
        self.packets.push(Carried { heading: heading as usize, arrival, transit });
    }

    fn is_cold(&self, party: u8, model: &CaseModel) -> bool {
        let role = model.programs.parties[usize::from(party)].role as usize;
        let account = &self.parties[usize::from(party)];
        account.time.saturating_sub(account.rests_since) > model.idle_threshold[role]
    }

    /// Whether a call took so long that caches are cold after it.
    fn key_store(
        &mut self,
        party: u8,
        call: (u32, bool),
        model: &CaseModel,
        world: &mut World,
    ) -> bool {
        let account = &mut self.parties[usize::from(party)];
        let ns = world.key_store.call(model, &mut world.streams[2], account.time, call);
        account.spend(Stage::KeyStore, ns);
        ns > model.idle_threshold[model.programs.parties[usize::from(party)].role as usize]
    }

    /// The next event: of those that are known to come next, the earliest. The steps after it, if
    /// it is not the first of them.
    #[inline]
    fn event<'a>(&mut self, ways: &'a Ways, first: &'a Step) -> Option<Option<&'a [Step]>> {
        let (mut earliest, mut time) = (first.act, self.time_of(&first.act)?);
        let (mut known, mut after) = (first, None);
        while known.otherwise != 0 {
            let (other, rest) = ways.otherwise(known)?.split_first()?;
            if !other.act.is_event() {
                return None;
            }
            let comes = self.time_of(&other.act)?;
            if comes == time {
                return None;
            }
            if comes < time {
                (earliest, time, after) = (other.act, comes, Some(rest));
            }
            known = other;
        }
        let (now, mut heading) = (self.now, None);
        if let Act::Arrive { packet } = earliest {
            let packet = usize::from(packet);
            heading = Some(self.packets.get(packet)?.heading);
            // Of equal times the packet that was sent first comes first.
            if time == now && (self.heading != heading || packet < self.packet) {
                return None;
            }
            self.packet = packet;
        } else if time == now {
            return None;
        }
        if time < now || time == u64::MAX {
            return None;
        }
        self.now = time;
        self.heading = heading;
        self.events.push(time);
        Some(after)
    }

    #[inline]
    fn time_of(&self, event: &Act) -> Option<u64> {
        match *event {
            Act::Arrive { packet } => Some(self.packets.get(usize::from(packet))?.arrival),
            Act::GoOn { party } => Some(self.parties[usize::from(party)].time),
            _ => None,
        }
    }

    /// The outcome, if the trial has really ended there.
    fn end(&mut self, end: &End, model: &CaseModel) -> Option<ConnectionOutcome> {
        let later = |&packet: &u16| {
            self.packets.get(usize::from(packet)).is_some_and(|packet| {
                let same_way = self.heading == Some(packet.heading);
                packet.arrival > self.now || (packet.arrival == self.now && same_way)
            })
        };
        let goes_on = |&party: &u8| self.parties[usize::from(party)].time > self.now;
        let sure = end.late_packets.iter().all(later) && end.late_programs.iter().all(goes_on);
        self.arrived = end.packets;
        let Player { marks, stages, .. } = *self;
        (sure && self.now <= model.horizon).then_some(ConnectionOutcome {
            marks,
            stages,
            ..end.outcome
        })
    }

    fn begin(&mut self, model: &CaseModel) {
        self.parties = [Account::default(); 2];
        self.events.clear();
        self.events.push(0);
        self.packets.clear();
        let unwritten = Written { time: 0, spent: [0; Stage::ALL.len()] };
        self.writes.resize(model.programs.messages.len(), unwritten);
        self.channels.clear();
        self.channels.resize(model.programs.channels.len(), Opening::default());
        self.marks = [0; Mark::COUNT];
        self.stages = [0; Stage::ALL.len()];
        self.packet = 0;
        self.heading = None;
        self.now = 0;
    }

    fn mark(&mut self, party: u8, mark: Mark) {
        let account = &self.parties[usize::from(party)];
        self.marks[mark as usize] = account.time;
        if mark == Mark::Start {
            self.start = account.spent;
        }
        if mark == Mark::FirstResponse {
            let (spent, start) = (&account.spent, &self.start);
            self.stages = std::array::from_fn(|stage| spent[stage] - start[stage]);
        }
    }

    /// What an act does to the accounts; `None` where it is none of these.
    #[inline]
    fn account(&mut self, act: &Act) -> Option<()> {
        match *act {
            Act::Write { party, first } => {
                self.writes[usize::from(first)] = self.parties[usize::from(party)].written();
            }
            Act::Wake { party, whole, write } => {
                let spent = self.arrived(&self.writes[usize::from(write)], whole)?;
                self.take_over(party, spent);
            }
            Act::Rest { party } => {
                let account = &mut self.parties[usize::from(party)];
                account.rests_since = account.time;
            }
            Act::Mark { party, mark } => self.mark(party, mark),
            Act::Open { party, channel } => {
                let written = self.parties[usize::from(party)].written();
                self.channels[usize::from(channel)].opening = Some(written);
            }
            Act::Request { channel } => {
                let opening = self.channels[usize::from(channel)].opening?;
                let spent = self.arrived(&opening, true)?;
                self.channels[usize::from(channel)].request =
                    Some(Written { time: self.now, spent });
            }
            Act::Opened { party, channel, opens, wakes } => {
                let state = &self.channels[usize::from(channel)];
                let before = if opens { state.request } else { state.opened };
                let spent = self.arrived(&before?, opens)?;
                if opens {
                    self.channels[usize::from(channel)].opened =
                        Some(Written { time: self.now, spent });
                }
                if wakes {
                    self.take_over(party, spent);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// The account of what was written when the packet at hand has brought it.
    #[inline]
    fn arrived(&self, written: &Written, whole: bool) -> Option<Spent> {
        let Carried { arrival, transit, .. } = self.packets.get(self.packet)?;
        // Nothing was sent before, so that is when it was first sent.
        Some(written.came(*arrival, transit, transit.sent, whole))
    }

    fn take_over(&mut self, party: u8, spent: Spent) {
        let account = &mut self.parties[usize::from(party)];
        account.time = self.now;
        account.spent = spent;
    }
}
