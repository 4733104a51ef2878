// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The event engine: one trial of one case.

use warifu_model::Stage;

use crate::agenda::{Agenda, NEVER, Next};
use crate::case_model::CaseModel;
use crate::clock::Clock;
use crate::connection::Connection;
use crate::link::{Heading, Path};
use crate::memo::{Lossless, Memo};
use crate::outcome::Outcome;
use crate::packet::Packet;
use crate::party::{Spent, Waiting, Written};
use crate::random::{Purpose, Stream, mix};
use crate::resource::{Claimant, Resource};
use crate::tcp::{Context, Effect, Socket, State};
use crate::timeline::PacketEvent;

/// Virtual time after which a connection counts as failed: by then every kernel timer has
/// given up (`tcp_retries2` takes 15 minutes).
const HORIZON_NS: u64 = 3_600_000_000_000;

/// Index of the client in all pairs; the server's is 1.
pub(crate) const CLIENT: usize = 0;
/// Slots of one end within a connection's: timer for sending, for acknowledging, program.
pub(crate) const END_SLOTS: usize = 3;
/// The shared slot of the key store, after those of the two directions.
pub(crate) const CARD_SLOT: usize = 2;

/// Runs trials one after the other; keeps its memory between them.
#[derive(Debug)]
pub struct Simulator {
    pub(crate) now: u64,
    clock: Clock,
    pub(crate) agenda: Agenda,
    paths: [Path; 2],
    pub(crate) connections: Vec<Connection>,
    pub(crate) used: usize,
    pub(crate) unfinished: usize,
    /// Costs of client, server and key store; lengths.
    pub(crate) streams: [Stream; 4],
    /// `client.loop` and `server.worker`, and the key store.
    resources: [Resource; 2],
    pub(crate) card: Card,
    log: Option<Vec<PacketEvent>>,
    memo: Memo,
    sizes: Vec<u32>,
}

/// The key store in motion.
#[derive(Debug)]
pub(crate) struct Card {
    pub resource: Resource,
    /// When the last signatures began, the oldest first, for its throttle.
    pub began: Vec<u64>,
    /// When the last call ended.
    pub last_used: Option<u64>,
}

impl Default for Simulator {
    fn default() -> Self {
        Simulator::new()
    }
}

impl Simulator {
    /// A simulator without a past.
    pub fn new() -> Simulator {
        let stream = || Stream::new(0, Purpose::Clock);
        Simulator {
            now: 0,
            clock: Clock::default(),
            agenda: Agenda::default(),
            paths: [Path::new(), Path::new()],
            connections: Vec::new(),
            used: 0,
            unfinished: 0,
            streams: [stream(), stream(), stream(), stream()],
            resources: [Resource::new(), Resource::new()],
            card: Card { resource: Resource::new(), began: Vec::new(), last_used: None },
            log: None,
            memo: Memo::default(),
            sizes: Vec::new(),
        }
    }

    /// Runs one trial. The same case and seed give the same outcome, whatever ran before.
    pub fn run(&mut self, model: &CaseModel, seed: u64, outcome: &mut Outcome) {
        self.seed(model, seed);
        let key = if model.repeats && self.log.is_none() {
            Memo::key(&model.programs, &self.sizes)
        } else {
            None
        };
        if let Some(key) = key {
            self.memo.turn_to(model.number);
            if let Some(lossless) = self.memo.get(key)
                && self.paths.iter().zip(lossless.packets).all(|(path, n)| path.keeps(n))
            {
                outcome.connections.clear();
                outcome.connections.push(lossless.outcome);
                return;
            }
        }
        self.reset(model);
        for connection in 0..self.used {
            self.begin(model, connection);
        }
        while self.unfinished > 0 {
            let (time, next) = self.agenda.next();
            if time > HORIZON_NS {
                break;
            }
            debug_assert!(time >= self.now);
            self.now = time;
            self.clock.advance(time);
            match next {
                Next::Shared(CARD_SLOT) => self.release_card(model),
                Next::Shared(direction) => self.deliver(model, direction),
                Next::Connection(connection, slot) => self.fire(model, connection, slot),
                Next::Nothing => break,
            }
        }
        if let Some(key) = key
            && self.paths.iter().all(|path| path.keeps(path.packets))
        {
            self.remember(key);
        }
        outcome.connections.clear();
        for connection in &mut self.connections[..self.used] {
            connection.outcome.failed |= !connection.finished;
            outcome.connections.push(connection.outcome);
        }
    }

