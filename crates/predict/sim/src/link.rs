// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The link: what each direction does to a packet, in the order in which `warifu-link` does it.
//!
//! The queue may be full; the packet takes its time on the wire; it may be lost there (a lost
//! packet has used the wire); then come the propagation delay and the jitter. The two ends'
//! network interfaces add their own time before and after.

use std::collections::VecDeque;

use warifu_model::{BitsPerSecond, Link, Loss, Nanos};

use crate::cost::Sampler;
use crate::packet::{Packet, Transit};
use crate::random::{Purpose, Stream, geometric};
use crate::replay::Fate;
use crate::route::Heading;
use crate::time::Time;

/// One direction of the link as a case describes it.
#[derive(Clone, Debug)]
pub(crate) struct PathModel {
    delay_ns: u64,
    jitter: Option<Sampler>,
    /// Packets, counted from 0, and how much longer each takes, ns: a script of tests.
    held: Vec<(u64, u64)>,
    keep_order: bool,
    ns_per_byte: Option<f64>,
    queue_packets: usize,
    loss: LossModel,
    loss_purpose: Purpose,
    jitter_purpose: Purpose,
    /// Time in the client's and the server's network interface.
    interfaces: [Sampler; 2],
    /// The same if they never vary.
    constant_interfaces: Option<[u64; 2]>,
}

/// A law of loss, prepared for drawing.
#[derive(Clone, Debug)]
pub(crate) enum LossModel {
    None,
    /// Independent; the logarithm of the probability to come through.
    Independent {
        ln_keep: f64,
    },
    Bursts {
        good_to_bad: f64,
        bad_to_good: f64,
        good: f64,
        bad: f64,
    },
    /// These packets, counted from 0, ascending.
    Script(Vec<u64>),
}

/// One direction of the link in motion.
#[derive(Debug)]
pub(crate) struct Path {
    /// What is on its way, by arrival.
    in_flight: VecDeque<Packet>,
    /// When the first of them arrives.
    pub next_arrival: Time,
    /// When the last packet that was put on its way arrives, ns.
    latest: u64,
    /// Packets offered so far, and their bytes.
    pub packets: u64,
    pub bytes: u64,
    dropped: u64,
    /// When the last of the packets that were lost would have arrived, ns.
    latest_lost: u64,
    /// Instants at which the packets in the queue will have left it.
    departures: VecDeque<u64>,
    wire_free_at: u64,
    last_arrival: u64,
    /// The packet that is lost next, by number.
    next_loss: u64,
    /// How many have been lost by `next_loss`.
    losses: usize,
    bad: Option<bool>,
    loss: Stream,
    jitter: Stream,
    costs: [Stream; 2],
}

impl PathModel {
    /// One direction of a case's link, with the times in both ends' interfaces.
    pub(crate) fn new(link: &Link, heading: Heading, interfaces: [Sampler; 2]) -> PathModel {
        let (rate, loss_purpose, jitter_purpose) = match heading {
            Heading::Up => (link.rate_up, Purpose::LossUp, Purpose::JitterUp),
            Heading::Down => (link.rate_down, Purpose::LossDown, Purpose::JitterDown),
        };
        let jitter = warifu_model::Distribution::from_quantiles(link.jitter.clone()).ok();
        // An odd nanosecond goes up, so that both directions make the RTT.
        let delay_ns = match heading {
            Heading::Up => link.rtt.0.div_ceil(2),
            Heading::Down => link.rtt.0 / 2,
        };
        PathModel {
            delay_ns,
            jitter: jitter.map(|law| Sampler::new(&law, Nanos::ZERO)),
            held: Vec::new(),
            keep_order: link.keep_order,
            ns_per_byte: rate.map(|BitsPerSecond(bps)| 8e9 / bps.max(1) as f64),
            queue_packets: link.queue_packets as usize,
            loss: LossModel::new(&link.loss),
            loss_purpose,
            jitter_purpose,
            constant_interfaces: interfaces[0]
                .as_constant()
                .zip(interfaces[1].as_constant())
                .map(|(client, server)| [client, server]),
            interfaces,
        }
    }

