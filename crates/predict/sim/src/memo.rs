// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Trials whose outcome is known without running them.
//!
//! Where nothing but losses, lengths and the phase of the ticks depends on chance, all trials
//! in which no packet is lost and the lengths are the same go the same way, unless a timer or
//! a comparison of jiffies decides something, which [`crate::clock::Clock::doubt`] notices. So
//! such a trial is run once; a later one whose first loss would come after its last packet has
//! that outcome to the nanosecond. With few losses that is most trials.

use crate::outcome::ConnectionOutcome;
use crate::random::mix;

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

fn place(key: u64) -> usize {
    mix(key) as usize % PLACES
}