    /// Runs one trial and keeps every packet that a TCP sent.
    pub(crate) fn run_logged(&mut self, model: &CaseModel, seed: u64) -> Vec<PacketEvent> {
        self.log = Some(Vec::new());
        self.run(model, seed, &mut Outcome::default());
        self.log.take().unwrap_or_default()
    }

    /// Notes how this trial without loss went.
    fn remember(&mut self, key: u64) {
        let connection = &self.connections[0];
        for socket in &connection.sockets {
            socket.doubt_timers(&self.clock);
        }
        let sure = !self.clock.phase_matters.get() && connection.finished;
        // What is still on its way at the end can be lost without a trace.
        let mattered = |path: &Path| path.packets - path.in_flight.len() as u64;
        let lossless = Lossless {
            outcome: connection.outcome,
            packets: [mattered(&self.paths[0]), mattered(&self.paths[1])],
        };
        self.memo.put(key, sure.then_some(lossless));
    }

    /// Draws what a trial's chance decides beforehand.
    fn seed(&mut self, model: &CaseModel, seed: u64) {
        // One draw needs no stream of its own.
        let phase = mix(seed ^ mix(Purpose::Clock as u64));
        self.clock = Clock::from_bits(model.settings.kernel.jiffy, phase);
        for (path, path_model) in self.paths.iter_mut().zip(&model.paths) {
            path.reset(path_model, seed);
        }
        let purposes =
            [Purpose::ClientCosts, Purpose::ServerCosts, Purpose::KeyStore, Purpose::Lengths];
        for (index, purpose) in purposes.into_iter().enumerate() {
            if model.draws[index] {
                self.streams[index] = Stream::new(seed, purpose);
            }
        }
        self.sizes.clear();
        for _ in 0..model.connections() {
            model.programs.draw_sizes(&mut self.streams[3], &mut self.sizes);
        }
    }

    fn reset(&mut self, model: &CaseModel) {
        self.now = 0;
        self.used = model.connections();
        self.unfinished = self.used;
        self.agenda.reset(self.used);
        for (resource, capacity) in self.resources.iter_mut().zip(model.capacity) {
            resource.reset(capacity);
        }
        self.card.resource.reset(1);
        self.card.began.clear();
        self.card.last_used = None;
        while self.connections.len() < self.used {
            self.connections.push(Connection::new());
        }
        let messages = model.programs.messages.len();
        for (index, connection) in self.connections[..self.used].iter_mut().enumerate() {
            connection.reset(model, &self.sizes[index * messages..(index + 1) * messages]);
        }
    }

    fn shared(&self) -> bool {
        self.used > 1
    }

    /// Starts both programs of a connection.
    fn begin(&mut self, model: &CaseModel, connection: usize) {
        for role in [1, CLIENT] {
            if role == CLIENT && !self.take_resource(connection, role) {
                continue;
            }
            self.proceed(model, connection, role);
            self.watch(connection, role);
        }
    }

    // ---- events ----

