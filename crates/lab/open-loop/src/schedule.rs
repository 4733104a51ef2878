// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which trials begin when.

use std::time::{Duration, Instant};

use crate::pace::{Pace, Pauses};

/// How far ahead trials are prepared, so that their beginning is not delayed by it.
const AHEAD: Duration = Duration::from_millis(5);

/// The beginnings of a run's trials.
///
/// In each turn of its loop a client asks, in this order: [`to_prepare`](Self::to_prepare) unless
/// trials are prepared, [`may_begin`](Self::may_begin) if they are, then [`begun`](Self::begun)
/// once it has begun them, and [`wake_at`](Self::wake_at) before it waits; it reports each end by
/// [`ended`](Self::ended).
#[derive(Debug)]
pub struct Schedule {
    pauses: Pauses,
    due: Instant,
    next: u32,
    trials: u32,
    concurrent: u32,
    alone: bool,
}

impl Schedule {
    /// The first trials are due as soon as they can be prepared, or a pause later.
    #[must_use]
    pub fn new(pace: &Pace, begun: Instant, pause_first: bool) -> Schedule {
        let mut pauses = Pauses::new(pace);
        let due = begun + if pause_first { AHEAD + pauses.next() } else { AHEAD };
        Schedule {
            pauses,
            due,
            next: 0,
            trials: pace.trials,
            concurrent: pace.concurrent,
            alone: pace.alone,
        }
    }

    /// When the next trials are due.
    #[must_use]
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Whether trials are left that have not begun.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.next < self.trials
    }

    /// The first of the trials that are to be prepared now.
    #[must_use]
    pub fn to_prepare(&self, now: Instant) -> Option<u32> {
        (self.has_more() && now + AHEAD >= self.due).then_some(self.next)
    }

    /// Whether the prepared trials are to begin now; `idle`: no other is under way.
    #[must_use]
    pub fn may_begin(&self, now: Instant, idle: bool) -> bool {
        now >= self.due && (idle || !self.alone)
    }

    /// The prepared trials have begun.
    pub fn begun(&mut self) {
        self.next += self.concurrent;
        self.due += self.pauses.next();
    }

    /// When to wake up for what comes next; None if all trials have begun.
    #[must_use]
    pub fn wake_at(&self, prepared: bool) -> Option<Instant> {
        let at = if prepared { self.due } else { self.due - AHEAD };
        self.has_more().then_some(at)
    }

    /// A trial has ended.
    pub fn ended(&mut self) {
        if self.alone {
            self.due = self.due.max(Instant::now() + self.pauses.next());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::tests::PACE;

    #[test]
    fn trials_are_prepared_ahead_and_begin_when_due() {
        let start = Instant::now();
        let mut schedule = Schedule::new(&Pace { trials: 2, ..PACE }, start, false);
        assert_eq!(schedule.due(), start + AHEAD);
        assert_eq!((schedule.to_prepare(start), schedule.wake_at(false)), (Some(0), Some(start)));
        assert!(!schedule.may_begin(start, true));
        assert_eq!(schedule.wake_at(true), Some(start + AHEAD));
        // Others under way hold up nothing.
        assert!(schedule.may_begin(start + AHEAD, false));
        schedule.begun();
        let due = schedule.due();
        assert!(due > start + AHEAD);
        assert_eq!(schedule.to_prepare(due - 2 * AHEAD), None);
        assert_eq!(schedule.to_prepare(due - AHEAD), Some(1));
        schedule.begun();
        assert!(!schedule.has_more());
        assert_eq!((schedule.to_prepare(due + AHEAD), schedule.wake_at(false)), (None, None));
    }

    #[test]
    fn trials_alone_begin_a_pause_after_the_end_of_the_one_before() {
        let start = Instant::now();
        let pace = Pace { alone: true, rate_per_second: 1.0, spread: 0.0, ..PACE };
        let mut schedule = Schedule::new(&pace, start, true);
        let first = schedule.due();
        assert_eq!(first, start + AHEAD + Duration::from_secs(1));
        schedule.begun();
        assert!(!schedule.may_begin(first + Duration::from_secs(60), false));
        assert!(schedule.may_begin(first + Duration::from_secs(60), true));
        // It ended long before the next is due.
        schedule.ended();
        assert_eq!(schedule.due(), first + Duration::from_secs(1));
    }

    #[test]
    fn late_end_moves_the_next_beginning() {
        let pace = Pace { alone: true, rate_per_second: 1_000.0, spread: 0.0, ..PACE };
        let mut schedule = Schedule::new(&pace, Instant::now() - Duration::from_secs(9), false);
        schedule.begun();
        let before = Instant::now();
        schedule.ended();
        assert!(schedule.due() >= before + Duration::from_millis(1));
    }

    #[test]
    fn concurrent_trials_are_counted_together() {
        let start = Instant::now();
        let mut schedule = Schedule::new(&Pace { concurrent: 2, ..PACE }, start, false);
        schedule.begun();
        assert_eq!(schedule.to_prepare(schedule.due()), Some(2));
        schedule.begun();
        assert!(!schedule.has_more());
    }
}
