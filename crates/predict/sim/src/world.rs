// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What all instances of a trial share: the time, the link, the resources, and what chance decides.

use crate::case_model::CaseModel;
use crate::clock::{Clock, KernelTime};
use crate::event_queue::{Event, EventQueue, Layout};
use crate::key_store::KeyStore;
use crate::link::Path;
use crate::random::{Purpose, Stream, mix};
use crate::recording::Log;
use crate::replay::Replay;
use crate::resource::{Claimant, Resource};
use crate::tape::Recorder;

/// What all instances of a trial share.
#[derive(Debug)]
pub(crate) struct World {
    pub now: u64,
    /// The clock of both ends, or of each.
    pub clocks: [Clock; 2],
    pub queue: EventQueue,
    pub paths: [Path; 2],
    /// Costs of client, server and key store; lengths.
    pub streams: [Stream; 4],
    /// Where in each band of an assumed figure the trial's board is, from 0 to 1.
    pub places: Vec<f64>,
    /// `client.loop` and `server.worker`.
    pub resources: [Resource; 2],
    pub key_store: KeyStore,
    /// Instances that have not finished.
    pub unfinished: usize,
    /// Whether parties have to share their resources.
    pub shared: bool,
    /// Who got the resource that was given back in the turn at hand; it goes on after it.
    pub granted: Option<Claimant>,
    /// What happens, where a trial is recorded; `None` in all others.
    pub log: Option<Log>,
    /// The fates of packets, where a trial replays a measured connection; `None` in all others.
    pub replay: Option<Replay>,
    /// How a trial goes, where it may be one that others repeat; `None` in all others.
    pub tape: Option<Box<Recorder>>,
}

impl World {
    /// A world before any trial.
    pub(crate) fn new() -> World {
        let stream = || Stream::new(0, Purpose::Clock);
        World {
            now: 0,
            clocks: [Clock::default(), Clock::default()],
            queue: EventQueue::default(),
            paths: [Path::new(), Path::new()],
            streams: [stream(), stream(), stream(), stream()],
            places: Vec::new(),
            resources: [Resource::new(), Resource::new()],
            key_store: KeyStore::new(),
            unfinished: 0,
            shared: false,
            granted: None,
            log: None,
            replay: None,
            tape: None,
        }
    }

    /// Draws what a trial's chance decides beforehand.
    pub(crate) fn seed(&mut self, model: &CaseModel, seed: u64) {
        // One draw needs no stream of its own.
        let phase = mix(seed ^ mix(Purpose::Clock as u64));
        self.set_phase(model, phase);
        self.begin_streams(model, seed);
        self.places.clear();
        if !model.programs.bands.is_empty() {
            let mut boards = Stream::new(seed, Purpose::Board);
            self.places.extend(model.programs.bands.iter().map(|_| boards.uniform()));
        }
    }

    /// Sets where the trial lies relative to the ticks, from 64 random bits.
    pub(crate) fn set_phase(&mut self, model: &CaseModel, phase: u64) {
        self.clocks[0] = Clock::from_bits(model.jiffies[0], phase);
        if !model.one_clock {
            self.clocks[1] = Clock::from_bits(model.jiffies[1], mix(phase));
        }
    }

    /// Lets a trial begin at an instant of a kernel, of whichever end has ticks like it.
    pub(crate) fn set_kernel_time(&mut self, model: &CaseModel, at: KernelTime) {
        for (clock, jiffy) in self.clocks.iter_mut().zip(model.jiffies) {
            if jiffy.ns == at.tick_ns {
                *clock = Clock::at_kernel_time(jiffy, at);
            }
        }
    }

    /// Begins everything anew that a trial draws from while it runs.
    pub(crate) fn begin_streams(&mut self, model: &CaseModel, seed: u64) {
        self.paths[0].reset(&model.paths[0], seed);
        self.paths[1].reset(&model.paths[1], seed);
        let mut begin = |index: usize, purpose| {
            if model.draws[index] {
                self.streams[index] = Stream::new(seed, purpose);
            }
        };
        begin(0, Purpose::ClientCosts);
        begin(1, Purpose::ServerCosts);
        begin(2, Purpose::KeyStore);
        begin(3, Purpose::Lengths);
    }

    /// What notes how the trial goes, with the numbers of ticks that decisions so far rest on.
    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        let recorder = self.tape.as_deref_mut()?;
        for (number, clock) in (0..).zip(&self.clocks) {
            recorder.counted(number, clock.ticks_relied_on());
        }
        Some(recorder)
    }

    /// Whether none of the first so many packets of each direction is lost.
    #[inline]
    pub(crate) fn keeps(&self, packets: [u64; 2]) -> bool {
        self.paths[0].keeps(packets[0]) && self.paths[1].keeps(packets[1])
    }

    /// Begins a trial whose chance has been drawn.
    pub(crate) fn reset(&mut self, model: &CaseModel) {
        let instances = model.begins.len();
        self.now = 0;
        self.unfinished = instances;
        self.shared = instances > 1 || model.programs.parties.len() > 2;
        self.granted = None;
        self.queue.reset(&model.programs.layout, instances);
        for (resource, capacity) in self.resources.iter_mut().zip(model.capacity) {
            resource.reset(capacity);
        }
        self.key_store.reset();
    }

    /// The next event and its time.
    #[inline]
    pub(crate) fn next(&self, layout: &Layout) -> Option<(u64, Event)> {
        self.queue.next(layout, [self.paths[0].next_arrival, self.paths[1].next_arrival])
    }

    /// Moves on to the time of an event.
    #[inline]
    pub(crate) fn advance(&mut self, model: &CaseModel, time: u64) {
        debug_assert!(time >= self.now);
        self.now = time;
        self.clocks[0].advance(time);
        if !model.one_clock {
            self.clocks[1].advance(time);
        }
    }
}
