// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One connection of a trial as it happened: who computed what and when, what was written, every
//! packet, and the timers that expired.
//!
//! A trial that is recorded goes as any other with its seed. All others have no [`Log`]; what they
//! run is compiled without the names that a recording needs.

use std::ops::Range;

use warifu_model::{KeyStoreCall, Mark, Operation, Role};

use crate::capture::PacketEvent;
use crate::case_model::CaseModel;
use crate::event_queue::Timer;
use crate::instance::Instance;
use crate::outcome::ConnectionOutcome;
use crate::route::Heading;

/// Entries of a log beyond which nothing more is noted: of many connections one after the other
/// the one that is wanted may be late.
const MOST: usize = 200_000;

/// What happened on one connection. Times are from its first mark on, ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// From the first mark to [`Mark::FirstResponse`].
    pub total_ns: u64,
    /// The marks that its device passed until then, in their order.
    pub marks: Vec<(Mark, u64)>,
    /// What each end did, in the order of its beginning.
    pub activities: Vec<Activity>,
    /// What was written, in its order.
    pub messages: Vec<Sent>,
    /// Every packet that was sent.
    pub packets: Vec<Carried>,
    /// Every timer that expired.
    pub timers: Vec<Expiry>,
}

/// What an end did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Which end.
    pub role: Role,
    /// What.
    pub doing: Doing,
    /// From when.
    pub from_ns: u64,
    /// Until when.
    pub until_ns: u64,
}

/// What an end can do. Beside that it waits for the other, or for the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It computes, or the operating system does for it.
    Operation(Operation),
    /// The operating system wakes it, which has read what came.
    Wake,
    /// Its key store is busy for it.
    KeyStore(KeyStoreCall),
    /// It waits for a processor or a key store that is busy with others.
    Queue,
    /// It waits deliberately.
    Pause,
}

/// A message that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// By whom.
    pub role: Role,
    /// What it is: `ServerHello`, `[GET /]`.
    pub label: String,
    /// Its length, B.
    pub bytes: u32,
    /// When it was handed to its carrier.
    pub at_ns: u64,
}

/// A packet with the messages that it has a part of.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    /// By whom it was sent.
    pub role: Role,
    /// The packet; its times are from the connection's first mark on.
    pub packet: PacketEvent,
    /// Indices into [`Recording::messages`].
    pub messages: Range<usize>,
}

/// A timer of a carrier that expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// At which end.
    pub role: Role,
    /// When.
    pub at_ns: u64,
    /// Which.
    pub timer: CarrierTimer,
}

/// The timers of a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarrierTimer {
    /// To send again what no answer came to, or to ask for one.
    Retransmit,
    /// To acknowledge what came.
    DelayedAck,
}

impl From<Timer> for CarrierTimer {
    fn from(timer: Timer) -> CarrierTimer {
        match timer {
            Timer::Retransmit => CarrierTimer::Retransmit,
            Timer::DelayedAck => CarrierTimer::DelayedAck,
        }
    }
}

/// What is noted while a trial runs. Times are from the trial's beginning on.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// The instance that is recorded; `None` for all.
    instance: Option<u32>,
    pub packets: Vec<PacketEvent>,
    pub timers: Vec<Expiry>,
    activities: Vec<Activity>,
    /// When these messages were written, by their numbers.
    writes: Vec<(u64, Range<usize>)>,
}

impl Log {
    pub(crate) fn of(instance: Option<u32>) -> Log {
        Log { instance, ..Log::default() }
    }

    /// Whether what an instance does is noted.
    pub(crate) fn is_of(&self, instance: u32) -> bool {
        self.instance.is_none_or(|of| of == instance)
            && self.packets.len() + self.activities.len() < MOST
    }

    /// Notes what an end did.
    pub(crate) fn note(&mut self, role: Role, doing: Doing, (from_ns, until_ns): (u64, u64)) {
        if until_ns > from_ns {
            self.activities.push(Activity { role, doing, from_ns, until_ns });
        }
    }

    /// Notes that messages were written.
    pub(crate) fn write(&mut self, at_ns: u64, messages: Range<usize>) {
        self.writes.push((at_ns, messages));
    }
}

/// A message of a channel's direction, and the bytes of the stream that are its own; in a
/// datagram, all of them.
struct Placed {
    /// Its number among those of the scenario.
    number: usize,
    channel: u32,
    role: Role,
    /// Sequence numbers, counted as [`PacketEvent::seq`].
    stream: Range<u32>,
}

