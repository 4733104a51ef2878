// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mutual exclusion in a fair order, which a mutex alone does not promise.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lets one thread at a time have its turn: the users who wait take turns in rotation, so that none
/// can keep the others waiting with many requests; the threads of one user in order of arrival.
#[derive(Debug, Default)]
pub struct TurnQueue {
    queue: Mutex<Queue>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    next_ticket: u64,
    /// Who has the turn.
    current: Option<u64>,
    /// Tickets in order of arrival, each with its user.
    waiting: VecDeque<(u64, u32)>,
    /// The users who wait; the first one is next.
    rotation: VecDeque<u32>,
}

/// The turn of one thread, until this is dropped.
#[derive(Debug)]
#[must_use = "the turn ends when this is dropped"]
pub struct Turn<'a> {
    queue: &'a TurnQueue,
    ticket: u64,
}

impl TurnQueue {
    /// Waits for a turn, as user 0.
    pub fn acquire(&self) -> Turn<'_> {
        let (mut queue, turn) = self.enqueue(0);
        while queue.current != Some(turn.ticket) {
            queue = self.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        turn
    }

    /// Waits for a turn, as user 0, but no longer than `timeout`; None if it did not come in that
    /// time.
    #[must_use]
    pub fn acquire_within(&self, timeout: Duration) -> Option<Turn<'_>> {
        self.acquire_for(0, timeout)
    }

    /// The same for a user.
    #[must_use]
    pub fn acquire_for(&self, user: u32, timeout: Duration) -> Option<Turn<'_>> {
        // A timeout that no clock can express is none.
        let deadline = Instant::now().checked_add(timeout);
        let (mut queue, turn) = self.enqueue(user);
        while queue.current != Some(turn.ticket) {
            let left = deadline.map_or(Duration::MAX, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                drop(queue); // dropping the turn leaves the queue
                return None;
            }
            let woken = self.moved.wait_timeout(queue, left);
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(queue);
        Some(turn)
    }

    /// A turn if nobody has one or waits for one.
    #[must_use]
    pub fn try_acquire(&self) -> Option<Turn<'_>> {
        let (queue, turn) = self.enqueue(0);
        let first = queue.current == Some(turn.ticket);
        drop(queue);
        first.then_some(turn)
    }

    /// How many threads have a turn or wait for one.
    #[must_use]
    pub fn length(&self) -> usize {
        let queue = self.lock();
        queue.waiting.len() + usize::from(queue.current.is_some())
    }

    /// The locked queue must be dropped before the turn: a turn that ends locks it.
    fn enqueue(&self, user: u32) -> (MutexGuard<'_, Queue>, Turn<'_>) {
        let mut queue = self.lock();
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        queue.waiting.push_back((ticket, user));
        if !queue.rotation.contains(&user) {
            queue.rotation.push_back(user);
        }
        queue.proceed();
        (queue, Turn { queue: self, ticket })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Gives the turn to the next user's first thread, if nobody has it.
    fn proceed(&mut self) {
        if self.current.is_some() {
            return;
        }
        let Some(user) = self.rotation.pop_front() else { return };
        if let Some(at) = self.waiting.iter().position(|(_, waiting)| *waiting == user) {
            self.current = self.waiting.remove(at).map(|(ticket, _)| ticket);
        }
        if self.waits(user) {
            self.rotation.push_back(user);
        }
    }

    fn waits(&self, user: u32) -> bool {
        self.waiting.iter().any(|(_, waiting)| *waiting == user)
    }

    /// Ends a turn, or the wait for one.
    fn leave(&mut self, ticket: u64) {
        if self.current == Some(ticket) {
            self.current = None;
        } else if let Some(at) = self.waiting.iter().position(|(waiting, _)| *waiting == ticket) {
            let user = self.waiting.remove(at).map(|(_, user)| user);
            // While another of its threads waits, the user keeps its place.
            if let Some(user) = user.filter(|user| !self.waits(*user)) {
                self.rotation.retain(|waiting| *waiting != user);
            }
        }
        self.proceed();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queue = self.queue.lock();
        queue.leave(self.ticket);
        let others = queue.current.is_some();
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
    fn users_take_turns_however_many_threads_one_has() {
        let queue = Arc::new(TurnQueue::default());
        let (sender, receiver) = mpsc::channel();
        let first = queue.acquire();
        let users = [7, 7, 7, 7, 8, 8, 9];
        let threads: Vec<_> = users
            .into_iter()
            .enumerate()
            .map(|(number, user)| {
                let (own, sender) = (Arc::clone(&queue), sender.clone());
                let thread = thread::spawn(move || {
                    let _turn = own.acquire_for(user, LONG).unwrap();
                    sender.send(user).unwrap();
                });
                while queue.length() < number + 2 {
                    thread::yield_now();
                }
                thread
            })
            .collect();
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [7, 8, 9, 7, 8, 7, 7]);
    }

    #[test]
    fn who_gives_up_leaves_the_rotation() {
        let queue = TurnQueue::default();
        let first = queue.acquire();
        for user in [7, 8, 7] {
            assert!(queue.acquire_for(user, Duration::from_millis(1)).is_none());
        }
        assert_eq!(queue.length(), 1);
        assert!(queue.lock().rotation.is_empty());
        drop(first);
        assert!(queue.acquire_for(8, Duration::ZERO).is_some());
        assert_eq!(queue.length(), 0);
    }

    #[test]
    fn impatient_threads_of_a_user_do_not_move_its_patient_ones_back() {
        let queue = Arc::new(TurnQueue::default());
        let (sender, receiver) = mpsc::channel();
        let first = queue.acquire();
        let wait = |user: u32, length: usize| {
            let (own, sender) = (Arc::clone(&queue), sender.clone());
            let thread = thread::spawn(move || {
                let _turn = own.acquire_for(user, LONG).unwrap();
                sender.send(user).unwrap();
            });
            while queue.length() < length {
                thread::yield_now();
            }
            thread
        };
        let threads = [wait(7, 2), wait(8, 3)];
        assert!(queue.acquire_for(7, Duration::from_millis(1)).is_none());
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!([receiver.recv().unwrap(), receiver.recv().unwrap()], [7, 8]);
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
