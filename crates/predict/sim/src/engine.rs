// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The event engine: one trial of one case.

use warifu_model::{Mark, Role};

use crate::boards::Boards;
use crate::capture::PacketEvent;
use crate::carrier::Carrier;
use crate::case_model::CaseModel;
use crate::clock::Clock;
use crate::event_queue::Event;
use crate::exact::Traffic;
use crate::instance::Instance;
use crate::link::{Path, PathModel};
use crate::memo::{Lossless, Memo, Tapes};
use crate::outcome::{ConnectionOutcome, Outcome};
use crate::player::Player;
use crate::recording::{Log, Recording};
use crate::replay::{LoggedConnection, Replay, Replayed};
use crate::route::End;
use crate::tape::Recorder;
use crate::turn::Turn;
use crate::world::World;

/// Runs trials one after the other; keeps its memory between them.
#[derive(Debug)]
pub struct Simulator {
    world: World,
    instances: Vec<Instance>,
    /// The model that the instances were built for.
    built_for: u64,
    memo: Memo,
    tapes: Tapes,
    player: Player,
    /// Whether trials may be told from what is known of others.
    remembers: bool,
    /// Trials that were told so.
    told: u64,
    /// Packets of each direction that the last of them took.
    told_packets: [u64; 2],
    sizes: Vec<u32>,
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
    Simulator::new().packets(&model.clone().with_drops(up, down), seed)
}

impl Simulator {
    /// A simulator without a past.
    pub fn new() -> Simulator {
        Simulator {
            world: World::new(),
            instances: Vec::new(),
            built_for: 0,
            memo: Memo::default(),
            tapes: Tapes::default(),
            player: Player::default(),
            remembers: true,
            told: 0,
            told_packets: [0; 2],
            sizes: Vec::new(),
        }
    }

    /// A simulator that runs every trial event by event, whatever it knows of others: what comes of
    /// it is the same, and takes longer.
    pub fn without_memory() -> Simulator {
        Simulator { remembers: false, ..Simulator::new() }
    }

    /// Trials so far that were not run event by event, because it was known how they go.
    pub fn told(&self) -> u64 {
        self.told
    }

    /// Runs one trial. The same case and seed give the same outcome, whatever ran before.
    pub fn run(&mut self, model: &CaseModel, seed: u64, outcome: &mut Outcome) {
        let lengths = self.seed(model, seed);
        self.run_seeded(model, seed, lengths, outcome);
    }

    /// Runs one trial whose ticks have that phase.
    pub(crate) fn run_phase(
        &mut self,
        model: &CaseModel,
        (seed, phase): (u64, u64),
        outcome: &mut Outcome,
    ) -> Traffic {
        let lengths = self.seed(model, seed);
        self.world.set_phase(model, phase);
        let told = self.told;
        self.run_seeded(model, seed, lengths, outcome);
        if self.told > told {
            // None of its packets was lost.
            let arrived = self.told_packets;
            return Traffic { arrived, offered: arrived, met: true };
        }
        let now = self.world.now;
        let [up, down] = self.world.paths.each_ref().map(|path| path.traffic(now));
        let met = up.2 == model.paths[0].scripted() && down.2 == model.paths[1].scripted();
        Traffic { arrived: [up.0, down.0], offered: [up.1, down.1], met }
    }

    /// Runs one trial on one of a model's boards, counted from 0, or beyond the last on the one in
    /// the middle of all bands; all else is as its seed has it.
    pub fn run_on(
        &mut self,
        model: &CaseModel,
        (boards, number): (&Boards, usize),
        seed: u64,
        outcome: &mut Outcome,
    ) {
        let lengths = self.seed(model, seed);
        self.world.places.clear();
        self.world.places.extend(boards.board(number));
        self.run_seeded(model, seed, lengths, outcome);
    }

    /// Runs a trial whose chance has been drawn; `lengths` is what stands for its messages'.
    fn run_seeded(
        &mut self,
        model: &CaseModel,
        seed: u64,
        lengths: Option<u64>,
        outcome: &mut Outcome,
    ) {
        let lengths = lengths.filter(|_| self.remembers && self.world.log.is_none());
        if let Some(key) = lengths.filter(|_| model.goes_by_tape)
            && let Some(known) = self.play(model, seed, key)
        {
            outcome.connections.clear();
            outcome.connections.push(known);
            self.told += 1;
            self.told_packets = self.player.arrived;
            return;
        }
        let key = lengths.filter(|_| model.repeats);
        if let Some(key) = key {
            self.memo.turn_to(model.number);
            if let Some(lossless) = self.memo.get(key)
                && self.world.keeps(lossless.packets)
            {
                outcome.connections.clear();
                outcome.connections.push(lossless.outcome);
                self.told += 1;
                self.told_packets = lossless.packets;
                return;
            }
        }
        self.reset(model, seed);
        let tape = lengths.filter(|&key| model.goes_by_tape && self.may_record(key));
        if tape.is_some() {
            self.begin_tape(model);
        }
        for instance in 0..self.instances.len() {
            self.begin(model, instance);
        }
        self.tape_decisions();
        while self.world.unfinished > 0 {
            let Some((time, event)) = self.world.next(&model.programs.layout) else { break };
            if time > model.horizon {
                break;
            }
            self.world.advance(model, time);
            if let Some(tape) = &mut self.world.tape {
                let number = tape.event(time, event);
                self.world.clocks.iter_mut().for_each(|clock| clock.event = number);
            }
            self.happen(model, event);
            self.tape_decisions();
        }
        if let Some(key) = tape {
            self.end_tape(key);
        }
        if let Some(key) = key
            && self.world.keeps(self.world.paths.each_ref().map(|path| path.packets))
        {
            self.remember(key);
        }
        outcome.connections.clear();
        for instance in &self.instances {
            outcome.connections.extend(instance.outcomes());
        }
    }

