// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Trials whose outcome is known without running them.
//!
//! Where nothing but losses, lengths and the phase of the ticks depends on chance, all trials
//! in which no packet is lost and the lengths are the same go the same way, unless a timer or
//! a comparison of jiffies decides something, which [`crate::clock::Clock::doubt`] notices. So
//! such a trial is run once; a later one whose first loss would come after its last packet has
//! that outcome to the nanosecond. With few losses that is most trials.
//!
//! Where costs are drawn as well, or the link's interfaces, such trials go one of a few ways, each
//! of which is a [`Tape`] that a later one may be played from.

use crate::outcome::ConnectionOutcome;
use crate::random::mix;
use crate::tape::{Tape, Ways};

/// Places for different lengths, a power of two; two that fall on one place take turns.
const PLACES: usize = 1_024;

/// A trial without loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lossless {
    pub outcome: ConnectionOutcome,
    /// Packets that were put on each direction of the link until it ended.
    pub packets: [u64; 2],
}

/// What is known of one model.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    /// The model's number.
    model: u64,
    /// By lengths of the messages; no trial where the phase matters.
    known: Vec<Option<(u64, Option<Lossless>)>>,
}

impl Memo {
    /// Forgets what is known of another model.
    pub(crate) fn turn_to(&mut self, model: u64) {
        if self.model != model {
            self.model = model;
            self.known.clear();
        }
    }

    /// The trial without loss with these lengths, if it is known.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<&Lossless> {
        match self.known.get(place(key))? {
            Some((of, lossless)) if *of == key => lossless.as_ref(),
            _ => None,
        }
    }

    /// Remembers a trial without loss; `None` if there is no telling what another one would be.
    pub(crate) fn put(&mut self, key: u64, lossless: Option<Lossless>) {
        if self.known.is_empty() {
            self.known.resize(PLACES, None);
        }
        self.known[place(key)] = Some((key, lossless));
    }
}

/// Trials in a row that came to no tape, or were not on those that are known, after which no more
/// are tried: their costs are too uncertain, or close to a tick of a clock. To record one takes
/// twice as long as to run it, and where tapes are of use some ten lengths of messages come again
/// sooner than that.
const MOST_IN_VAIN: u32 = 50;

/// Memory for all tapes of a model, about, B. A trial that goes another way then is left to the
/// event engine.
const MOST_BYTES: usize = 64 << 20;

/// The tapes of one model.
#[derive(Debug, Default)]
pub(crate) struct Tapes {
    /// The model's number.
    model: u64,
    /// By lengths of the messages.
    known: Vec<(u64, Ways)>,
    /// Packets of each direction that a trial is known to take at least.
    packets: [u64; 2],
    in_vain: u32,
    /// What all of them take.
    bytes: usize,
}

impl Tapes {
    /// Forgets those of another model.
    pub(crate) fn turn_to(&mut self, model: u64) {
        if self.model != model {
            *self = Tapes { model, known: std::mem::take(&mut self.known), ..Tapes::default() };
            self.known.clear();
        }
    }

    /// The tapes of trials with these lengths.
    #[inline]
    pub(crate) fn of(&self, key: u64) -> Option<&Ways> {
        let (of, ways) = self.known.get(place(key))?;
        (*of == key).then_some(ways)
    }

    /// One more trial came to nothing, or one went by a tape.
    pub(crate) fn count(&mut self, played: bool) {
        self.in_vain = if played { 0 } else { self.in_vain.saturating_add(1) };
    }

    /// Whether tapes are still worth a try.
    pub(crate) fn are_of_use(&self) -> bool {
        self.in_vain < MOST_IN_VAIN
    }

    /// Whether another way to go with these lengths may be remembered.
    pub(crate) fn have_room(&self, key: u64) -> bool {
        self.bytes < MOST_BYTES && self.of(key).is_none_or(Ways::have_room)
    }

    /// Packets of each direction that a trial is known to take at least.
    pub(crate) fn packets(&self) -> [u64; 2] {
        self.packets
    }

    /// Remembers a way to go, for which [`Tapes::have_room`].
    pub(crate) fn put(&mut self, key: u64, tape: Tape) {
        let first = self.known.is_empty();
        for (least, packets) in self.packets.iter_mut().zip(tape.end.packets) {
            *least = if first { packets } else { packets.min(*least) };
        }
        if first {
            self.known.resize_with(PLACES, Default::default);
        }
        let (of, ways) = &mut self.known[place(key)];
        self.bytes -= ways.bytes();
        if *of != key {
            (*of, *ways) = (key, Ways::default());
        }
        ways.add(tape);
        self.bytes += ways.bytes();
    }
}

fn place(key: u64) -> usize {
    mix(key) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Heading;
    use crate::tape::{Act, Recorder};

    #[test]
    fn tapes_of_all_lengths_together_are_bounded() {
        let mut recorder = Recorder::new();
        for bytes in 0..60_000 {
            recorder.push(Act::Send { heading: Heading::Up, bytes });
        }
        let tape = recorder.finish(ConnectionOutcome::default()).unwrap();
        let mut tapes = Tapes::default();
        tapes.turn_to(1);
        let kept = (0..1_000).take_while(|&key| {
            let has_room = tapes.have_room(key);
            if has_room {
                tapes.put(key, tape.clone());
            }
            has_room
        });
        let kept = kept.count();
        assert!((10..100).contains(&kept), "{kept}");
        let known: usize = tapes.known.iter().map(|(_, ways)| ways.bytes()).sum();
        assert_eq!(tapes.bytes, known);
        assert!((MOST_BYTES..MOST_BYTES + (4 << 20)).contains(&known), "{known}");
        // Those of another model take their place.
        tapes.turn_to(2);
        assert!(tapes.have_room(0) && tapes.bytes == 0);
    }
}
