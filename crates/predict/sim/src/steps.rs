// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running programs: what each step does.

use std::ops::Range;

use warifu_model::{Counter, Mark, Stage};

use crate::carrier::{ACCEPTOR, Carrier, OPENER};
use crate::case_model::CaseModel;
use crate::engine::{CLIENT, Place, Simulator};
use crate::instance::Instance;
use crate::party::{Waiting, Written};
use crate::program::{Op, PROCESSING};
use crate::resource::Claimant;

impl Simulator {
    /// Runs a program until it waits.
    pub(crate) fn proceed(&mut self, model: &CaseModel, instance: usize, party: usize) {
        let ops = &model.programs.ops[party];
        let role = usize::from(model.programs.roles[party]);
        loop {
            let Instance { channels, parties, counters, sizes, .. } = &mut self.instances[instance];
            let state = &mut parties[party];
            // The commonest steps touch nothing but the instance.
            let op = loop {
                let Some(op) = ops.get(state.at as usize) else { break None };
                match *op {
                    Op::Constant { warm, cold } => {
                        let times = if state.cold { cold } else { warm };
                        for (stage, ns) in PROCESSING[role].into_iter().zip(times) {
                            state.spend(stage, ns);
                        }
                    }
                    Op::Draw { cost, system } => {
                        let pair = &model.programs.costs[cost as usize];
                        let law = if state.cold { &pair.cold } else { &pair.warm };
                        let ns = law.draw(&mut self.streams[role]);
                        state.spend(PROCESSING[role][usize::from(system)], ns);
                    }
                    Op::Receive { message, channel, end } => {
                        let carrier = &mut channels[channel as usize].carrier;
                        if !carrier.has(usize::from(end), message) {
                            break Some(op);
                        }
                        if role == CLIENT {
                            let size = u64::from(sizes[message as usize]);
                            counters[Counter::ServerSent as usize] += size;
                        }
                        if carrier.is_read(usize::from(end)) {
                            break Some(op);
                        }
                    }
                    _ => break Some(op),
                }
                state.at += 1;
            };
            let Some(op) = op else {
                self.block(model, instance, party, Waiting::Done);
                return;
            };
            if !self.act(model, instance, party, op) {
                return;
            }
            self.instances[instance].parties[party].at += 1;
        }
    }

    /// One step other than the commonest; whether the program goes on to the next at once.
    fn act(&mut self, model: &CaseModel, instance: usize, party: usize, op: &Op) -> bool {
        match *op {
            // `proceed` has done these.
            Op::Constant { .. } | Op::Draw { .. } => true,
            Op::Receive { message, channel, end } => {
                let place = Place { instance, channel: channel as usize, end: usize::from(end) };
                let carrier = &self.instances[instance].channels[place.channel].carrier;
                if !carrier.has(place.end, message) {
                    self.block(model, instance, party, Waiting::Message(message));
                    return false;
                }
                self.carrier(model, place, |carrier, end, net| carrier.read(end, net));
                true
            }
            Op::KeyStore { call, signs } => self.call(model, instance, party, call, signs),
            Op::Open { channel } => self.open(model, instance, party, channel),
            Op::Accept { channel } => {
                let carrier = &self.instances[instance].channels[channel as usize].carrier;
                let there = carrier.is_open(ACCEPTOR);
                if !there {
                    self.block(model, instance, party, Waiting::Channel(channel));
                }
                there
            }
            Op::Send { channel, end, first, count } => {
                self.now_is_its_time(model, instance, party) && {
                    let (channel, end) = (channel as usize, usize::from(end));
                    let place = Place { instance, channel, end };
                    self.send(model, place, party, first as usize..(first + count) as usize);
                    true
                }
            }
            Op::Close { channel, end } => {
                self.now_is_its_time(model, instance, party) && {
                    let (channel, end) = (channel as usize, usize::from(end));
                    let place = Place { instance, channel, end };
                    self.carrier(model, place, |carrier, end, net| carrier.close(end, net));
                    true
                }
            }
            Op::Wait { ns } => {
                self.instances[instance].parties[party].spend(Stage::Idle, ns);
                true
            }
            Op::Deadline { ns } => {
                let state = &mut self.instances[instance];
                let deadline = state.parties[party].time.saturating_add(ns);
                if let Some(episode) = state.episodes.iter_mut().find(|episode| !episode.finished) {
                    episode.deadline = Some(deadline);
                }
                true
            }
            Op::Mark { mark, episode, last } => {
                self.mark(model, instance, party, (mark, episode, last));
                true
            }
        }
    }

    /// Draws a cost of the system's and lets it pass.
    pub(crate) fn spend_cost(
        &mut self,
        model: &CaseModel,
        instance: usize,
        party: usize,
        cost: u32,
    ) {
        let role = usize::from(model.programs.roles[party]);
        let state = &mut self.instances[instance].parties[party];
        let pair = &model.programs.costs[cost as usize];
        let law = if state.cold { &pair.cold } else { &pair.warm };
        let ns = law.draw(&mut self.streams[role]);
        state.spend(PROCESSING[role][1], ns);
    }

    /// Whether the party's own time has come up to now; if it has computed ahead, it goes on
    /// when it has.
    fn now_is_its_time(&mut self, model: &CaseModel, instance: usize, party: usize) -> bool {
        let state = &mut self.instances[instance].parties[party];
        if state.time <= self.now {
            return true;
        }
        state.waiting = Waiting::Time;
        let time = state.time;
        self.queue.set_program(&model.programs.layout, instance, party, Some(time));
        false
    }

