// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sleep of the thread that works ahead, and what ends it early.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::card::lock;

/// Ends a long sleep. Short ones are not interrupted, so that frequent requests do not keep the
/// thread awake.
#[derive(Default)]
pub(super) struct Wakeup {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    long: bool,
    /// [`Wakeup::notify`] was called since the last sleep began.
    notified: bool,
}

impl Wakeup {
    /// Wakes the thread, or keeps it awake.
    pub(super) fn notify(&self) {
        let mut state = lock(&self.state);
        state.notified = true;
        if state.long {
            self.woken.notify_one();
        }
    }

    /// Sleeps for `longest`. A notification since the last sleep also ends a sleep longer than
    /// `short`.
    pub(super) fn wait(&self, longest: Duration, short: Duration) {
        let mut state = lock(&self.state);
        state.long = longest > short;
        let end = Instant::now() + longest;
        while !(state.long && state.notified) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.woken.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *state = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn notification_before_a_long_sleep_ends_it() {
        let (done, finished) = mpsc::channel();
        thread::spawn(move || {
            let wakeup = Wakeup::default();
            wakeup.notify();
            wakeup.wait(Duration::from_secs(3600), Duration::from_millis(1));
            // A short sleep is not interrupted.
            wakeup.notify();
            wakeup.wait(Duration::from_millis(2), Duration::from_millis(2));
            done.send(()).unwrap();
        });
        finished.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}
