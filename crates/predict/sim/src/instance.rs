// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One instance of a scenario in motion: its channels, its parties, and what was written.

use warifu_model::{Counter, Stage};

use crate::carrier::{AnyCarrier, Carrier, CarrierStream, Counters};
use crate::case_model::CaseModel;
use crate::outcome::ConnectionOutcome;
use crate::packet::Packet;
use crate::party::{Party, Spent, Written};
use crate::program::{ChannelPlan, Programs};
use crate::route::{End, Route};
use crate::speed::{SpeedLaws, Speeds};
use crate::turn::Place;

/// One instance of a scenario in motion.
#[derive(Debug, Default)]
pub(crate) struct Instance {
    /// Its number among the instances of a trial.
    pub number: u32,
    pub channels: Vec<Channel>,
    pub parties: Vec<Party>,
    /// What has been counted since the instance began.
    pub counters: Counters,
    /// Of each message, its length, and the first message of the write that it was part of.
    pub sizes: Vec<u32>,
    pub write_of: Vec<u32>,
    /// Each write, by its first message.
    pub writes: Vec<Written>,
    pub episodes: Vec<Episode>,
    /// What each role's computing takes in the place of 1, of the episode under way, and the seed
    /// that the next one's are drawn by.
    pub speeds: Speeds,
    pub speed_seed: u64,
    /// Whether the last episode has ended.
    pub finished: bool,
}

/// A channel in motion.
#[derive(Debug)]
pub(crate) struct Channel {
    pub carrier: AnyCarrier,
    /// Of each end, where its packets go, its party, and the first place of its timers in the
    /// queue.
    pub routes: [Route; 2],
    pub parties: [u32; 2],
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
    /// An instance of a model's programs.
    pub(crate) fn new(number: u32, model: &CaseModel) -> Instance {
        let programs = &model.programs;
        let places = programs.layout.timers(number);
        let plans = (0..).zip(programs.channels.iter().zip(places));
        let channels = plans.map(|(channel, (plan, places))| {
            let route = |from: End| Route {
                instance: number,
                channel,
                to: from.peer(),
                heading: plan.headings[from as usize],
                clock: if model.one_clock { 0 } else { plan.headings[from as usize] as u8 },
            };
            Channel::new(plan, End::BOTH.map(route), places)
        });
        let messages = programs.messages.len();
        let unwritten = Written { time: 0, spent: [0; Stage::ALL.len()] };
        Instance {
            number,
            channels: channels.collect(),
            write_of: vec![0; messages],
            writes: vec![unwritten; messages],
            episodes: vec![Episode::new(); programs.episodes as usize],
            ..Instance::default()
        }
    }

    /// Begins a trial; memory is kept.
    pub(crate) fn reset(&mut self, programs: &Programs, sizes: &[u32], seed: u64) {
        for (channel, state) in (0..).zip(&mut self.channels) {
            state.reset(CarrierStream::new(seed, self.number, channel));
        }
        self.parties.clear();
        let places = programs.layout.programs(self.number);
        let parties = programs.parties.iter().zip(places);
        self.parties.extend(parties.map(|(program, place)| Party::new(program.role, place)));
        self.counters = [0; Counter::COUNT];
        self.sizes.clear();
        self.sizes.extend_from_slice(sizes);
        for episode in &mut self.episodes {
            *episode = Episode::new();
        }
        self.finished = false;
        self.speed_seed = seed;
    }

    /// An episode begins.
    pub(crate) fn draw_speeds(&mut self, laws: &SpeedLaws, episode: u32) {
        self.speeds = laws.draw(self.speed_seed, self.number, episode);
    }

    /// Ends every episode that has not ended, as failed.
    pub(crate) fn fail(&mut self) {
        self.finished = true;
        for episode in self.episodes.iter_mut().filter(|episode| !episode.finished) {
            episode.finished = true;
            episode.outcome.failed = true;
        }
    }

    /// What the time went to until a packet brought a message, or what was missing of it, to an end
    /// of a channel.
    pub(crate) fn account_of(&self, place: Place, message: u32, packet: &Packet) -> Spent {
        let carrier = &self.channels[place.channel as usize].carrier;
        let whole = carrier.carries_last_byte(place.end, message, packet);
        self.writes[self.write_of[message as usize] as usize].arrived(packet, whole)
    }

    /// The outcome of each episode; one that has not ended has failed.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = ConnectionOutcome> {
        self.episodes.iter().map(|episode| episode.outcome)
    }
}

impl Channel {
    fn new(plan: &ChannelPlan, routes: [Route; 2], places: [u32; 2]) -> Channel {
        Channel {
            carrier: plan.carrier.channel(plan.first, plan.messages),
            routes,
            parties: plan.ends,
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
            outcome: ConnectionOutcome { failed: true, ..ConnectionOutcome::default() },
        }
    }
}