impl Recording {
    /// The part of a log between the first mark of a connection and its response.
    pub(crate) fn new(
        model: &CaseModel,
        instance: &Instance,
        log: Log,
        of: &ConnectionOutcome,
    ) -> Recording {
        let begin = of.marks[Mark::Start as usize];
        let end = of.marks[Mark::FirstResponse as usize];
        let since = |time: u64| time.saturating_sub(begin);
        let within = |time: u64| (begin..=end).contains(&time);
        let placed = placed(model, instance, &log);
        let mut messages = Vec::new();
        // Of each message of the scenario, where it is in the list.
        let mut index = vec![None; instance.sizes.len()];
        let names = model.programs.detail.as_ref().map_or(&[][..], |detail| &detail.messages);
        for (at, numbers) in &log.writes {
            for number in numbers.clone().filter(|_| within(*at)) {
                let Some((label, role)) = names.get(number) else { continue };
                index[number] = Some(messages.len());
                let (label, bytes) = (label.clone(), instance.sizes[number]);
                messages.push(Sent { role: *role, label, bytes, at_ns: since(*at) });
            }
        }
        let carried = |mut packet: PacketEvent| {
            let role = sender(&packet);
            let own = placed.iter().filter(|one| one.role == role && one.is_in(&packet));
            let known = own.filter_map(|one| index[one.number]);
            let messages = known.fold(None, |range: Option<Range<usize>>, at| match range {
                None => Some(at..at + 1),
                Some(range) => Some(range.start.min(at)..range.end.max(at + 1)),
            });
            packet.time_ns = since(packet.time_ns);
            packet.arrives_ns = packet.arrives_ns.map(since);
            Carried { role, packet, messages: messages.unwrap_or(0..0) }
        };
        let mut activities: Vec<Activity> = log.activities;
        activities.retain(|one| one.until_ns > begin && one.from_ns < end);
        activities.sort_by_key(|one| one.from_ns);
        for one in &mut activities {
            (one.from_ns, one.until_ns) = (since(one.from_ns), since(one.until_ns.min(end)));
        }
        let passed = |mark: &Mark| {
            let at = of.marks[*mark as usize];
            *mark != Mark::SampleRead && within(at) && (at > begin || *mark == Mark::Start)
        };
        let marks = Mark::ALL.into_iter().filter(passed);
        Recording {
            total_ns: end - begin,
            marks: marks.map(|mark| (mark, since(of.marks[mark as usize]))).collect(),
            activities,
            messages,
            packets: log.packets.into_iter().filter(|of| within(of.time_ns)).map(carried).collect(),
            timers: log
                .timers
                .into_iter()
                .filter(|of| within(of.at_ns))
                .map(|of| Expiry { at_ns: since(of.at_ns), ..of })
                .collect(),
        }
    }
}

fn sender(packet: &PacketEvent) -> Role {
    match packet.heading {
        Heading::Up => Role::Client,
        Heading::Down => Role::Server,
    }
}

/// Where in their streams the messages are that were written: a stream has them in their order.
fn placed(model: &CaseModel, instance: &Instance, log: &Log) -> Vec<Placed> {
    let mut ends: Vec<[u32; 2]> = vec![[1; 2]; instance.channels.len()];
    let mut placed = Vec::new();
    for number in log.writes.iter().flat_map(|(_, numbers)| numbers.clone()) {
        let channel = model.programs.channel_of[number];
        let names = model.programs.detail.as_ref().map(|detail| &detail.messages);
        let Some((_, role)) = names.and_then(|names| names.get(number)) else { continue };
        let end = &mut ends[channel as usize][*role as usize];
        let stream = *end..*end + instance.sizes[number];
        *end = stream.end;
        placed.push(Placed { number, channel, role: *role, stream });
    }
    placed
}

impl Placed {
    /// Whether a packet of the message's sender has a part of it.
    fn is_in(&self, packet: &PacketEvent) -> bool {
        if packet.channel != self.channel {
            return false;
        }
        if packet.flags == "UDP" {
            return packet.seq as usize == self.number;
        }
        let (start, end) = (packet.seq, packet.seq + packet.len);
        end > start && start < self.stream.end && end > self.stream.start
    }
}