    /// Propagation, ns, without jitter.
    pub(crate) fn delay_ns(&self) -> u64 {
        self.delay_ns
    }

    /// Whether nothing but independent losses depends on chance here.
    pub(crate) fn repeats(&self) -> bool {
        self.constant_interfaces.is_some()
            && self.jitter.is_none()
            && matches!(self.loss, LossModel::None | LossModel::Independent { .. })
    }

    /// Whether a trial in which no packet is lost may be told by a tape: losses that are
    /// independent are known beforehand.
    pub(crate) fn goes_by_tape(&self) -> bool {
        matches!(self.loss, LossModel::None | LossModel::Independent { .. })
    }

    /// The probability of losing a packet, where nothing else depends on chance but the times in
    /// interfaces.
    pub(crate) fn independent_loss(&self) -> Option<f64> {
        match self.loss {
            _ if self.jitter.is_some() => None,
            LossModel::None => Some(0.0),
            LossModel::Independent { ln_keep } => Some(-ln_keep.exp_m1()),
            LossModel::Bursts { .. } | LossModel::Script(_) => None,
        }
    }

    /// Drops these packets, counted from 0 and ascending, and no others.
    pub(crate) fn lose(&mut self, packets: &[u64]) {
        self.loss = LossModel::Script(packets.to_vec());
    }

    /// How many packets a script drops.
    pub(crate) fn scripted(&self) -> usize {
        if let LossModel::Script(packets) = &self.loss { packets.len() } else { 0 }
    }

    /// The same with a script in the place of the random loss.
    pub(crate) fn with_script(mut self, mut script: Vec<u64>) -> PathModel {
        script.sort_unstable();
        self.loss = LossModel::Script(script);
        self
    }

    /// The same, in which these packets, counted from 0, take so much longer, ns.
    pub(crate) fn with_held(mut self, held: Vec<(u64, u64)>) -> PathModel {
        self.held = held;
        self
    }

    #[inline]
    fn held_ns(&self, number: u64) -> u64 {
        self.held.iter().find(|(held, _)| *held == number).map_or(0, |&(_, ns)| ns)
    }
}

impl LossModel {
    fn new(loss: &Loss) -> LossModel {
        match *loss {
            Loss::None => LossModel::None,
            Loss::Independent { probability } if probability.0 <= 0.0 => LossModel::None,
            Loss::Independent { probability } => {
                // Certain loss: minus infinity, and `geometric` gives 0.
                LossModel::Independent { ln_keep: (1.0 - probability.0).ln() }
            }
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                LossModel::Bursts {
                    good_to_bad: good_to_bad.0,
                    bad_to_good: bad_to_good.0,
                    good: loss_good.0,
                    bad: loss_bad.0,
                }
            }
        }
    }
}

impl Path {
    /// A path before any trial.
    pub(crate) fn new() -> Path {
        let stream = || Stream::new(0, Purpose::LossUp);
        Path {
            in_flight: VecDeque::with_capacity(64),
            next_arrival: Time::NONE,
            latest: 0,
            packets: 0,
            bytes: 0,
            dropped: 0,
            latest_lost: 0,
            departures: VecDeque::new(),
            wire_free_at: 0,
            last_arrival: 0,
            next_loss: u64::MAX,
            losses: 0,
            bad: None,
            loss: stream(),
            jitter: stream(),
            costs: [stream(), stream()],
        }
    }

