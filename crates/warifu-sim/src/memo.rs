// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Trials whose outcome is known without running them.
//!
//! Where nothing but losses, lengths and the phase of the ticks depends on chance, all trials
//! in which no packet is lost and the lengths are the same go the same way, unless a timer or
//! a comparison of jiffies decides something, which [`crate::clock::Clock::doubt`] notices. So
//! such a trial is run once; a later one whose first loss would come after its last packet has
//! that outcome to the nanosecond. With few losses that is most trials.

use std::collections::HashMap;

use crate::outcome::ConnectionOutcome;

/// So many different lengths are remembered; beyond, trials are run.
const MOST: usize = 1_024;

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
    /// By lengths of the messages; `None` where the phase matters.
    known: HashMap<Box<[u32]>, Option<Lossless>>,
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
    pub(crate) fn get(&self, sizes: &[u32]) -> Option<&Lossless> {
        self.known.get(sizes)?.as_ref()
    }

    /// Whether a trial without loss would be something new.
    pub(crate) fn wants(&self, sizes: &[u32]) -> bool {
        self.known.len() < MOST && !self.known.contains_key(sizes)
    }

    /// Remembers a trial without loss.
    pub(crate) fn put(&mut self, sizes: &[u32], lossless: Option<Lossless>) {
        self.known.insert(sizes.into(), lossless);
    }
}
