// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The event engine: one trial of one case.

use warifu_model::{Role, Stage};

use crate::capture::PacketEvent;
use crate::carrier::{ACCEPTOR, AnyCarrier, Arrival, Carrier, CarrierStream, Net, OPENER};
use crate::case_model::CaseModel;
use crate::clock::Clock;
use crate::event_queue::{Event, EventQueue};
use crate::instance::{Channel, Instance};
use crate::link::{Heading, Path};
use crate::memo::{Lossless, Memo};
use crate::outcome::Outcome;
use crate::packet::Packet;
use crate::party::{Spent, Waiting, Written};
use crate::random::{Purpose, Stream, mix};
use crate::resource::{Claimant, Resource};

/// Virtual time after which a connection counts as failed: by then every kernel timer has
/// given up (`tcp_retries2` takes 15 minutes).
const HORIZON_NS: u64 = 3_600_000_000_000;

/// Index of the client in pairs by role; the server's is 1.
pub(crate) const CLIENT: usize = Role::Client as usize;

/// Runs trials one after the other; keeps its memory between them.
#[derive(Debug)]
pub struct Simulator {
    pub(crate) now: u64,
    /// The clock of both ends, or of each.
    clocks: [Clock; 2],
    pub(crate) queue: EventQueue,
    /// The end of a channel at which the event at hand let a carrier act, until it is settled.
    touched: Option<Place>,
    paths: [Path; 2],
    pub(crate) instances: Vec<Instance>,
    /// The model that the instances were built for.
    built_for: u64,
    pub(crate) used: usize,
    pub(crate) unfinished: usize,
    /// Costs of client, server and key store; lengths.
    pub(crate) streams: [Stream; 4],
    /// `client.loop` and `server.worker`, and the key store.
    pub(crate) resources: [Resource; 2],
    pub(crate) card: Card,
    log: Option<Vec<PacketEvent>>,
    memo: Memo,
    sizes: Vec<u32>,
}

/// An end of a channel of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub instance: usize,
    pub channel: usize,
    pub end: usize,
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

/// One trial of a case, packet by packet, up to the end of its last episode. `up` and `down` are
/// the packets of each direction to drop, counted from 0, in the place of random loss.
pub fn simulate_packets(
    model: &CaseModel,
    up: &[u64],
    down: &[u64],
    seed: u64,
) -> Vec<PacketEvent> {
    Simulator::new().run_logged(&model.clone().with_drops(up, down), seed)
}

