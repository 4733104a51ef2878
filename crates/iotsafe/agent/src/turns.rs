// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Turns at a card in the order of arrival, which a mutex alone does not promise, each waited for
//! until a deadline.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One card's turns.
#[derive(Debug, Default)]
pub struct Turns {
    queue: Mutex<Queue>,
    called: Condvar,
}

/// Who waits; the first has the turn.
#[derive(Debug, Default)]
struct Queue {
    next: u64,
    waiting: VecDeque<u64>,
}

/// It is the holder's turn until this is dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    turns: &'a Turns,
    ticket: u64,
}

impl Turns {
    /// Waits for a turn; None when it did not come in time.
    #[must_use]
    pub fn take(&self, within: Duration) -> Option<Turn<'_>> {
        // Far enough to be never, and no overflow.
        let end = Instant::now() + within.min(Duration::from_secs(86_400));
        let mut queue = self.lock();
        let ticket = queue.next;
        queue.next += 1;
        queue.waiting.push_back(ticket);
        while queue.waiting.front() != Some(&ticket) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                queue.waiting.retain(|waiting| *waiting != ticket);
                return None;
            }
            let woken = self.called.wait_timeout(queue, left);
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(Turn { turns: self, ticket })
    }

    /// A turn if nobody has one or waits for one.
    #[must_use]
    pub fn take_if_idle(&self) -> Option<Turn<'_>> {
        let mut queue = self.lock();
        if !queue.waiting.is_empty() {
            return None;
        }
        let ticket = queue.next;
        queue.next += 1;
        queue.waiting.push_back(ticket);
        Some(Turn { turns: self, ticket })
    }

    /// How many have a turn or wait for one.
    #[must_use]
    pub fn length(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queue = self.turns.lock();
        queue.waiting.retain(|waiting| *waiting != self.ticket);
        let others = !queue.waiting.is_empty();
        drop(queue);
        if others {
            self.turns.called.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};
    use std::thread;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn turns_come_in_the_order_of_arrival() {
        let turns = Arc::new(Turns::default());
        let (sender, receiver) = mpsc::channel();
        let first = turns.take(LONG).unwrap();
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let (own, sender) = (Arc::clone(&turns), sender.clone());
                let thread = thread::spawn(move || {
                    let _turn = own.take(LONG).unwrap();
                    sender.send(number).unwrap();
                });
                while turns.length() < number + 2 {
                    thread::yield_now();
                }
                thread
            })
            .collect();
        assert!(turns.take_if_idle().is_none());
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn who_gives_up_leaves_the_queue() {
        let turns = Turns::default();
        let first = turns.take(LONG).unwrap();
        assert!(turns.take(Duration::from_millis(1)).is_none());
        assert_eq!(turns.length(), 1);
        drop(first);
        assert!(turns.take_if_idle().is_some());
    }
}
