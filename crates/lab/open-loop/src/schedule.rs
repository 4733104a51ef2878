// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which trials begin when.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::pace::{Clear, Pace, Pauses};

/// How far ahead trials are prepared, so that their beginning is not delayed by it.
const AHEAD: Duration = Duration::from_millis(5);

/// For how many round trips a trial works in step with its beginning: a handshake of TLS 1.2 with
/// TCP's and the request takes four. One that takes longer waits for a retransmission, and when it
/// goes on is not known.
const IN_STEP: u32 = 6;

/// For how many round trips a trial waits for a moment that is clear, at most.
const WAITS: u32 = 6;

/// The beginnings of a run's trials.
///
/// In each turn of its loop a client asks, in this order: [`to_prepare`](Self::to_prepare) unless
/// trials are prepared, [`may_begin`](Self::may_begin) if they are, then [`begun`](Self::begun)
/// once it has begun them, and [`wake_at`](Self::wake_at) before it waits; it reports each end by
/// [`ended`](Self::ended).
#[derive(Debug)]
pub struct Schedule {
    pauses: Pauses,
    /// When the next trials would be due if nothing had to be kept clear of.
    planned: Instant,
    due: Instant,
    /// When the last ones were due.
    begun: Instant,
    clear: Option<Clear>,
    /// The trials under way, by when they were due.
    under_way: VecDeque<(u32, Instant)>,
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
            planned: due,
            due,
            begun: due,
            clear: pace.clear,
            under_way: VecDeque::new(),
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
        if self.clear.is_some() {
            self.under_way.push_back((self.next, self.due));
        }
        self.next += self.concurrent;
        self.begun = self.due;
        self.planned += self.pauses.next();
        self.due = self.clear_from(self.planned.max(self.begun));
    }

    /// The first moment from then on at which a trial may begin such that it and those under way
    /// are not at work together; then itself, where that would be more than some round trips after
    /// it was planned.
    fn clear_from(&self, then: Instant) -> Instant {
        let Some(Clear { round_trip_s, work_s }) = self.clear else { return then };
        let [round_trip, work] = [round_trip_s, work_s].map(Duration::from_secs_f64);
        if round_trip < 2 * work || work.is_zero() {
            return then;
        }
        let latest = self.planned + WAITS * round_trip;
        let mut at = then;
        while at <= latest {
            let in_step = |&&(_, began): &&(u32, Instant)| began + IN_STEP * round_trip > at;
            let waits = self.under_way.iter().filter(in_step).filter_map(|&(_, began)| {
                let phase = (at - began).as_nanos() % round_trip.as_nanos();
                let phase = Duration::from_nanos(u64::try_from(phase).unwrap_or(0));
                if phase < work {
                    Some(work - phase)
                } else if phase > round_trip - work {
                    Some(round_trip - phase + work)
                } else {
                    None
                }
            });
            match waits.max() {
                Some(wait) => at += wait,
                None => return at,
            }
        }
        then
    }

    /// When to wake up for what comes next; None if all trials have begun.
    #[must_use]
    pub fn wake_at(&self, prepared: bool) -> Option<Instant> {
        let at = if prepared { self.due } else { self.due - AHEAD };
        self.has_more().then_some(at)
    }

    /// A trial has ended.
    pub fn ended(&mut self, trial: u32, now: Instant) {
        if let Some(one) = self.under_way.iter().position(|&(begun, _)| begun == trial) {
            self.under_way.remove(one);
            // There may be room earlier now.
            let soonest = self.planned.max(self.begun).max(now + AHEAD);
            if soonest < self.due {
                self.due = self.clear_from(soonest).min(self.due);
            }
        }
        if self.alone {
            self.due = self.due.max(now + self.pauses.next());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::tests::{PACE, clear};

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
        schedule.ended(0, start);
        assert_eq!(schedule.due(), first + Duration::from_secs(1));
    }

    #[test]
    fn late_end_moves_the_next_beginning() {
        let pace = Pace { alone: true, rate_per_second: 1_000.0, spread: 0.0, ..PACE };
        let mut schedule = Schedule::new(&pace, Instant::now() - Duration::from_secs(9), false);
        schedule.begun();
        let before = Instant::now();
        schedule.ended(0, before);
        assert!(schedule.due() >= before + Duration::from_millis(1));
    }

    /// The share of trials that are at work together with one under way, and when each began, s
    /// after the first. Each takes `lasts` round trips, and ends at once where nothing is due.
    fn together(pace: &Pace, lasts: f64) -> (f64, Vec<f64>) {
        // A little less than is kept clear of below.
        const WORK: f64 = 0.004;
        let round_trip = pace.clear.unwrap().round_trip_s;
        let lasts = Duration::from_secs_f64(lasts * round_trip);
        let mut schedule = Schedule::new(pace, Instant::now(), false);
        let first = schedule.due();
        let (mut open, mut starts) = (VecDeque::<(u32, Instant)>::new(), Vec::new());
        let mut meetings = 0;
        while schedule.has_more() {
            // Ends and beginnings in the order in which they happen.
            if let Some(&(trial, began)) = open.front()
                && began + lasts < schedule.due()
            {
                schedule.ended(trial, began + lasts);
                open.pop_front();
                continue;
            }
            let due = schedule.due();
            let meets = |&(_, began): &(u32, Instant)| {
                let phase = (due - began).as_secs_f64() % round_trip;
                phase.min(round_trip - phase) < WORK
            };
            meetings += usize::from(open.iter().any(meets));
            open.push_back((starts.len() as u32, due));
            starts.push((due - first).as_secs_f64());
            schedule.begun();
        }
        (meetings as f64 / starts.len() as f64, starts)
    }

    #[test]
    fn trials_keep_clear_of_the_work_of_others_and_keep_their_rate() {
        for (round_trip, lasts) in [(0.02, 4.1), (0.06, 4.1), (0.06, 3.1), (0.15, 4.05)] {
            let pace = Pace { trials: 2_000, rate_per_second: 25.0, spread: 0.5, ..PACE };
            let (share, starts) =
                together(&Pace { clear: clear(round_trip, 0.0045), ..pace }, lasts);
            assert!(share < 0.003, "{share} meet at a round trip of {round_trip}");
            let rate = 1_999.0 / starts.last().unwrap();
            assert!((24.0..26.0).contains(&rate), "{rate} a second");
            let (share, _) = together(&Pace { clear: clear(round_trip, 0.0), ..pace }, lasts);
            assert!(share > 0.3, "{share} meet by chance at a round trip of {round_trip}");
        }
    }

    #[test]
    fn where_nothing_is_clear_trials_begin_as_planned() {
        // Twenty are under way, and there is room for ten.
        let pace = Pace { trials: 200, rate_per_second: 100.0, spread: 0.5, ..PACE };
        let (_, starts) = together(&Pace { clear: clear(0.05, 0.005), ..pace }, 4.0);
        assert!((1.8..2.2).contains(starts.last().unwrap()));
        // Work longer than half of a round trip leaves no room for two.
        let (_, crowded) = together(&Pace { clear: clear(0.008, 0.005), ..pace }, 4.0);
        let (_, free) = together(&Pace { clear: clear(0.008, 0.0), ..pace }, 4.0);
        assert_eq!(crowded, free);
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
