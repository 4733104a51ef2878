// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What happens next: every event that can be waiting has a place of its own, with at most one
//! time.
//!
//! A connection needs few times at once (two timers at each end of a channel, and one for each
//! program), so setting and clearing a time is a store, and finding the next is a look over few
//! words.

use crate::route::{End, Heading};
use crate::time::Time;

/// What an end of a channel waits for; each end has one timer of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// To send again what no answer came to, or to ask for one.
    Retransmit,
    /// To acknowledge what came, which nothing sent meanwhile did.
    DelayedAck,
}

impl Timer {
    /// All, in the order of [`Timers`].
    pub(crate) const ALL: [Timer; 2] = [Timer::Retransmit, Timer::DelayedAck];
}

/// When the timers of an end of a channel expire; [`Time::NONE`] for one that is not running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timers {
    pub retransmit: Time,
    pub delayed_ack: Time,
}

/// Something that happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first packet of a direction arrives.
    Arrival(Heading),
    /// The key store's call ends.
    KeyStoreFree,
    /// A timer of a channel's end expires.
    Timer { instance: u32, channel: u32, end: End, timer: Timer },
    /// A program goes on.
    Program { instance: u32, party: u32 },
}

/// The places of one instance's events, the same for every instance of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    places: Vec<Place>,
    /// Of each channel and end, the first place of its timers.
    timers: Vec<[u32; 2]>,
    /// Of each party, the place of its program.
    programs: Vec<u32>,
}

/// Whose place it is.
#[derive(Clone, Copy, Debug)]
enum Place {
    Timer { channel: u32, end: End, timer: Timer },
    Program { party: u32 },
}

/// The times of all events but the arrivals, which each direction of the link keeps.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    key_store: Time,
    /// The times of each instance's places, in so many rows.
    times: Vec<Time>,
    rows: usize,
    /// Of more than one instance, a tree of least times: the first is of all, those of the nodes
    /// 2n + 1 and 2n + 2 are below that of node n, and the last are of single instances.
    least: Vec<Time>,
    /// The node of the first instance.
    leaves: usize,
}

/// Places are looked over a row at a time; most instances have one.
const ROW: usize = 8;

impl Layout {
    /// The places for channels between these parties, by number, and for all parties. Of events at
    /// the same time those of a lower party come first, and a party's timers before its program.
    pub(crate) fn new(channels: &[[u32; 2]], parties: u32) -> Layout {
        let mut layout = Layout { timers: vec![[0; 2]; channels.len()], ..Layout::default() };
        for party in 0..parties {
            for (channel, ends) in channels.iter().enumerate() {
                for end in End::BOTH.into_iter().filter(|&end| ends[end as usize] == party) {
                    layout.timers[channel][end as usize] = layout.places.len() as u32;
                    let channel = channel as u32;
                    let places = Timer::ALL.map(|timer| Place::Timer { channel, end, timer });
                    layout.places.extend(places);
                }
            }
            layout.programs.push(layout.places.len() as u32);
            layout.places.push(Place::Program { party });
        }
        layout
    }
}

impl EventQueue {
    /// Clears all times, for so many instances.
    pub(crate) fn reset(&mut self, layout: &Layout, instances: usize) {
        self.key_store = Time::NONE;
        self.rows = layout.rows();
        self.times.clear();
        self.times.resize(instances * self.rows * ROW, Time::NONE);
        self.least.clear();
        self.leaves = instances.next_power_of_two() - 1;
        if instances > 1 {
            self.least.resize(self.leaves + instances.next_power_of_two(), Time::NONE);
        }
    }

    pub(crate) fn set_key_store(&mut self, time: Option<u64>) {
        self.key_store = Time::of(time);
    }

    /// Sets the timers of a channel's end, by the first of their places.
    #[inline]
    pub(crate) fn set_timers(&mut self, place: usize, timers: Timers) {
        let Timers { retransmit, delayed_ack } = timers;
        self.times[place..place + Timer::ALL.len()].copy_from_slice(&[retransmit, delayed_ack]);
        self.note_least(place);
    }

