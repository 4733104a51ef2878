// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rest of the thread that works ahead, and what wakes it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::card::lock;

/// Ends a long rest: while callers come one after the other the short ones last.
#[derive(Default)]
pub(super) struct Rest {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    long: bool,
    /// Something has happened since the last rest began.
    poked: bool,
}

impl Rest {
    /// Something has happened that the thread is to look at.
    pub(super) fn poke(&self) {
        let mut state = lock(&self.state);
        state.poked = true;
        if state.long {
            self.woken.notify_one();
        }
    }

    /// Rests. What happened between the thread's last look and this ends a long rest as well.
    pub(super) fn wait(&self, longest: Duration, short: Duration) {
        let mut state = lock(&self.state);
        state.long = longest > short;
        let end = Instant::now() + longest;
        while !(state.long && state.poked) {
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
    fn what_happens_before_a_long_rest_ends_it() {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let rest = Rest::default();
            rest.poke();
            rest.wait(Duration::from_secs(3600), Duration::from_millis(1));
            // It has been seen; a short rest then lasts, poked or not.
            rest.poke();
            rest.wait(Duration::from_millis(2), Duration::from_millis(2));
            tell.send(()).unwrap();
        });
        told.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}