impl Simulator {
    /// A simulator without a past.
    pub fn new() -> Simulator {
        let stream = || Stream::new(0, Purpose::Clock);
        Simulator {
            now: 0,
            clocks: [Clock::default(), Clock::default()],
            queue: EventQueue::default(),
            touched: None,
            paths: [Path::new(), Path::new()],
            instances: Vec::new(),
            built_for: 0,
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
        self.reset(model, seed);
        for instance in 0..self.used {
            self.begin(model, instance);
        }
        self.settle(model);
        while self.unfinished > 0 {
            let Some((time, event)) = self.queue.next(&model.programs.layout) else { break };
            if time > HORIZON_NS {
                break;
            }
            debug_assert!(time >= self.now);
            self.now = time;
            self.clocks[0].advance(time);
            if !model.one_clock {
                self.clocks[1].advance(time);
            }
            match event {
                Event::Arrival(heading) => self.deliver(model, heading),
                Event::KeyStoreFree => self.release_card(model),
                Event::Timer { instance, channel, end, timer } => {
                    let (instance, channel) = (instance as usize, channel as usize);
                    let place = Place { instance, channel, end: usize::from(end) };
                    self.expire(model, place, usize::from(timer));
                }
                Event::Program { instance, party } => {
                    self.go_on(model, instance as usize, party as usize);
                }
            }
            self.settle(model);
        }
        if let Some(key) = key
            && self.paths.iter().all(|path| path.keeps(path.packets))
        {
            self.remember(key);
        }
        outcome.connections.clear();
        for instance in &self.instances[..self.used] {
            outcome.connections.extend(instance.outcomes());
        }
    }

    /// Runs one trial and keeps every packet that was put on the link.
    fn run_logged(&mut self, model: &CaseModel, seed: u64) -> Vec<PacketEvent> {
        self.log = Some(Vec::new());
        self.run(model, seed, &mut Outcome::default());
        self.log.take().unwrap_or_default()
    }

    /// Notes how this trial without loss went.
    fn remember(&mut self, key: u64) {
        let instance = &self.instances[0];
        for channel in &instance.channels {
            channel.carrier.doubt_timers(&self.clocks[0]);
        }
        let doubted = self.clocks.iter().any(|clock| clock.phase_matters.get());
        let sure = !doubted && instance.finished;
        // What is still on its way at the end can be lost without a trace.
        let mattered = |path: &Path| path.packets - path.in_flight.len() as u64;
        let lossless = instance.outcomes().next().filter(|_| sure).map(|outcome| Lossless {
            outcome,
            packets: [mattered(&self.paths[0]), mattered(&self.paths[1])],
        });
        self.memo.put(key, lossless);
    }

    /// Draws what a trial's chance decides beforehand.
    fn seed(&mut self, model: &CaseModel, seed: u64) {
        // One draw needs no stream of its own.
        let phase = mix(seed ^ mix(Purpose::Clock as u64));
        self.clocks[0] = Clock::from_bits(model.jiffies[0], phase);
        if !model.one_clock {
            self.clocks[1] = Clock::from_bits(model.jiffies[1], mix(phase));
        }
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
        for _ in 0..model.begins.len() {
            model.programs.draw_sizes(&mut self.streams[3], &mut self.sizes);
        }
    }

    fn reset(&mut self, model: &CaseModel, seed: u64) {
        self.now = 0;
        self.used = model.begins.len();
        self.unfinished = self.used;
        self.queue.reset(&model.programs.layout, self.used);
        for (resource, capacity) in self.resources.iter_mut().zip(model.capacity) {
            resource.reset(capacity);
        }
        self.card.resource.reset(1);
        self.card.began.clear();
        self.card.last_used = None;
        let rebuild = self.built_for != model.number;
        if rebuild {
            self.instances.clear();
            self.built_for = model.number;
        }
        let known = self.instances.len();
        if known < self.used {
            self.instances.resize_with(self.used, Instance::default);
        }
        let messages = model.programs.messages.len();
        for (index, instance) in self.instances[..self.used].iter_mut().enumerate() {
            let sizes = &self.sizes[index * messages..(index + 1) * messages];
            let stream = |channel| CarrierStream::new(seed, index as u32, channel);
            instance.reset(&model.programs, sizes, stream, index >= known);
        }
    }

    /// Starts all programs of an instance, the device's last.
    fn begin(&mut self, model: &CaseModel, instance: usize) {
        for party in (0..model.programs.ops.len()).rev() {
            let begins = model.begins[instance];
            let role = usize::from(model.programs.roles[party]);
            if role == CLIENT && begins > 0 {
                let state = &mut self.instances[instance].parties[party];
                state.spend(Stage::Idle, begins);
                state.waiting = Waiting::Beginning;
                self.queue.set_program(&model.programs.layout, instance, party, Some(begins));
                continue;
            }
            if role == CLIENT && !self.take_resource(model, instance, party) {
                continue;
            }
            self.proceed(model, instance, party);
        }
    }

    // ---- events ----

    /// The first packet of a direction arrives.
    fn deliver(&mut self, model: &CaseModel, heading: Heading) {
        let path = &mut self.paths[heading as usize];
        let Some(packet) = path.in_flight.pop_front() else { return };
        self.queue.set_arrival(heading, path.next_arrival());
        let place = Place {
            instance: packet.instance as usize,
            channel: packet.channel as usize,
            end: usize::from(packet.to),
        };
        let arrival =
            self.carrier(model, place, |carrier, end, net| carrier.receive(end, net, &packet));
        let Place { instance, channel, .. } = place;
        match arrival {
            Arrival::Nothing => {}
            Arrival::Request => self.instances[instance].channels[channel].note_request(&packet),
            Arrival::Open { with_content } => self.opened(model, place, &packet, with_content),
            Arrival::Content => self.content(model, place, &packet),
        }
    }

    /// A timer of a carrier has expired.
    fn expire(&mut self, model: &CaseModel, place: Place, timer: usize) {
        let failed = self.carrier(model, place, |carrier, end, net| {
            carrier.on_timer(end, net, timer);
            carrier.has_failed(end)
        });
        if failed {
            let instance = &mut self.instances[place.instance];
            if !instance.finished {
                instance.fail();
                self.unfinished -= 1;
            }
        }
    }

    /// The time of a program has come.
    fn go_on(&mut self, model: &CaseModel, instance: usize, party: usize) {
        self.queue.set_program(&model.programs.layout, instance, party, None);
        match self.instances[instance].parties[party].waiting {
            Waiting::Time => self.proceed(model, instance, party),
            Waiting::Beginning => {
                self.instances[instance].parties[party].waiting = Waiting::Time;
                if self.take_resource(model, instance, party) {
                    self.proceed(model, instance, party);
                }
            }
            // It is blocked and others may go on.
            _ => self.give_resource_back(model, instance, party),
        }
    }

    /// Puts the timers of a carrier that acted, and what it sent, into the queue.
    #[inline]
    fn settle(&mut self, model: &CaseModel) {
        let Some(Place { instance, channel, end }) = self.touched.take() else { return };
        let state = &mut self.instances[instance].channels[channel];
        let heading = state.headings[end];
        let clock = &self.clocks[if model.one_clock { 0 } else { heading as usize }];
        let timers = state.carrier.timers(end, clock);
        self.queue.set_timers(instance, state.places[end] as usize, timers);
        self.queue.set_arrival(heading, self.paths[heading as usize].next_arrival());
    }

    /// Lets a carrier act at one end of a channel.
    #[inline]
    pub(crate) fn carrier<R>(
        &mut self,
        model: &CaseModel,
        place: Place,
        act: impl FnOnce(&mut AnyCarrier, usize, &mut Net<'_>) -> R,
    ) -> R {
        let Place { instance, channel, end } = place;
        if self.touched != Some(place) {
            self.settle(model);
            self.touched = Some(place);
        }
        let state = &mut self.instances[instance];
        let Channel { carrier, headings, .. } = &mut state.channels[channel];
        let heading = headings[end];
        let clock = &self.clocks[if model.one_clock { 0 } else { heading as usize }];
        let mut net = Net {
            clock,
            path: &mut self.paths[heading as usize],
            model: &model.paths[heading as usize],
            heading,
            instance: instance as u32,
            channel: channel as u32,
            to: if end == OPENER { ACCEPTOR as u8 } else { OPENER as u8 },
            counters: &mut state.counters,
            log: self.log.as_mut(),
        };
        act(carrier, end, &mut net)
    }

    // ---- waking ----

    /// A channel is open at one end.
    fn opened(&mut self, model: &CaseModel, place: Place, packet: &Packet, with_content: bool) {
        let Place { instance, channel: number, end } = place;
        let party = model.programs.channels[number].ends[end] as usize;
        let state = &mut self.instances[instance];
        let channel = &mut state.channels[number];
        let before = if end == OPENER { channel.request } else { channel.opened };
        let spent =
            before.map_or([0; Stage::ALL.len()], |written| written.arrived(packet, end == OPENER));
        if end == OPENER {
            channel.opened = Some(Written { time: self.now, spent });
        }
        if state.parties[party].waiting == Waiting::Channel(number as u32) {
            state.parties[party].at += 1;
            self.wake(model, instance, party, spent);
        } else if with_content {
            self.content(model, place, packet);
        }
    }

    /// New content is there; its program may be waiting for it.
    fn content(&mut self, model: &CaseModel, place: Place, packet: &Packet) {
        let Place { instance, channel: number, end } = place;
        let party = model.programs.channels[number].ends[end] as usize;
        let state = &self.instances[instance];
        let waiting = &state.parties[party];
        let Waiting::Message(message) = waiting.waiting else { return };
        if model.programs.channel_of[message as usize] != number as u32 {
            return;
        }
        let blocked = waiting.time < self.now;
        let complete = state.channels[number].carrier.has(end, message);
        if blocked {
            // It reads at once, also what is not complete.
            self.carrier(model, place, |carrier, end, net| carrier.read(end, net));
        }
        if complete {
            let state = &self.instances[instance];
            let carrier = &state.channels[number].carrier;
            let whole = carrier.carries_last_byte(end, message, packet);
            let written = state.writes[state.write_of[message as usize] as usize];
            let spent = written.arrived(packet, whole);
            self.wake(model, instance, party, spent);
        }
    }

    /// What a party waited for has come. If it was only about to wait it just goes on; else it
    /// takes over the account of what it waited for, and waking up costs time.
    fn wake(&mut self, model: &CaseModel, instance: usize, party: usize, spent: Spent) {
        let now = self.now;
        let state = &mut self.instances[instance].parties[party];
        state.waiting = Waiting::Time;
        if state.time >= now {
            self.queue.set_program(&model.programs.layout, instance, party, None);
            self.proceed(model, instance, party);
            return;
        }
        debug_assert_eq!(spent.iter().sum::<u64>(), now);
        state.spent = spent;
        state.time = now;
        if !self.take_resource(model, instance, party) {
            return;
        }
        self.go_on_awake(model, instance, party);
    }

    /// Pays for waking up and goes on. The caches are cold if the processor was idle for
    /// longer than its profile's threshold; they stay so until the program waits again.
    fn go_on_awake(&mut self, model: &CaseModel, instance: usize, party: usize) {
        self.set_cold(model, instance, party);
        let role = usize::from(model.programs.roles[party]);
        self.spend_cost(model, instance, party, model.programs.wake[role]);
        self.proceed(model, instance, party);
    }

    fn set_cold(&mut self, model: &CaseModel, instance: usize, party: usize) {
        let role = usize::from(model.programs.roles[party]);
        let threshold = model.idle_threshold[role];
        let last = self.resources[role].last_used;
        let state = &mut self.instances[instance].parties[party];
        state.cold = last.is_none_or(|last| state.time.saturating_sub(last) > threshold);
    }

    // ---- resources ----

    /// Whether parties have to share their resources.
    pub(crate) fn shared(&self) -> bool {
        self.used > 1
    }

    /// Takes the party's own resource. If others hold it the party waits for it.
    fn take_resource(&mut self, model: &CaseModel, instance: usize, party: usize) -> bool {
        let claimant = Claimant { instance: instance as u32, party: party as u32 };
        let shared = self.shared();
        let resource = &mut self.resources[usize::from(model.programs.roles[party])];
        let state = &mut self.instances[instance].parties[party];
        if shared && !state.holds && !resource.claim(claimant) {
            state.waiting = Waiting::Resource;
            return false;
        }
        state.holds = true;
        true
    }

    /// The party blocks: others may go on when it has computed to its end.
    pub(crate) fn block(
        &mut self,
        model: &CaseModel,
        instance: usize,
        party: usize,
        waiting: Waiting,
    ) {
        let shared = self.shared();
        let state = &mut self.instances[instance].parties[party];
        state.waiting = waiting;
        let time = state.time;
        if !shared {
            let role = usize::from(model.programs.roles[party]);
            self.resources[role].last_used = Some(time);
        } else if time > self.now {
            self.queue.set_program(&model.programs.layout, instance, party, Some(time));
        } else {
            self.give_resource_back(model, instance, party);
        }
    }

    fn give_resource_back(&mut self, model: &CaseModel, instance: usize, party: usize) {
        let shared = self.shared();
        let state = &mut self.instances[instance].parties[party];
        if !shared || !std::mem::replace(&mut state.holds, false) {
            return;
        }
        let role = usize::from(model.programs.roles[party]);
        let Some(next) = self.resources[role].release(self.now) else { return };
        let (instance, party) = (next.instance as usize, next.party as usize);
        let now = self.now;
        let state = &mut self.instances[instance].parties[party];
        state.holds = true;
        state.waiting = Waiting::Time;
        state.spend_until(Stage::ResourceQueue, now);
        if state.at == 0 {
            self.set_cold(model, instance, party);
            self.proceed(model, instance, party);
        } else {
            self.go_on_awake(model, instance, party);
        }
    }
}
