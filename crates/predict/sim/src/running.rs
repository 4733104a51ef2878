// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running programs: what each step does.

use warifu_model::Stage;
use warifu_trace::Mark;

use crate::agenda::NEVER;
use crate::case_model::CaseModel;
use crate::party::{Waiting, Written};
use crate::program::{Op, PROCESSING};
use crate::resource::Claimant;
use crate::simulator::{CARD_SLOT, CLIENT, END_SLOTS, Simulator};
use crate::tcp::{Socket, State};

/// The end of a message that has not been written.
pub(crate) const UNWRITTEN: u32 = u32::MAX;

impl Simulator {
    /// Runs a program until it waits.
    pub(crate) fn proceed(&mut self, model: &CaseModel, connection: usize, role: usize) {
        let ops = &model.programs.ops[role];
        loop {
            let state = &mut self.connections[connection];
            let party = &mut state.parties[role];
            let Some(op) = ops.get(party.at as usize) else {
                self.block(model, connection, role, Waiting::Done);
                return;
            };
            match *op {
                Op::Constant { warm, cold } => {
                    let times = if party.cold { cold } else { warm };
                    for (stage, ns) in PROCESSING[role].into_iter().zip(times) {
                        party.spend(stage, ns);
                    }
                    party.at += 1;
                }
                Op::Draw { cost, system } => {
                    let pair = &model.programs.costs[cost as usize];
                    let law = if party.cold { &pair.cold } else { &pair.warm };
                    let ns = law.draw(&mut self.streams[role]);
                    party.spend(PROCESSING[role][usize::from(system)], ns);
                    party.at += 1;
                }
                Op::Receive { message } => {
                    let end = state.ends[usize::from(message)];
                    if end > state.sockets[role].receiver.rcv_nxt {
                        self.block(model, connection, role, Waiting::Message(message));
                        return;
                    }
                    party.at += 1;
                    if role == CLIENT {
                        state.read = end - 1;
                    }
                    if state.sockets[role].owes_ack() {
                        self.socket(model, connection, role, Socket::after_read);
                    }
                }
                _ => {
                    if !self.act(model, connection, role, op) {
                        return;
                    }
                    self.connections[connection].parties[role].at += 1;
                }
            }
        }
    }

    /// One step other than the commonest; whether the program goes on to the next at once.
    fn act(&mut self, model: &CaseModel, connection: usize, role: usize, op: &Op) -> bool {
        match *op {
            // `proceed` has done these.
            Op::Constant { .. } | Op::Draw { .. } | Op::Receive { .. } => true,
            Op::KeyStore { call, signs } => self.call(model, connection, role, call, signs),
            Op::Open => self.open(model, connection, role),
            Op::Accept => {
                let socket = &self.connections[connection].sockets[role];
                let there = socket.state == State::Established;
                if !there {
                    self.block(model, connection, role, Waiting::Connection);
                }
                there
            }
            Op::Send { first, count } => {
                self.now_is_its_time(connection, role) && {
                    self.send(model, connection, role, first, count);
                    true
                }
            }
            Op::Close => {
                self.now_is_its_time(connection, role) && {
                    self.socket(model, connection, role, Socket::close);
                    true
                }
            }
            Op::Wait { ns } => {
                self.connections[connection].parties[role].spend(Stage::Idle, ns);
                true
            }
            Op::Deadline { ns } => {
                let state = &mut self.connections[connection];
                state.deadline = state.parties[role].time.saturating_add(ns);
                true
            }
            Op::Mark(mark) => {
                self.mark(connection, role, mark);
                true
            }
        }
    }

    /// Draws a cost of the system's and lets it pass.
    pub(crate) fn spend_cost(
        &mut self,
        model: &CaseModel,
        connection: usize,
        role: usize,
        cost: u32,
    ) {
        let party = &mut self.connections[connection].parties[role];
        let pair = &model.programs.costs[cost as usize];
        let law = if party.cold { &pair.cold } else { &pair.warm };
        let ns = law.draw(&mut self.streams[role]);
        party.spend(PROCESSING[role][1], ns);
    }

