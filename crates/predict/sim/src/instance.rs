// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One instance of a scenario in motion: its channels, its parties, and what was written.

use warifu_model::{Counter, Stage};

use crate::carrier::{AnyCarrier, Carrier, CarrierStream, Counters};
use crate::link::Heading;
use crate::outcome::ConnectionOutcome;
use crate::packet::Packet;
use crate::party::{Party, Spent, Written};
use crate::program::{ChannelPlan, Programs};

/// One instance of a scenario in motion.
#[derive(Debug, Default)]
pub(crate) struct Instance {
    pub channels: Vec<Channel>,
    pub parties: Vec<Party>,
    /// What has been counted since the instance began.
    pub counters: Counters,
    /// Of each message, its length, and the write that it was part of.
    pub sizes: Vec<u32>,
    pub write_of: Vec<u32>,
    pub writes: Vec<Written>,
    pub episodes: Vec<Episode>,
    /// Whether the last episode has ended.
    pub finished: bool,
}

/// A channel in motion.
#[derive(Debug)]
pub(crate) struct Channel {
    pub carrier: AnyCarrier,
    /// Of each end, which way its packets go, and the first place of its timers in the queue.
    pub headings: [Heading; 2],
    pub places: [u32; 2],
    /// The opener's call, its arrival at the acceptor, and the opening at the opener, as the other
    /// end must know them.
    pub opening: Option<Written>,
    pub request: Option<Written>,
    pub opened: Option<Written>,
}

/// An episode in motion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Episode {
    /// The device's account and the counters at the first mark.
    pub start: Spent,
    pub counters: Counters,
    /// When it must have ended, ns.
    pub deadline: Option<u64>,
    pub finished: bool,
    pub outcome: ConnectionOutcome,
}

impl Instance {
    /// Begins a trial; memory is kept. `rebuild` if it was another model's before.
    pub(crate) fn reset(
        &mut self,
        programs: &Programs,
        sizes: &[u32],
        stream: impl Fn(u32) -> CarrierStream,
        rebuild: bool,
    ) {
        if rebuild {
            let plans = programs.channels.iter().zip(programs.layout.timers());
            self.channels = plans.map(|(plan, places)| Channel::new(plan, *places)).collect();
        }
        for (number, channel) in (0..).zip(&mut self.channels) {
            channel.reset(stream(number));
        }
        self.parties.clear();
        self.parties.resize(programs.ops.len(), Party::new());
        self.counters = [0; Counter::COUNT];
        self.sizes.clear();
        self.sizes.extend_from_slice(sizes);
        self.write_of.clear();
        self.write_of.resize(sizes.len(), 0);
        self.writes.clear();
        self.episodes.clear();
        self.episodes.resize(programs.episodes as usize, Episode::new());
        self.finished = false;
    }

    /// Ends every episode that has not ended, as failed.
    pub(crate) fn fail(&mut self) {
        self.finished = true;
        for episode in self.episodes.iter_mut().filter(|episode| !episode.finished) {
            episode.finished = true;
            episode.outcome.failed = true;
        }
    }

    /// The outcome of each episode; one that has not ended has failed.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = ConnectionOutcome> {
        self.episodes.iter().map(|episode| ConnectionOutcome {
            failed: episode.outcome.failed | !episode.finished,
            ..episode.outcome
        })
    }
}

impl Channel {
    fn new(plan: &ChannelPlan, places: [u32; 2]) -> Channel {
        Channel {
            carrier: plan.carrier.channel(plan.first, plan.messages),
            headings: plan.headings,
            places,
            opening: None,
            request: None,
            opened: None,
        }
    }

    fn reset(&mut self, stream: CarrierStream) {
        self.carrier.reset(stream);
        self.opening = None;
        self.request = None;
        self.opened = None;
    }

    /// The request to open it has come to the acceptor.
    pub(crate) fn note_request(&mut self, packet: &Packet) {
        self.request = self
            .opening
            .map(|opening| Written { time: packet.arrival, spent: opening.arrived(packet, true) });
    }
}

impl Episode {
    fn new() -> Episode {
        Episode {
            start: [0; Stage::ALL.len()],
            counters: [0; Counter::COUNT],
            deadline: None,
            finished: false,
            outcome: ConnectionOutcome::default(),
        }
    }
}
