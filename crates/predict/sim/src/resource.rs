// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Things with a capacity: first come, first served.

use std::collections::VecDeque;

/// Who asks: which instance, and which of its parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claimant {
    pub instance: u32,
    pub party: u32,
}

/// Something that so many can hold at once.
#[derive(Debug)]
pub(crate) struct Resource {
    free: u32,
    queue: VecDeque<Claimant>,
    /// When it was last given back, ns; `None` before.
    pub last_used: Option<u64>,
}

impl Resource {
    pub(crate) fn new() -> Resource {
        Resource { free: 1, queue: VecDeque::new(), last_used: None }
    }

    pub(crate) fn reset(&mut self, capacity: u32) {
        self.free = capacity;
        self.queue.clear();
        self.last_used = None;
    }

    /// Takes it, or queues up.
    pub(crate) fn claim(&mut self, claimant: Claimant) -> bool {
        if self.free == 0 {
            self.queue.push_back(claimant);
            return false;
        }
        self.free -= 1;
        true
    }

    /// Gives it back; the next in the queue holds it then.
    pub(crate) fn release(&mut self, now: u64) -> Option<Claimant> {
        self.last_used = Some(now);
        let next = self.queue.pop_front();
        if next.is_none() {
            self.free += 1;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_come_first_served() {
        let claimant = |instance| Claimant { instance, party: 0 };
        let mut card = Resource::new();
        assert!(card.claim(claimant(0)));
        assert!(!card.claim(claimant(1)));
        assert!(!card.claim(claimant(2)));
        assert_eq!(card.release(5), Some(claimant(1)));
        assert_eq!(card.release(6), Some(claimant(2)));
        assert_eq!(card.release(7), None);
        assert_eq!(card.last_used, Some(7));
        assert!(card.claim(claimant(0)));
    }
}
