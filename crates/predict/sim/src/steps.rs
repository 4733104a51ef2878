// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running programs: what each step does.

use std::ops::Range;

use warifu_model::{Counter, Mark, Role, Stage};

use crate::carrier::Carrier;
use crate::instance::Instance;
use crate::party::{Waiting, Written};
use crate::program::{Op, PROCESSING};
use crate::recording::Doing;
use crate::resource::Claimant;
use crate::route::End;
use crate::tape::Act;
use crate::turn::{Place, Turn};
use crate::world::World;

impl Turn<'_> {
    /// Runs a program until it waits.
    pub(crate) fn proceed(&mut self, party: usize) {
        let model = self.model;
        let program = &model.programs.parties[party];
        loop {
            let from = self.instance.parties[party].at as usize;
            let Instance { channels, parties, counters, sizes, speeds, .. } = &mut *self.instance;
            let state = &mut parties[party];
            // The commonest steps touch nothing but the instance.
            let op = loop {
                let Some(op) = program.ops.get(state.at as usize) else { break None };
                match *op {
                    Op::Constant { stages: [compute, system], warm, cold } => {
                        let times = if state.cold { cold } else { warm };
                        state.spend(compute, speeds.of(state.role, compute, state.cold, times[0]));
                        state.spend(system, speeds.of(state.role, system, state.cold, times[1]));
                    }
                    Op::Draw { cost, stage, role } => {
                        let pair = &model.programs.costs[cost as usize];
                        let World { streams, places, .. } = &mut *self.world;
                        let ns = pair.draw(state.cold, &mut streams[role as usize], places);
                        state.spend(stage, speeds.of(role, stage, state.cold, ns));
                    }
                    Op::Receive { message, channel, end } => {
                        let carrier = &mut channels[channel as usize].carrier;
                        if !carrier.has(end, message) {
                            self.tape_steps(party, from);
                            self.block(party, Waiting::Message(message));
                            return;
                        }
                        if state.role == Role::Client {
                            let size = u64::from(sizes[message as usize]);
                            counters[Counter::ServerSent as usize] += size;
                        }
                        if carrier.acts_on_read(end) {
                            break Some(op);
                        }
                    }
                    _ => break Some(op),
                }
                state.at += 1;
            };
            self.tape_steps(party, from);
            let Some(op) = op else {
                self.block(party, Waiting::Done);
                return;
            };
            if !self.act(party, op) {
                return;
            }
            self.instance.parties[party].at += 1;
        }
    }

    /// Notes the steps that a party has run since that one, where the trial may be one that others
    /// repeat.
    #[inline(always)]
    fn tape_steps(&mut self, party: usize, from: usize) {
        if self.world.tape.is_some() {
            self.tape_steps_since(party, from);
        }
    }

    #[cold]
    fn tape_steps_since(&mut self, party: usize, from: usize) {
        let Some(tape) = self.world.recorder() else { return };
        let state = &self.instance.parties[party];
        let ops = &self.model.programs.parties[party].ops;
        tape.ran(party, &ops[from..state.at as usize], state.cold);
    }

    /// One step other than the commonest; whether the program goes on to the next at once.
    #[inline]
    fn act(&mut self, party: usize, op: &Op) -> bool {
        match *op {
            // `proceed` has done these.
            Op::Constant { .. } | Op::Draw { .. } => true,
            Op::Step { step } => {
                self.recorded_step(party, step);
                true
            }
            Op::Receive { channel, end, .. } => {
                self.carrier(Place { channel, end }, |carrier, net, _| carrier.read(end, net));
                true
            }
            Op::KeyStore { call, signs } => self.call(party, call, signs),
            Op::Open { channel } => self.open(party, channel),
            Op::Accept { channel } => {
                let there = self.instance.channels[channel as usize].carrier.is_open(End::Acceptor);
                if !there {
                    self.block(party, Waiting::Channel(channel));
                }
                there
            }
            Op::Send { channel, end, first, count } => {
                self.now_is_its_time(party) && {
                    let messages = first as usize..(first + count) as usize;
                    self.send(party, Place { channel, end }, messages);
                    true
                }
            }
            Op::Close { channel, end } => {
                self.now_is_its_time(party) && {
                    self.carrier(Place { channel, end }, |carrier, net, _| carrier.close(end, net));
                    true
                }
            }
            Op::Pause { ns } => self.pause(party, ns),
            Op::Deadline { ns } => {
                if let Some(tape) = &mut self.world.tape {
                    tape.spoil();
                }
                let deadline = self.instance.parties[party].time.saturating_add(ns);
                let mut episodes = self.instance.episodes.iter_mut();
                if let Some(episode) = episodes.find(|episode| !episode.finished) {
                    episode.deadline = Some(deadline);
                }
                true
            }
            Op::Mark { mark, episode, last } => {
                self.mark(party, (mark, episode, last));
                true
            }
        }
    }

    /// Pays for waking up.
    pub(crate) fn spend_waking(&mut self, party: usize) {
        let state = &mut self.instance.parties[party];
        let role = state.role as usize;
        let programs = &self.model.programs;
        let pair = &programs.costs[programs.wake[role] as usize];
        let World { streams, places, .. } = &mut *self.world;
        let ns = pair.draw(state.cold, &mut streams[role], places);
        let stage = PROCESSING[role][1];
        let ns = self.instance.speeds.of(state.role, stage, state.cold, ns);
        state.spend(stage, ns);
        if let Some(tape) = self.world.recorder() {
            tape.woke(party, state.role, state.cold, programs.wake[role]);
        }
        self.note(party, Doing::Wake, ns);
    }

    /// A step of a model that is recorded.
    #[cold]
    fn recorded_step(&mut self, party: usize, step: u32) {
        let programs = &self.model.programs;
        let Some(step) = programs.detail.as_ref().map(|of| of.steps[step as usize]) else { return };
        let state = &mut self.instance.parties[party];
        let pair = &programs.costs[step.cost as usize];
        let World { streams, places, .. } = &mut *self.world;
        // A law of one value draws nothing.
        let ns = pair.draw(state.cold, &mut streams[state.role as usize], places);
        let ns = self.instance.speeds.of(state.role, step.stage, state.cold, ns);
        state.spend(step.stage, ns);
        self.note(party, Doing::Operation(step.operation), ns);
    }

    /// Notes what a party has just done for so long, where the trial is recorded.
    #[inline]
    pub(crate) fn note(&mut self, party: usize, doing: Doing, ns: u64) {
        if let Some(log) = &mut self.world.log
            && log.is_of(self.instance.number)
        {
            let state = &self.instance.parties[party];
            log.note(state.role, doing, (state.time - ns, state.time));
        }
    }

    /// Whether the party's own time has come up to now; if it has computed ahead, it goes on
    /// when it has.
    #[inline]
    fn now_is_its_time(&mut self, party: usize) -> bool {
        let due = self.instance.parties[party].time <= self.world.now;
        self.tape(|| Act::IsDue { party: party as u8, due });
        let state = &mut self.instance.parties[party];
        if due {
            return true;
        }
        state.waiting = Waiting::Time;
        let time = state.time;
        self.set_program(party, Some(time));
        false
    }

    /// The program does nothing for a time; others may use its resource.
    fn pause(&mut self, party: usize, ns: u64) -> bool {
        if !self.now_is_its_time(party) {
            return false;
        }
        let state = &mut self.instance.parties[party];
        self.world.resources[state.role as usize].last_used = Some(state.time);
        state.at += 1;
        state.spend(Stage::Idle, ns);
        self.tape(|| Act::Rest { party: party as u8 });
        self.tape(|| Act::Pause { party: party as u8, ns });
        let state = &mut self.instance.parties[party];
        state.waiting = Waiting::Pause;
        let time = state.time;
        self.note(party, Doing::Pause, ns);
        self.give_resource_back(party);
        self.set_program(party, Some(time));
        false
    }

    /// connect().
    fn open(&mut self, party: usize, number: u32) -> bool {
        let channel = &self.instance.channels[number as usize];
        if channel.carrier.is_open(End::Opener) {
            return true;
        }
        if !self.now_is_its_time(party) {
            return false;
        }
        let opener = &self.instance.parties[party];
        let opening = Written { time: opener.time, spent: opener.spent };
        self.instance.channels[number as usize].opening = Some(opening);
        self.tape(|| Act::Open { party: party as u8, channel: number as u16 });
        let place = Place { channel: number, end: End::Opener };
        self.carrier(place, |carrier, net, _| carrier.open(End::Opener, net));
        self.block(party, Waiting::Channel(number));
        false
    }

    /// write().
    #[inline]
    fn send(&mut self, party: usize, place: Place, messages: Range<usize>) {
        let Instance { number, parties, writes, write_of, counters, sizes, .. } =
            &mut *self.instance;
        let sender = &parties[party];
        if let Some(log) = &mut self.world.log
            && log.is_of(*number)
        {
            log.write(sender.time, messages.clone());
        }
        writes[messages.start] = Written { time: sender.time, spent: sender.spent };
        if let Some(tape) = self.world.recorder() {
            tape.push(Act::Write { party: party as u8, first: messages.start as u16 });
        }
        let mut bytes = 0;
        // Most writes are of one message or two.
        for message in messages.clone() {
            write_of[message] = messages.start as u32;
            bytes += u64::from(sizes[message]);
        }
        if sender.role == Role::Client {
            counters[Counter::ClientSent as usize] += bytes;
        }
        self.carrier(place, |carrier, net, sizes| {
            carrier.write(place.end, net, messages.start as u32, &sizes[messages]);
        });
    }

    fn mark(&mut self, party: usize, (mark, number, last): (Mark, u32, bool)) {
        if mark == Mark::Start && number > 0 {
            self.instance.draw_speeds(&self.model.speed, number);
        }
        self.tape(|| Act::Mark { party: party as u8, mark });
        let Instance { parties, episodes, counters, finished, .. } = &mut *self.instance;
        let party = &parties[party];
        let episode = &mut episodes[number as usize];
        episode.outcome.marks[mark as usize] = party.time;
        if mark == Mark::Start {
            episode.start = party.spent;
            episode.counters = *counters;
        }
        if self.model.counted_at[mark as usize] {
            episode.outcome.counters[mark as usize] =
                std::array::from_fn(|counter| counters[counter] - episode.counters[counter]);
        }
        if mark == Mark::FirstResponse {
            debug_assert_eq!(party.spent.iter().sum::<u64>(), party.time);
            // The account began when the trial did, the metric at its own mark: what a loop that
            // was busy with others took before does not belong to it.
            episode.outcome.stages =
                std::array::from_fn(|stage| party.spent[stage] - episode.start[stage]);
        }
        if !last || episode.finished {
            return;
        }
        episode.finished = true;
        // Until now it was one that has not ended.
        episode.outcome.failed = episode.deadline.is_some_and(|deadline| party.time > deadline);
        if number + 1 == self.model.programs.episodes && !*finished {
            *finished = true;
            self.world.unfinished -= 1;
        }
    }

    /// Calls the key store; the caller's resource stays occupied.
    fn call(&mut self, party: usize, call: u32, signs: bool) -> bool {
        if self.world.shared {
            if !self.now_is_its_time(party) {
                return false;
            }
            let claimant = Claimant { instance: self.instance.number, party: party as u32 };
            let state = &mut self.instance.parties[party];
            let granted = std::mem::replace(&mut state.key_store_granted, false);
            if !granted && !self.world.key_store.resource.claim(claimant) {
                state.waiting = Waiting::KeyStore;
                return false;
            }
        }
        let model = self.model;
        let state = &mut self.instance.parties[party];
        let stream = &mut self.world.streams[2];
        let ns = self.world.key_store.call(model, stream, state.time, (call, signs));
        state.spend(Stage::KeyStore, ns);
        // Meanwhile the processor was idle.
        let colder = ns > model.idle_threshold[state.role as usize];
        state.cold |= colder;
        self.tape(|| Act::KeyStore { party: party as u8, call, signs, colder });
        if let Some(detail) = &model.programs.detail {
            self.note(party, Doing::KeyStore(detail.calls[call as usize]), ns);
        }
        if self.world.shared {
            let ends = self.instance.parties[party].time;
            self.world.queue.set_key_store(Some(ends));
        }
        true
    }
}