    /// Sets when a program goes on, by its place.
    #[inline]
    pub(crate) fn set_program(&mut self, place: usize, time: Option<u64>) {
        self.times[place] = Time::of(time);
        self.note_least(place);
    }

    #[inline]
    fn note_least(&mut self, place: usize) {
        if !self.least.is_empty() {
            self.note_least_of(place / (self.rows * ROW));
        }
    }

    fn note_least_of(&mut self, instance: usize) {
        let places = &self.times[instance * self.rows * ROW..][..self.rows * ROW];
        let mut node = self.leaves + instance;
        self.least[node] = places.iter().copied().fold(Time::NONE, Time::min);
        while node > 0 {
            node = (node - 1) / 2;
            let least = self.least[2 * node + 1].min(self.least[2 * node + 2]);
            if self.least[node] == least {
                break;
            }
            self.least[node] = least;
        }
    }

    /// The lowest instance that has the least time of all.
    fn earliest_instance(&self) -> usize {
        let mut node = 0;
        while node < self.leaves {
            let left = 2 * node + 1;
            node = if self.least[left] == self.least[node] { left } else { left + 1 };
        }
        node - self.leaves
    }

    /// The earliest event and its time, given when the next packet of each direction arrives. Of
    /// equal times arrivals come first, then the key store, then the lowest instance and place.
    #[inline]
    pub(crate) fn next(&self, layout: &Layout, [up, down]: [Time; 2]) -> Option<(u64, Event)> {
        let arrival = up.min(down);
        let shared = arrival.min(self.key_store);
        let least = match self.least.first() {
            None => least_of(&self.times),
            Some(&least) => least,
        };
        if least < shared {
            let instance = if self.least.is_empty() { 0 } else { self.earliest_instance() };
            let places = &self.times[instance * self.rows * ROW..];
            let place = places.iter().position(|&at| at == least)?;
            return Some((least.ns(), layout.event(instance as u32, place)));
        }
        let event = match shared {
            Time::NONE => return None,
            _ if arrival > shared => Event::KeyStoreFree,
            _ if up == arrival => Event::Arrival(Heading::Up),
            _ => Event::Arrival(Heading::Down),
        };
        Some((shared.ns(), event))
    }
}

/// The least of some rows of times.
#[inline]
fn least_of(times: &[Time]) -> Time {
    let (rows, _) = times.as_chunks::<ROW>();
    let mut least = Time::NONE;
    for row in rows {
        // A tree instead of a chain.
        let [a, b, c, d, e, f, g, h] = *row;
        least = least.min(a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h))));
    }
    least
}

impl Layout {
    /// How many rows the places of an instance take.
    fn rows(&self) -> usize {
        self.places.len().div_ceil(ROW)
    }

    /// Of each channel and end of an instance, the first place of its timers.
    pub(crate) fn timers(&self, instance: u32) -> impl Iterator<Item = [u32; 2]> {
        let begin = instance * (self.rows() * ROW) as u32;
        self.timers.iter().map(move |places| places.map(|place| begin + place))
    }

    /// Of each party of an instance, the place of its program.
    pub(crate) fn programs(&self, instance: u32) -> impl Iterator<Item = u32> {
        let begin = instance * (self.rows() * ROW) as u32;
        self.programs.iter().map(move |place| begin + place)
    }