    /// Begins a trial.
    pub(crate) fn reset(&mut self, model: &PathModel, seed: u64) {
        self.in_flight.clear();
        self.next_arrival = Time::NONE;
        self.latest = 0;
        self.departures.clear();
        self.packets = 0;
        self.dropped = 0;
        self.latest_lost = 0;
        self.bytes = 0;
        self.wire_free_at = 0;
        self.last_arrival = 0;
        self.bad = None;
        self.next_loss = match &model.loss {
            LossModel::None => u64::MAX,
            LossModel::Independent { ln_keep } => {
                self.loss = Stream::new(seed, model.loss_purpose);
                geometric(self.loss.bits(), *ln_keep)
            }
            LossModel::Bursts { .. } => {
                self.loss = Stream::new(seed, model.loss_purpose);
                u64::MAX
            }
            LossModel::Script(script) => script.first().copied().unwrap_or(u64::MAX),
        };
        self.losses = 0;
        if model.jitter.is_some() {
            self.jitter = Stream::new(seed, model.jitter_purpose);
        }
        if model.constant_interfaces.is_none() {
            // Apart from the streams of the parties' own costs.
            let seed = !seed ^ model.loss_purpose as u64;
            self.costs =
                [Stream::new(seed, Purpose::ClientCosts), Stream::new(seed, Purpose::ServerCosts)];
        }
    }

    /// Takes the first packet that arrives.
    #[inline]
    pub(crate) fn arrive(&mut self) -> Option<Packet> {
        let packet = self.in_flight.pop_front();
        self.next_arrival =
            self.in_flight.front().map_or(Time::NONE, |next| Time::at(next.arrival));
        packet
    }

    /// Packets that have arrived, that were offered but for those still on their way, and that were
    /// to be lost and would have arrived by then.
    pub(crate) fn traffic(&self, now: u64) -> (u64, u64, usize) {
        let offered = self.packets - self.in_flight.len() as u64;
        let lost = if self.latest_lost <= now { self.losses } else { 0 };
        (offered - self.dropped, offered, lost)
    }

    /// How many packets are on their way.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether none of the first so many packets is lost.
    #[inline]
    pub(crate) fn keeps(&self, packets: u64) -> bool {
        self.next_loss >= packets && self.dropped == 0
    }

    /// Takes a packet of so many bytes that is sent now: when it arrives, and what it goes through;
    /// `None` if it is lost. One that arrives is then put on its way by [`Path::insert`].
    #[inline(always)]
    pub(crate) fn carry(
        &mut self,
        model: &PathModel,
        heading: Heading,
        now: u64,
        bytes: u32,
    ) -> Option<(u64, Transit)> {
        let number = self.packets;
        self.packets += 1;
        self.bytes += u64::from(bytes);
        let lost = self.draw_loss(model, number);

        let [client_interface, server_interface] = match model.constant_interfaces {
            Some(both) => both,
            None => [self.interface(model, 0), self.interface(model, 1)],
        };
        let (before, after) = match heading {
            Heading::Up => (client_interface, server_interface),
            Heading::Down => (server_interface, client_interface),
        };
        let on_link = now + before;
        let (leaves, serialisation) = match model.ns_per_byte {
            None => (on_link, 0),
            Some(ns_per_byte) => {
                let serialisation = (f64::from(bytes) * ns_per_byte).ceil() as u64;
                let leaves = self.queue_up(model.queue_packets, on_link, serialisation);
                if lost && leaves.is_none() {
                    self.latest_lost = u64::MAX;
                }
                (leaves?, serialisation)
            }
        };
        let queue = leaves - serialisation - on_link;
        let jitter = model.jitter.as_ref().map_or(0, |law| self.jitter(law));
        let mut arrival = leaves + model.delay_ns + jitter + model.held_ns(number) + after;
        if lost {
            self.dropped += 1;
            self.latest_lost = self.latest_lost.max(arrival);
            return None;
        }
        if model.keep_order {
            arrival = arrival.max(self.last_arrival);
            self.last_arrival = arrival;
        }
        let transit = Transit {
            sent: now,
            queue,
            serialisation,
            client_interface: client_interface as u32,
            server_interface: server_interface as u32,
        };
        Some((arrival, transit))
    }