    /// Whether the party's own time has come up to now; if it has computed ahead, it goes on
    /// when it has.
    fn now_is_its_time(&mut self, connection: usize, role: usize) -> bool {
        let party = &mut self.connections[connection].parties[role];
        if party.time <= self.now {
            return true;
        }
        party.waiting = Waiting::Time;
        let time = party.time;
        self.agenda.set(connection, role * END_SLOTS + 2, time);
        false
    }

    /// connect().
    fn open(&mut self, model: &CaseModel, connection: usize, role: usize) -> bool {
        let state = &self.connections[connection];
        if state.sockets[role].state == State::Established {
            return true;
        }
        if !self.now_is_its_time(connection, role) {
            return false;
        }
        let party = &self.connections[connection].parties[role];
        let written = Written { time: party.time, spent: party.spent };
        self.connections[connection].syn = Some(written);
        self.socket(model, connection, role, Socket::connect);
        self.block(model, connection, role, Waiting::Connection);
        false
    }

    /// write().
    fn send(&mut self, model: &CaseModel, connection: usize, role: usize, first: u16, count: u16) {
        let state = &mut self.connections[connection];
        let party = &state.parties[role];
        let write = state.writes.len() as u16;
        state.writes.push(Written { time: party.time, spent: party.spent });
        let before = state.written[role];
        for message in usize::from(first)..usize::from(first) + usize::from(count) {
            state.written[role] += state.sizes[message];
            // The SYN took sequence number 0.
            state.ends[message] = 1 + state.written[role];
            state.write_of[message] = write;
        }
        let bytes = state.written[role] - before;
        self.socket(model, connection, role, |socket, context| socket.write(context, bytes));
    }

    fn mark(&mut self, connection: usize, role: usize, mark: Mark) {
        let state = &mut self.connections[connection];
        let party = &state.parties[role];
        state.outcome.marks[mark as usize] = party.time;
        if mark == Mark::Start {
            state.start = party.spent;
        }
        if mark != Mark::FirstResponse || state.finished {
            return;
        }
        debug_assert_eq!(party.spent.iter().sum::<u64>(), party.time);
        state.finished = true;
        state.outcome.failed = party.time > state.deadline;
        // The account began when the trial did, the metric at its own mark: what a loop that was
        // busy with others took before does not belong to it.
        state.outcome.stages = std::array::from_fn(|stage| party.spent[stage] - state.start[stage]);
        state.outcome.bytes_client_sent = u64::from(state.written[CLIENT]);
        state.outcome.bytes_server_sent = u64::from(state.read);
        state.outcome.packets = state.traffic.packets;
        state.outcome.bytes_link = state.traffic.bytes;
        state.outcome.retransmitted = state.traffic.again;
        self.unfinished -= 1;
    }

    // ---- the key store ----

    /// Calls the key store; the caller's resource stays occupied.
    fn call(
        &mut self,
        model: &CaseModel,
        connection: usize,
        role: usize,
        call: u32,
        signs: bool,
    ) -> bool {
        if self.used > 1 {
            if !self.now_is_its_time(connection, role) {
                return false;
            }
            let claimant = Claimant { connection: connection as u16, role: role as u8 };
            let party = &mut self.connections[connection].parties[role];
            let granted = std::mem::replace(&mut party.card_granted, false);
            if !granted && !self.card.resource.claim(claimant) {
                party.waiting = Waiting::KeyStore;
                return false;
            }
        }
        let begins = self.connections[connection].parties[role].time;
        let ns = self.card_time(model, begins, call, signs);
        let party = &mut self.connections[connection].parties[role];
        party.spend(Stage::KeyStore, ns);
        let ends = party.time;
        // Meanwhile the processor was idle.
        party.cold |= ns > model.idle_threshold[role];
        if self.used > 1 {
            self.agenda.set_shared(CARD_SLOT, ends);
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
        self.agenda.set_shared(CARD_SLOT, NEVER);
        let Some(next) = self.card.resource.release(self.now) else { return };
        let (connection, role) = (usize::from(next.connection), usize::from(next.role));
        let party = &mut self.connections[connection].parties[role];
        party.spend_until(Stage::ResourceQueue, self.now);
        party.card_granted = true;
        party.waiting = Waiting::Time;
        self.proceed(model, connection, role);
        self.watch(connection, role);
    }
}