    #[inline]
    fn event(&self, instance: u32, place: usize) -> Event {
        match self.places[place] {
            Place::Timer { channel, end, timer } => Event::Timer { instance, channel, end, timer },
            Place::Program { party } => Event::Program { instance, party },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn timers(retransmit: Option<u64>, delayed_ack: u64) -> Timers {
        Timers { retransmit: Time::of(retransmit), delayed_ack: Time::at(delayed_ack) }
    }

    proptest! {
        #[test]
        fn next_is_the_earliest(
            before in 0_usize..40,
            times in prop::collection::vec(prop::array::uniform6(0_u64..50), 1..40),
            shared in prop::array::uniform3(0_u64..50),
        ) {
            let layout = Layout::new(&[[0, 1]], 2);
            let mut queue = EventQueue::default();
            // What another number of instances left behind does not matter.
            queue.reset(&layout, before);
            for instance in 0..before as u32 {
                queue.set_program(layout.programs(instance).next().unwrap() as usize, Some(1));
            }
            queue.reset(&layout, times.len());
            for (instance, at) in times.iter().enumerate() {
                let instance = instance as u32;
                let [opener, acceptor] = layout.timers(instance).next().unwrap();
                let programs: Vec<u32> = layout.programs(instance).collect();
                queue.set_timers(opener as usize, timers(Some(at[0]), at[1]));
                queue.set_program(programs[0] as usize, Some(at[2]));
                queue.set_timers(acceptor as usize, timers(Some(at[3]), at[4]));
                queue.set_program(programs[1] as usize, Some(at[5]));
            }
            let arrivals = [Time::at(shared[0]), Time::at(shared[1])];
            queue.set_key_store(Some(shared[2]));
            let earliest = times.iter().flatten().chain(&shared).min().copied();
            let (time, event) = queue.next(&layout, arrivals).unwrap();
            prop_assert_eq!(Some(time), earliest);
            prop_assert_eq!(time, match event {
                Event::Arrival(heading) => shared[heading as usize],
                Event::KeyStoreFree => shared[2],
                Event::Timer { instance, end, timer, .. } => {
                    times[instance as usize][end as usize * 3 + timer as usize]
                }
                Event::Program { instance, party } => {
                    times[instance as usize][party as usize * 3 + 2]
                }
            });
        }
    }

    proptest! {
        /// Instances of several rows, with times that are set again and cleared.
        #[test]
        fn next_among_many_channels(
            ends in prop::collection::vec((0_u32..4, 0_u32..4), 1..6),
            instances in 1_usize..4,
            sets in prop::collection::vec(
                (any::<prop::sample::Index>(), prop::option::of(0_u64..50), 0_u64..50),
                1..60,
            ),
        ) {
            let channels: Vec<[u32; 2]> =
                ends.iter().map(|&(a, b)| [a, if a == b { (a + 1) % 4 } else { b }]).collect();
            let layout = Layout::new(&channels, 4);
            let mut queue = EventQueue::default();
            queue.reset(&layout, instances);
            let per_instance = layout.rows() * ROW;
            let mut model = vec![None; instances * per_instance];
            for (index, time, other) in sets {
                let instance = index.index(instances) as u32;
                let ends: Vec<[u32; 2]> = layout.timers(instance).collect();
                let programs: Vec<u32> = layout.programs(instance).collect();
                let place = index.index(2 * ends.len() + programs.len());
                if let Some(&program) = programs.get(place) {
                    queue.set_program(program as usize, time);
                    model[program as usize] = time;
                } else {
                    let place = place - programs.len();
                    let first = ends[place / 2][place % 2] as usize;
                    queue.set_timers(first, timers(time, other));
                    model[first] = time;
                    model[first + 1] = Some(other);
                }
            }
            let places = model.iter().enumerate();
            let times = places.filter_map(|(place, time)| Some(((*time)?, place)));
            // Of equal times the lowest instance and place.
            let expected = times.min().map(|(time, place)| {
                (time, layout.event((place / per_instance) as u32, place % per_instance))
            });
            prop_assert_eq!(queue.next(&layout, [Time::NONE; 2]), expected);
        }
    }

    #[test]
    fn nothing_waits_after_reset() {
        let layout = Layout::new(&[[0, 1]], 2);
        let mut queue = EventQueue::default();
        queue.reset(&layout, 1);
        queue.set_program(layout.programs(0).next().unwrap() as usize, Some(5));
        queue.reset(&layout, 1);
        assert_eq!(queue.next(&layout, [Time::NONE; 2]), None);
    }
}