    /// connect().
    fn open(&mut self, model: &CaseModel, instance: usize, party: usize, number: u32) -> bool {
        let channel = &self.instances[instance].channels[number as usize];
        if channel.carrier.is_open(OPENER) {
            return true;
        }
        if !self.now_is_its_time(model, instance, party) {
            return false;
        }
        let state = &mut self.instances[instance];
        let opener = &state.parties[party];
        let opening = Written { time: opener.time, spent: opener.spent };
        state.channels[number as usize].opening = Some(opening);
        let place = Place { instance, channel: number as usize, end: OPENER };
        self.carrier(model, place, |carrier, end, net| carrier.open(end, net));
        self.block(model, instance, party, Waiting::Channel(number));
        false
    }

    /// write().
    fn send(&mut self, model: &CaseModel, place: Place, party: usize, messages: Range<usize>) {
        let state = &mut self.instances[place.instance];
        let sender = &state.parties[party];
        let write = state.writes.len() as u32;
        state.writes.push(Written { time: sender.time, spent: sender.spent });
        state.write_of[messages.clone()].fill(write);
        if usize::from(model.programs.roles[party]) == CLIENT {
            let bytes: u64 =
                state.sizes[messages.clone()].iter().map(|&size| u64::from(size)).sum();
            state.counters[Counter::ClientSent as usize] += bytes;
        }
        // The carrier acts on the rest of the simulator.
        let sizes = std::mem::take(&mut state.sizes);
        self.carrier(model, place, |carrier, end, net| {
            carrier.write(end, net, messages.start as u32, &sizes[messages]);
        });
        self.instances[place.instance].sizes = sizes;
    }

    fn mark(
        &mut self,
        model: &CaseModel,
        instance: usize,
        party: usize,
        (mark, number, last): (Mark, u32, bool),
    ) {
        let state = &mut self.instances[instance];
        let counters = state.counters;
        let party = &state.parties[party];
        let episode = &mut state.episodes[number as usize];
        episode.outcome.marks[mark as usize] = party.time;
        if mark == Mark::Start {
            episode.start = party.spent;
            episode.counters = counters;
        }
        if model.counted_at[mark as usize] {
            episode.outcome.counters[mark as usize] =
                std::array::from_fn(|counter| counters[counter] - episode.counters[counter]);
        }
        if !last || episode.finished {
            return;
        }
        debug_assert_eq!(party.spent.iter().sum::<u64>(), party.time);
        episode.finished = true;
        episode.outcome.failed = episode.deadline.is_some_and(|deadline| party.time > deadline);
        // The account began when the trial did, the metric at its own mark: what a loop that was
        // busy with others took before does not belong to it.
        episode.outcome.stages =
            std::array::from_fn(|stage| party.spent[stage] - episode.start[stage]);
        if number + 1 == model.programs.episodes && !state.finished {
            state.finished = true;
            self.unfinished -= 1;
        }
    }

    // ---- the key store ----

    /// Calls the key store; the caller's resource stays occupied.
    fn call(
        &mut self,
        model: &CaseModel,
        instance: usize,
        party: usize,
        call: u32,
        signs: bool,
    ) -> bool {
        if self.shared() {
            if !self.now_is_its_time(model, instance, party) {
                return false;
            }
            let claimant = Claimant { instance: instance as u32, party: party as u32 };
            let state = &mut self.instances[instance].parties[party];
            let granted = std::mem::replace(&mut state.card_granted, false);
            if !granted && !self.card.resource.claim(claimant) {
                state.waiting = Waiting::KeyStore;
                return false;
            }
        }
        let begins = self.instances[instance].parties[party].time;
        let ns = self.card_time(model, begins, call, signs);
        let role = usize::from(model.programs.roles[party]);
        let state = &mut self.instances[instance].parties[party];
        state.spend(Stage::KeyStore, ns);
        let ends = state.time;
        // Meanwhile the processor was idle.
        state.cold |= ns > model.idle_threshold[role];
        if self.shared() {
            self.queue.set_key_store(Some(ends));
        }
        true
    }

    /// How long a call takes that begins then: its throttle, waking up, itself.
    fn card_time(&mut self, model: &CaseModel, begins: u64, call: u32, signs: bool) -> u64 {
        let stream = &mut self.streams[2];
        let mut ns = 0;
        if let Some((after, wake)) = &model.sleep
            && self.card.last_used.is_none_or(|last| begins.saturating_sub(last) > *after)
        {
            ns += wake.draw(stream);
        }
        if let (true, Some((calls, window))) = (signs, model.throttle) {
            let began = &mut self.card.began;
            if began.len() >= calls as usize {
                ns = ns.max((began[0] + window).saturating_sub(begins));
                began.remove(0);
            }
            began.push(begins + ns);
        }
        ns += model.programs.calls[call as usize].draw(stream);
        self.card.last_used = Some(begins + ns);
        ns
    }

    /// A call ends; the next caller's begins.
    pub(crate) fn release_card(&mut self, model: &CaseModel) {
        self.queue.set_key_store(None);
        let Some(next) = self.card.resource.release(self.now) else { return };
        let (instance, party) = (next.instance as usize, next.party as usize);
        let now = self.now;
        let state = &mut self.instances[instance].parties[party];
        state.spend_until(Stage::ResourceQueue, now);
        state.card_granted = true;
        state.waiting = Waiting::Time;
        self.proceed(model, instance, party);
    }
}
