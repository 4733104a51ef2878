// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What happens next: a fixed number of slots, each with at most one time.
//!
//! A connection needs few times at once (two timers and one program at each end), so setting and
//! clearing a time is a store, and finding the next is a look over few words.

/// Slots of one connection: for each end the timer for sending, that for acknowledging, and the
/// program.
pub(crate) const SLOTS: usize = 6;
/// Slots that all share: the two directions of the link, and the key store.
pub(crate) const SHARED: usize = 3;
/// Not set.
pub(crate) const NEVER: u64 = u64::MAX;

/// The times of all slots.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    shared: [u64; SHARED],
    connections: Vec<[u64; SLOTS]>,
    /// The least time of each connection, kept only for more than one.
    least: Vec<u64>,
}

/// The slot that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Shared(usize),
    Connection(usize, usize),
    Nothing,
}

impl Agenda {
    /// Clears all slots, for so many connections.
    pub(crate) fn reset(&mut self, connections: usize) {
        self.shared = [NEVER; SHARED];
        self.connections.clear();
        self.connections.resize(connections, [NEVER; SLOTS]);
        self.least.clear();
        self.least.resize(connections, NEVER);
    }

    #[inline]
    pub(crate) fn set_shared(&mut self, slot: usize, time: u64) {
        self.shared[slot] = time;
    }

    #[inline]
    pub(crate) fn set(&mut self, connection: usize, slot: usize, time: u64) {
        let slots = &mut self.connections[connection];
        slots[slot] = time;
        if self.least.len() > 1 {
            self.least[connection] = slots.iter().copied().fold(NEVER, u64::min);
        }
    }

    /// The earliest time and its slot; of equal times the shared slots come first, then the
    /// lowest connection and slot.
    #[inline]
    pub(crate) fn next(&self) -> (u64, Next) {
        let (mut time, mut next) = (NEVER, Next::Nothing);
        for (slot, &at) in self.shared.iter().enumerate() {
            if at < time {
                (time, next) = (at, Next::Shared(slot));
            }
        }
        let connection = match self.least.as_slice() {
            [_] => 0,
            many => {
                let (mut best, mut index) = (NEVER, usize::MAX);
                for (connection, &at) in many.iter().enumerate() {
                    if at < best {
                        (best, index) = (at, connection);
                    }
                }
                if best >= time {
                    return (time, next);
                }
                index
            }
        };
        for (slot, &at) in self.connections[connection].iter().enumerate() {
            if at < time {
                (time, next) = (at, Next::Connection(connection, slot));
            }
        }
        (time, next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_next_is_the_earliest(
            times in prop::collection::vec(prop::array::uniform6(0_u64..50), 1..6),
            shared in prop::array::uniform3(0_u64..50),
        ) {
            let mut agenda = Agenda::default();
            agenda.reset(times.len());
            for (connection, slots) in times.iter().enumerate() {
                for (slot, &time) in slots.iter().enumerate() {
                    agenda.set(connection, slot, time);
                }
            }
            for (slot, &time) in shared.iter().enumerate() {
                agenda.set_shared(slot, time);
            }
            let earliest = times.iter().flatten().chain(&shared).min().copied();
            let (time, next) = agenda.next();
            prop_assert_eq!(Some(time), earliest);
            prop_assert_eq!(time, match next {
                Next::Shared(slot) => shared[slot],
                Next::Connection(connection, slot) => times[connection][slot],
                Next::Nothing => NEVER,
            });
        }
    }
}