    /// Runs one trial: every packet that was put on the link, up to the end of its last episode.
    pub fn packets(&mut self, model: &CaseModel, seed: u64) -> Vec<PacketEvent> {
        self.world.log = Some(Log::of(None));
        self.run(model, seed, &mut Outcome::default());
        self.world.log.take().unwrap_or_default().packets
    }

    /// Runs one trial and keeps what happened on one of its connections, counted as in
    /// [`Outcome::connections`]; `None` where it came to nothing. The outcome is that of
    /// [`Simulator::run`]. Of a model of [`CaseModel::compile_to_record`].
    pub fn record(
        &mut self,
        model: &CaseModel,
        seed: u64,
        connection: usize,
        outcome: &mut Outcome,
    ) -> Option<Recording> {
        let instance = connection / (model.programs.episodes.max(1) as usize);
        self.world.log = Some(Log::of(Some(instance as u32)));
        self.run(model, seed, outcome);
        let log = self.world.log.take()?;
        let of = outcome.connections.get(connection).filter(|of| !of.failed)?;
        Some(Recording::new(model, self.instances.get(instance)?, log, of))
    }

    /// Runs one trial whose packets meet the fates of a connection that was measured, with the
    /// lengths that its messages had; `None` where it comes to nothing. Of a model of
    /// [`CaseModel::to_replay`] of one connection, whose carrier is TCP.
    pub fn replay(
        &mut self,
        model: &CaseModel,
        seed: u64,
        logged: &LoggedConnection<'_>,
    ) -> Option<Replayed> {
        self.seed(model, seed);
        if let Some(at) = logged.began {
            self.world.set_kernel_time(model, at);
        }
        for &(message, bytes) in logged.sizes {
            if let Some(size) = self.sizes.get_mut(message as usize) {
                *size = bytes;
            }
        }
        self.world.replay = Some(Replay::new(logged.packets));
        let mut outcome = Outcome::default();
        self.run_seeded(model, seed, None, &mut outcome);
        let replay = self.world.replay.take()?;
        let outcome = outcome.connections.first().copied().filter(|of| !of.failed)?;
        let ends_ns = outcome.marks[Mark::FirstResponse as usize];
        let ends = (logged.ends_ns, ends_ns);
        let (unmatched, same_retransmissions) =
            replay.compare(logged.packets, ends, model.way_down_ns());
        Some(Replayed { outcome, unmatched, same_retransmissions })
    }

    /// The outcome of a trial whose chance has been drawn, if it is known how it goes. If not, its
    /// streams are at their beginning again.
    fn play(&mut self, model: &CaseModel, seed: u64, key: u64) -> Option<ConnectionOutcome> {
        self.tapes.turn_to(model.number);
        if !self.tapes.are_of_use() {
            return None;
        }
        let packets = self.tapes.packets();
        let ways = self.tapes.of(key).filter(|_| self.world.keeps(packets))?;
        let outcome = self.player.play(ways, model, &mut self.world, seed);
        match outcome {
            Some(_) => self.tapes.count(true),
            None => self.world.begin_streams(model, seed),
        }
        outcome
    }

    /// Whether a trial that is known to go no way known before may show one.
    fn may_record(&self, key: u64) -> bool {
        let tapes = &self.tapes;
        tapes.are_of_use() && tapes.have_room(key) && self.world.keeps(tapes.packets())
    }

    fn begin_tape(&mut self, model: &CaseModel) {
        self.world.tape = Some(Box::new(Recorder::new()));
        let least_rtt_ns = model.paths.iter().map(PathModel::delay_ns).sum();
        self.world.clocks.iter_mut().for_each(|clock| clock.begin_noting(least_rtt_ns));
    }

    /// Puts what carriers decided by their clocks on the tape.
    #[inline]
    fn tape_decisions(&mut self) {
        if self.world.tape.is_some() {
            self.note_decisions();
        }
    }

