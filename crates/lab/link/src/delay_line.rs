// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets under way, taken out in order of the instant at which they are due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use warifu_model::Nanos;

/// A priority queue that is a ring buffer as long as packets come in order, which is nearly always.
///
/// Packets due at the same instant leave in the order in which they came.
#[derive(Debug)]
pub struct DelayLine<T> {
    ring: VecDeque<Entry<T>>,
    /// Those that were due before the ring's last: reordered by jitter.
    heap: BinaryHeap<Reverse<Entry<T>>>,
    sequence: u64,
}

#[derive(Debug)]
struct Entry<T> {
    due: Nanos,
    sequence: u64,
    item: T,
}

impl<T> DelayLine<T> {
    /// An empty line with room for `capacity` packets in order.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> DelayLine<T> {
        DelayLine {
            ring: VecDeque::with_capacity(capacity),
            heap: BinaryHeap::with_capacity(capacity),
            sequence: 0,
        }
    }

    /// Packets under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ring.len() + self.heap.len()
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty() && self.heap.is_empty()
    }

    /// Adds a packet.
    pub fn push(&mut self, due: Nanos, item: T) {
        let entry = Entry { due, sequence: self.sequence, item };
        self.sequence += 1;
        if self.ring.back().is_none_or(|last| last.due <= due) {
            self.ring.push_back(entry);
        } else {
            self.heap.push(Reverse(entry));
        }
    }

    /// When the next packet is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Nanos> {
        match (self.ring.front(), self.heap.peek()) {
            (Some(ring), Some(Reverse(heap))) => Some(ring.due.min(heap.due)),
            (Some(ring), None) => Some(ring.due),
            (None, Some(Reverse(heap))) => Some(heap.due),
            (None, None) => None,
        }
    }

    /// Takes out the next packet if it is due at `now`.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        self.next_due().filter(|&due| due <= now)?;
        self.pop()
    }

    /// Takes out the next packet, due or not.
    pub fn pop(&mut self) -> Option<(Nanos, T)> {
        let from_heap = match (self.ring.front(), self.heap.peek()) {
            (Some(ring), Some(Reverse(heap))) => heap < ring,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let entry = if from_heap {
            self.heap.pop().map(|Reverse(entry)| entry)
        } else {
            self.ring.pop_front()
        }?;
        Some((entry.due, entry.item))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.sequence).cmp(&(other.due, other.sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_matches_a_stably_sorted_list(
            steps in prop::collection::vec(prop::option::of(0..20_u64), 0..200),
        ) {
            let mut line = DelayLine::with_capacity(4);
            // The model: a list sorted by (due, number).
            let mut model: Vec<(Nanos, usize)> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                if let Some(due) = step {
                    line.push(Nanos(due), number);
                    model.push((Nanos(due), number));
                    model.sort();
                } else {
                    let now = Nanos(10);
                    let expected = model.first().copied().filter(|&(due, _)| due <= now);
                    if expected.is_some() {
                        model.remove(0);
                    }
                    prop_assert_eq!(line.pop_due(now), expected);
                }
                prop_assert_eq!(line.len(), model.len());
                prop_assert_eq!(line.is_empty(), model.is_empty());
                prop_assert_eq!(line.next_due(), model.first().map(|&(due, _)| due));
            }
            while let Some(popped) = line.pop() {
                prop_assert_eq!(popped, model.remove(0));
            }
            prop_assert!(model.is_empty());
        }
    }
}
