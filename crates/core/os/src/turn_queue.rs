// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mutual exclusion in the order of arrival, which a mutex alone does not promise.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lets one thread at a time have its turn, first come, first served.
#[derive(Debug, Default)]
pub struct TurnQueue {
    queue: Mutex<Queue>,
    moved: Condvar,
}

/// Tickets in the order of arrival; the first one has the turn.
#[derive(Debug, Default)]
struct Queue {
    next_ticket: u64,
    tickets: VecDeque<u64>,
}

/// The turn of one thread, until this is dropped.
#[derive(Debug)]
#[must_use = "the turn ends when this is dropped"]
pub struct Turn<'a> {
    queue: &'a TurnQueue,
    ticket: u64,
}

impl TurnQueue {
    /// Waits for a turn.
    pub fn acquire(&self) -> Turn<'_> {
        let (mut queue, turn) = self.enqueue();
        while queue.tickets.front() != Some(&turn.ticket) {
            queue = self.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        turn
    }

    /// Waits for a turn, but no longer than `timeout`; None if it did not come in that time.
    #[must_use]
    pub fn acquire_within(&self, timeout: Duration) -> Option<Turn<'_>> {
        // A timeout that no clock can express is none.
        let Some(deadline) = Instant::now().checked_add(timeout) else {
            return Some(self.acquire());
        };
        let (mut queue, turn) = self.enqueue();
        while queue.tickets.front() != Some(&turn.ticket) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(queue); // dropping the turn leaves the queue
                return None;
            }
            let woken = self.moved.wait_timeout(queue, left);
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(turn)
    }

    /// A turn if nobody has one or waits for one.
    #[must_use]
    pub fn try_acquire(&self) -> Option<Turn<'_>> {
        let (queue, turn) = self.enqueue();
        let first = queue.tickets.front() == Some(&turn.ticket);
        drop(queue);
        first.then_some(turn)
    }

    /// How many threads have a turn or wait for one.
    #[must_use]
    pub fn length(&self) -> usize {
        self.lock().tickets.len()
    }

    /// The locked queue must be dropped before the turn: a turn that ends locks it.
    fn enqueue(&self) -> (MutexGuard<'_, Queue>, Turn<'_>) {
        let mut queue = self.lock();
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        queue.tickets.push_back(ticket);
        (queue, Turn { queue: self, ticket })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queue = self.queue.lock();
        queue.tickets.retain(|ticket| *ticket != self.ticket);
        let others = !queue.tickets.is_empty();
        drop(queue);
        if others {
            self.queue.moved.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};
    use std::thread;

    const LONG: Duration = Duration::from_secs(60);

    /// Four threads that arrive one after the other while `first` has its turn.
    fn order_of_turns(acquire: impl Fn(&TurnQueue) -> Turn<'_> + Copy + Send + 'static) {
        let queue = Arc::new(TurnQueue::default());
        let (sender, receiver) = mpsc::channel();
        let first = queue.acquire();
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let (own, sender) = (Arc::clone(&queue), sender.clone());
                let thread = thread::spawn(move || {
                    let _turn = acquire(&own);
                    sender.send(number).unwrap();
                });
                while queue.length() < number + 2 {
                    thread::yield_now();
                }
                thread
            })
            .collect();
        assert!(queue.try_acquire().is_none());
        assert_eq!(queue.length(), 5, "the attempt is not left in the queue");
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn turns_without_timeout_in_order_of_arrival() {
        order_of_turns(TurnQueue::acquire);
    }

    #[test]
    fn turns_with_timeout_in_order_of_arrival() {
        order_of_turns(|queue| queue.acquire_within(LONG).unwrap());
    }

    #[test]
    fn timeout_leaves_the_queue() {
        let queue = TurnQueue::default();
        let first = queue.acquire();
        assert!(queue.acquire_within(Duration::from_millis(1)).is_none());
        assert_eq!(queue.length(), 1);
        drop(first);
        assert!(queue.try_acquire().is_some());
    }

    #[test]
    fn longest_timeout() {
        let queue = TurnQueue::default();
        assert!(queue.acquire_within(Duration::MAX).is_some());
        assert_eq!(queue.length(), 0);
    }
}
