// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What happens next: every event that can be waiting has a place of its own, with at most one
//! time.
//!
//! A connection needs few times at once (two timers at each end of a channel, and one for each
//! program), so setting and clearing a time is a store, and finding the next is a look over few
//! words.

use crate::carrier::TIMERS;
use crate::link::Heading;

/// Something that happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first packet of a direction arrives.
    Arrival(Heading),
    /// The key store's call ends.
    KeyStoreFree,
    /// A timer of a channel's end expires.
    Timer { instance: u32, channel: u32, end: u8, timer: u8 },
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
    Timer { channel: u32, end: u8, timer: u8 },
    Program { party: u32 },
}

/// The times of all events.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    arrivals: [Time; 2],
    key_store: Time,
    /// Of each instance, the times of its places, in so many rows.
    times: Vec<[Time; ROW]>,
    rows: usize,
    /// The least time of each instance, kept only for more than one.
    least: Vec<Time>,
}

/// Places are looked over a row at a time; most instances have one.
const ROW: usize = 8;

/// When an event happens, ns. One that is not waiting is later than all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Time(u64);

impl Time {
    const NONE: Time = Time(u64::MAX);

    #[inline]
    fn of(time: Option<u64>) -> Time {
        time.map_or(Time::NONE, Time)
    }
}

impl Default for Time {
    fn default() -> Time {
        Time::NONE
    }
}

impl Layout {
    /// The places for channels between these parties, by number, and for all parties. Of events at
    /// the same time those of a lower party come first, and a party's timers before its program.
    pub(crate) fn new(channels: &[[u32; 2]], parties: u32) -> Layout {
        let mut layout = Layout { timers: vec![[0; 2]; channels.len()], ..Layout::default() };
        for party in 0..parties {
            for (channel, ends) in channels.iter().enumerate() {
                for (end, _) in ends.iter().enumerate().filter(|(_, of)| **of == party) {
                    layout.timers[channel][end] = layout.places.len() as u32;
                    for timer in 0..TIMERS {
                        layout.places.push(Place::Timer {
                            channel: channel as u32,
                            end: end as u8,
                            timer: timer as u8,
                        });
                    }
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
        self.arrivals = [Time::NONE; 2];
        self.key_store = Time::NONE;
        self.rows = layout.places.len().div_ceil(ROW);
        self.times.clear();
        self.times.resize(instances * self.rows, [Time::NONE; ROW]);
        self.least.clear();
        self.least.resize(instances, Time::NONE);
    }

    #[inline]
    pub(crate) fn set_arrival(&mut self, heading: Heading, time: Option<u64>) {
        self.arrivals[heading as usize] = Time::of(time);
    }

    pub(crate) fn set_key_store(&mut self, time: Option<u64>) {
        self.key_store = Time::of(time);
    }

    /// Sets the timers of a channel's end, by the first of their places.
    #[inline]
    pub(crate) fn set_timers(
        &mut self,
        instance: usize,
        place: usize,
        times: [Option<u64>; TIMERS],
    ) {
        for (index, time) in times.into_iter().enumerate() {
            self.set(instance, place + index, time);
        }
        self.note_least(instance);
    }

    #[inline]
    fn set(&mut self, instance: usize, place: usize, time: Option<u64>) {
        self.times[instance * self.rows + place / ROW][place % ROW] = Time::of(time);
    }

    /// Sets when a program goes on.
    #[inline]
    pub(crate) fn set_program(
        &mut self,
        layout: &Layout,
        instance: usize,
        party: usize,
        time: Option<u64>,
    ) {
        self.set(instance, layout.programs[party] as usize, time);
        self.note_least(instance);
    }

    #[inline]
    fn note_least(&mut self, instance: usize) {
        if self.least.len() > 1 {
            let rows = &self.times[instance * self.rows..(instance + 1) * self.rows];
            self.least[instance] = rows.iter().flatten().copied().fold(Time::NONE, Time::min);
        }
    }

    /// The earliest event and its time. Of equal times arrivals come first, then the key store,
    /// then the lowest instance and place.
    #[inline]
    pub(crate) fn next(&self, layout: &Layout) -> Option<(u64, Event)> {
        let (mut time, mut next) = (Time::NONE, None);
        for (at, event) in [
            (self.arrivals[Heading::Up as usize], Event::Arrival(Heading::Up)),
            (self.arrivals[Heading::Down as usize], Event::Arrival(Heading::Down)),
            (self.key_store, Event::KeyStoreFree),
        ] {
            if at < time {
                (time, next) = (at, Some(event));
            }
        }
        let instance = match self.least.as_slice() {
            [_] => 0,
            many => {
                let (mut best, mut index) = (Time::NONE, 0);
                for (instance, &at) in many.iter().enumerate() {
                    if at < best {
                        (best, index) = (at, instance);
                    }
                }
                if best >= time {
                    return next.map(|event| (time.0, event));
                }
                index
            }
        };
        let begin = instance * self.rows;
        let mut found = None;
        for (row, places) in self.times[begin..begin + self.rows].iter().enumerate() {
            for (place, &at) in places.iter().enumerate() {
                if at < time {
                    (time, found) = (at, Some(row * ROW + place));
                }
            }
        }
        match found {
            Some(place) => Some((time.0, layout.event(instance as u32, place))),
            None => next.map(|event| (time.0, event)),
        }
    }
}

impl Layout {
    /// Of each channel and end, the first place of its timers.
    pub(crate) fn timers(&self) -> &[[u32; 2]] {
        &self.timers
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

    proptest! {
        #[test]
        fn next_is_the_earliest(
            times in prop::collection::vec(prop::array::uniform6(0_u64..50), 1..6),
            shared in prop::array::uniform3(0_u64..50),
        ) {
            let layout = Layout::new(&[[0, 1]], 2);
            let mut queue = EventQueue::default();
            queue.reset(&layout, times.len());
            for (instance, at) in times.iter().enumerate() {
                let [opener, acceptor] = layout.timers()[0].map(|place| place as usize);
                queue.set_timers(instance, opener, [Some(at[0]), Some(at[1])]);
                queue.set_program(&layout, instance, 0, Some(at[2]));
                queue.set_timers(instance, acceptor, [Some(at[3]), Some(at[4])]);
                queue.set_program(&layout, instance, 1, Some(at[5]));
            }
            queue.set_arrival(Heading::Up, Some(shared[0]));
            queue.set_arrival(Heading::Down, Some(shared[1]));
            queue.set_key_store(Some(shared[2]));
            let earliest = times.iter().flatten().chain(&shared).min().copied();
            let (time, event) = queue.next(&layout).unwrap();
            prop_assert_eq!(Some(time), earliest);
            prop_assert_eq!(time, match event {
                Event::Arrival(heading) => shared[heading as usize],
                Event::KeyStoreFree => shared[2],
                Event::Timer { instance, end, timer, .. } => {
                    times[instance as usize][usize::from(end) * 3 + usize::from(timer)]
                }
                Event::Program { instance, party } => {
                    times[instance as usize][party as usize * 3 + 2]
                }
            });
        }
    }

    #[test]
    fn nothing_waits_after_reset() {
        let layout = Layout::new(&[[0, 1]], 2);
        let mut queue = EventQueue::default();
        queue.reset(&layout, 1);
        queue.set_program(&layout, 0, 1, Some(5));
        queue.reset(&layout, 1);
        assert_eq!(queue.next(&layout), None);
    }
}