    /// As [`Path::carry`], for a packet whose fate on the link is known; without one it takes the
    /// link's delay and is not lost.
    #[cold]
    pub(crate) fn carry_to_fate(
        &mut self,
        model: &PathModel,
        now: u64,
        (bytes, fate): (u32, Option<Fate>),
    ) -> Option<(u64, Transit)> {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        let [client_interface, server_interface] = match model.constant_interfaces {
            Some(both) => both,
            None => [self.interface(model, 0), self.interface(model, 1)],
        };
        let interfaces = client_interface + server_interface;
        let delay_ns = match fate {
            Some(Fate::Lost) => {
                self.dropped += 1;
                return None;
            }
            Some(Fate::Delivered { delay_ns }) => delay_ns,
            None => model.delay_ns,
        };
        let (client_interface, server_interface) =
            (client_interface as u32, server_interface as u32);
        let transit =
            Transit { sent: now, client_interface, server_interface, ..Transit::default() };
        let mut arrival = now + interfaces + delay_ns;
        if model.keep_order {
            arrival = arrival.max(self.last_arrival);
            self.last_arrival = arrival;
        }
        Some((arrival, transit))
    }

    #[inline(always)]
    fn interface(&mut self, model: &PathModel, index: usize) -> u64 {
        model.interfaces[index].draw(&mut self.costs[index])
    }

    #[inline(never)]
    fn jitter(&mut self, law: &Sampler) -> u64 {
        law.draw(&mut self.jitter)
    }

    /// Puts a packet that will arrive on its way.
    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet) {
        self.next_arrival = self.next_arrival.min(Time::at(packet.arrival));
        if packet.arrival >= self.latest {
            self.latest = packet.arrival;
            self.in_flight.push_back(packet);
        } else {
            self.overtake(packet);
        }
    }

    /// Puts a packet on its way that arrives before one that left earlier.
    #[cold]
    fn overtake(&mut self, packet: Packet) {
        let at = self.in_flight.partition_point(|other| other.arrival <= packet.arrival);
        self.in_flight.insert(at, packet);
    }

    /// Queues a packet up for the wire: when it leaves it, ns; `None` if the queue is full.
    #[inline(never)]
    fn queue_up(&mut self, room: usize, on_link: u64, serialisation: u64) -> Option<u64> {
        while self.departures.front().is_some_and(|&at| at <= on_link) {
            self.departures.pop_front();
        }
        if self.departures.len() >= room {
            self.dropped += 1;
            return None;
        }
        let leaves = self.wire_free_at.max(on_link) + serialisation;
        self.wire_free_at = leaves;
        self.departures.push_back(leaves);
        Some(leaves)
    }

    #[inline]
    fn draw_loss(&mut self, model: &PathModel, number: u64) -> bool {
        if let LossModel::Bursts { .. } = model.loss {
            return self.draw_burst(&model.loss);
        }
        let lost = number == self.next_loss;
        if lost {
            self.next_loss = self.loss_after(model, number);
        }
        lost
    }

    /// The packet that is lost next after one that was.
    #[cold]
    fn loss_after(&mut self, model: &PathModel, number: u64) -> u64 {
        self.losses += 1;
        match &model.loss {
            LossModel::Independent { ln_keep } => {
                let gap = geometric(self.loss.bits(), *ln_keep);
                number.saturating_add(1).saturating_add(gap)
            }
            LossModel::Script(script) => script.get(self.losses).copied().unwrap_or(u64::MAX),
            LossModel::None | LossModel::Bursts { .. } => u64::MAX,
        }
    }

    #[inline(never)]
    fn draw_burst(&mut self, law: &LossModel) -> bool {
        let LossModel::Bursts { good_to_bad, bad_to_good, good, bad } = law else { return false };
        let in_bad = match self.bad {
            Some(state) => state,
            None => {
                let share = if *good_to_bad > 0.0 {
                    good_to_bad / (good_to_bad + bad_to_good)
                } else {
                    0.0
                };
                self.loss.uniform() < share
            }
        };
        let (loss, leave) = if in_bad { (bad, bad_to_good) } else { (good, good_to_bad) };
        let lost = self.loss.uniform() < *loss;
        self.bad = Some(in_bad ^ (self.loss.uniform() < *leave));
        lost
    }
}