    #[cold]
    fn note_decisions(&mut self) {
        let spans = self.world.clocks.each_ref().map(Clock::relied_on);
        if let Some(tape) = self.world.recorder() {
            spans.into_iter().for_each(|spans| tape.relied_on(spans));
        }
    }

    /// Keeps the tape of this trial, if there is one.
    #[cold]
    fn end_tape(&mut self, key: u64) {
        self.doubt_timers();
        self.tape_decisions();
        let doubted = self.world.clocks.iter().any(|clock| clock.phase_matters.get());
        let recorder = self.world.tape.take().filter(|_| !doubted && self.instances[0].finished);
        let outcome = self.instances[0].outcomes().next();
        let tape = recorder.zip(outcome).and_then(|(tape, outcome)| tape.finish(outcome));
        self.tapes.count(false);
        if let Some(tape) = tape {
            self.tapes.put(key, tape);
        }
    }

    /// Timers that are set might have expired in another trial.
    fn doubt_timers(&self) {
        for channel in &self.instances[0].channels {
            for end in End::BOTH {
                let clock = usize::from(channel.routes[end as usize].clock);
                channel.carrier.doubt_timers(end, &self.world.clocks[clock]);
            }
        }
    }

    /// Notes how this trial without loss went.
    fn remember(&mut self, key: u64) {
        self.doubt_timers();
        let instance = &self.instances[0];
        let clocks = &self.world.clocks;
        let doubted = clocks.iter().any(|clock| clock.phase_matters.get());
        let sure = !doubted && instance.finished;
        // What is still on its way at the end can be lost without a trace.
        let mattered = |path: &Path| path.packets - path.in_flight() as u64;
        let lossless = instance.outcomes().next().filter(|_| sure).map(|outcome| Lossless {
            outcome,
            packets: [mattered(&self.world.paths[0]), mattered(&self.world.paths[1])],
        });
        self.memo.put(key, lossless);
    }

    /// Draws what a trial's chance decides beforehand. Returns what stands for the lengths of the
    /// last instance's messages, if anything can.
    fn seed(&mut self, model: &CaseModel, seed: u64) -> Option<u64> {
        self.world.seed(model, seed);
        self.sizes.clear();
        let mut key = None;
        for _ in 0..model.begins.len() {
            key = model.programs.draw_sizes(&mut self.world.streams[3], &mut self.sizes);
        }
        key
    }

    fn reset(&mut self, model: &CaseModel, seed: u64) {
        self.world.reset(model);
        if self.built_for != model.number {
            self.built_for = model.number;
            let instances = 0..model.begins.len() as u32;
            self.instances.clear();
            self.instances.extend(instances.map(|number| Instance::new(number, model)));
        }
        let messages = model.programs.messages.len();
        for (index, instance) in self.instances.iter_mut().enumerate() {
            let sizes = &self.sizes[index * messages..(index + 1) * messages];
            instance.reset(&model.programs, sizes, seed);
            instance.draw_speeds(&model.speed, 0);
        }
    }

    /// Starts all programs of an instance, the device's last.
    fn begin(&mut self, model: &CaseModel, instance: usize) {
        for (party, program) in model.programs.parties.iter().enumerate().rev() {
            let begins = if program.role == Role::Client { model.begins[instance] } else { 0 };
            self.turn(model, instance, |turn| turn.begin(party, begins));
        }
    }

    /// Lets an event happen.
    #[inline]
    fn happen(&mut self, model: &CaseModel, event: Event) {
        match event {
            Event::Arrival(heading) => {
                let Some(packet) = self.world.paths[heading as usize].arrive() else { return };
                let instance = packet.route.instance as usize;
                self.turn(model, instance, |turn| turn.deliver(&packet));
            }
            Event::KeyStoreFree => {
                self.world.queue.set_key_store(None);
                let now = self.world.now;
                if let Some(next) = self.world.key_store.resource.release(now) {
                    let party = next.party as usize;
                    self.turn(model, next.instance as usize, |turn| turn.have_key_store(party));
                }
            }
            Event::Timer { instance, channel, end, timer } => {
                self.turn(model, instance as usize, |turn| turn.expire(channel, end, timer));
            }
            Event::Program { instance, party } => {
                self.turn(model, instance as usize, |turn| turn.go_on(party as usize));
            }
        }
    }

    /// Lets an instance act, and then those to whom it gave its resources back.
    #[inline]
    fn turn(&mut self, model: &CaseModel, instance: usize, act: impl FnOnce(&mut Turn<'_>)) {
        let mut turn = Turn::new(model, &mut self.world, &mut self.instances[instance]);
        act(&mut turn);
        turn.settle();
        while let Some(next) = self.world.granted.take() {
            let instance = &mut self.instances[next.instance as usize];
            let mut turn = Turn::new(model, &mut self.world, instance);
            turn.have_resource(next.party as usize);
            turn.settle();
        }
    }
}