    /// The first packet of a direction arrives.
    fn deliver(&mut self, model: &CaseModel, direction: usize) {
        let Some(packet) = self.paths[direction].in_flight.pop_front() else { return };
        self.agenda.set_shared(direction, self.paths[direction].next_arrival());
        let role = 1 - direction;
        let connection = usize::from(packet.connection);
        let effect = self
            .socket(model, connection, role, |socket, context| socket.receive(context, &packet));
        match effect {
            Effect::None => {}
            Effect::Requested => self.connections[connection].note_request(&packet),
            Effect::Established => self.established(model, connection, role, &packet, false),
            Effect::EstablishedWithData => {
                self.established(model, connection, role, &packet, true);
            }
            Effect::Data => self.data(model, connection, role, &packet),
        }
        self.watch(connection, role);
    }

    /// A timer of TCP, or a program whose time has come.
    fn fire(&mut self, model: &CaseModel, connection: usize, slot: usize) {
        let role = slot / END_SLOTS;
        match slot % END_SLOTS {
            0 => {
                self.socket(model, connection, role, |socket, context| {
                    socket.on_write_timer(context);
                });
                if self.connections[connection].sockets[role].state == State::Failed {
                    self.give_up(connection);
                }
            }
            1 => self.socket(model, connection, role, |socket, context| {
                socket.on_delack_timer(context);
            }),
            _ => {
                self.agenda.set(connection, slot, NEVER);
                match self.connections[connection].parties[role].waiting {
                    Waiting::Time => self.proceed(model, connection, role),
                    // It is blocked and others may go on.
                    _ => self.give_resource_back(model, connection, role),
                }
            }
        }
        self.watch(connection, role);
    }

    /// Puts what an event changed at one end of a connection into the agenda.
    pub(crate) fn watch(&mut self, connection: usize, role: usize) {
        self.agenda.set_shared(role, self.paths[role].next_arrival());
        let socket = &mut self.connections[connection].sockets[role];
        socket.settle(&self.clock);
        let (write, delack) = (socket.write_timer, socket.delack_timer);
        self.agenda.set(connection, role * END_SLOTS, write);
        self.agenda.set(connection, role * END_SLOTS + 1, delack);
    }

    fn give_up(&mut self, connection: usize) {
        let connection = &mut self.connections[connection];
        if !connection.finished {
            connection.finished = true;
            connection.outcome.failed = true;
            self.unfinished -= 1;
        }
    }

    /// Lets a socket act.
    pub(crate) fn socket<R>(
        &mut self,
        model: &CaseModel,
        connection: usize,
        role: usize,
        act: impl FnOnce(&mut Socket, &mut Context<'_>) -> R,
    ) -> R {
        let state = &mut self.connections[connection];
        let mut context = Context {
            clock: &self.clock,
            settings: &model.settings,
            path: &mut self.paths[role],
            model: &model.paths[role],
            heading: if role == CLIENT { Heading::Up } else { Heading::Down },
            connection: connection as u16,
            traffic: &mut state.traffic,
            log: self.log.as_mut(),
        };
        act(&mut state.sockets[role], &mut context)
    }

    // ---- waking ----

    /// The connection is there at one end.
    fn established(
        &mut self,
        model: &CaseModel,
        connection: usize,
        role: usize,
        packet: &Packet,
        with_data: bool,
    ) {
        let state = &mut self.connections[connection];
        let before = if role == CLIENT { state.request } else { state.opened };
        let spent =
            before.map_or([0; Stage::ALL.len()], |written| written.arrived(packet, role == CLIENT));
        if role == CLIENT {
            state.opened = Some(Written { time: self.now, spent });
        }
        if state.parties[role].waiting == Waiting::Connection {
            state.parties[role].at += 1;
            self.wake(model, connection, role, spent);
        } else if with_data {
            self.data(model, connection, role, packet);
        }
    }

    /// New bytes are there; their program may be waiting for them.
    fn data(&mut self, model: &CaseModel, connection: usize, role: usize, packet: &Packet) {
        let state = &mut self.connections[connection];
        let party = &state.parties[role];
        let Waiting::Message(message) = party.waiting else { return };
        let blocked = party.time < self.now;
        let end = state.ends[usize::from(message)];
        let complete = end <= state.sockets[role].receiver.rcv_nxt;
        if blocked {
            // It reads at once, also what is not complete.
            self.socket(model, connection, role, Socket::after_read);
        }
        if complete {
            let state = &self.connections[connection];
            let whole = packet.seq < end && end <= packet.end;
            let written = state.writes[usize::from(state.write_of[usize::from(message)])];
            let spent = written.arrived(packet, whole);
            self.wake(model, connection, role, spent);
        }
    }

    /// What a party waited for has come. If it was only about to wait it just goes on; else it
    /// takes over the account of what it waited for, and waking up costs time.
    fn wake(&mut self, model: &CaseModel, connection: usize, role: usize, spent: Spent) {
        let now = self.now;
        let party = &mut self.connections[connection].parties[role];
        party.waiting = Waiting::Time;
        if party.time >= now {
            self.agenda.set(connection, role * END_SLOTS + 2, NEVER);
            self.proceed(model, connection, role);
            return;
        }
        debug_assert_eq!(spent.iter().sum::<u64>(), now);
        party.spent = spent;
        party.time = now;
        if !self.take_resource(connection, role) {
            return;
        }
        self.go_on_awake(model, connection, role);
    }

    /// Pays for waking up and goes on. The caches are cold if the processor was idle for
    /// longer than its profile's threshold; they stay so until the program waits again.
    fn go_on_awake(&mut self, model: &CaseModel, connection: usize, role: usize) {
        self.set_cold(model, connection, role);
        self.spend_cost(model, connection, role, model.programs.wake[role]);
        self.proceed(model, connection, role);
    }

    fn set_cold(&mut self, model: &CaseModel, connection: usize, role: usize) {
        let threshold = model.idle_threshold[role];
        let last = self.resources[role].last_used;
        let party = &mut self.connections[connection].parties[role];
        party.cold = last.is_none_or(|last| party.time.saturating_sub(last) > threshold);
    }

    // ---- resources ----

    /// Takes the party's own resource. If others hold it the party waits for it.
    fn take_resource(&mut self, connection: usize, role: usize) -> bool {
        let claimant = Claimant { connection: connection as u16, role: role as u8 };
        let resource = &mut self.resources[role];
        let party = &mut self.connections[connection].parties[role];
        if self.used > 1 && !party.holds && !resource.claim(claimant) {
            party.waiting = Waiting::Resource;
            return false;
        }
        party.holds = true;
        true
    }

    /// The party blocks: others may go on when it has computed to its end.
    pub(crate) fn block(
        &mut self,
        model: &CaseModel,
        connection: usize,
        role: usize,
        waiting: Waiting,
    ) {
        let shared = self.shared();
        let party = &mut self.connections[connection].parties[role];
        party.waiting = waiting;
        let time = party.time;
        if !shared {
            self.resources[role].last_used = Some(time);
        } else if time > self.now {
            self.agenda.set(connection, role * END_SLOTS + 2, time);
        } else {
            self.give_resource_back(model, connection, role);
        }
    }

    fn give_resource_back(&mut self, model: &CaseModel, connection: usize, role: usize) {
        let shared = self.shared();
        let party = &mut self.connections[connection].parties[role];
        if !shared || !std::mem::replace(&mut party.holds, false) {
            return;
        }
        let Some(next) = self.resources[role].release(self.now) else { return };
        let (connection, role) = (usize::from(next.connection), usize::from(next.role));
        let now = self.now;
        let party = &mut self.connections[connection].parties[role];
        party.holds = true;
        party.waiting = Waiting::Time;
        party.spend_until(Stage::ResourceQueue, now);
        if party.at == 0 {
            self.set_cold(model, connection, role);
            self.proceed(model, connection, role);
        } else {
            self.go_on_awake(model, connection, role);
        }
        self.watch(connection, role);
    }
}
