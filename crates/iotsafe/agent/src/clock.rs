// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time as an argument: the machine's, or a virtual one for runs of hours in seconds.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What the agent knows of time.
pub trait Clock: Send + Sync {
    /// The present, for deadlines.
    fn now(&self) -> Instant;

    /// The present as the world has it, since 1970, for tokens.
    fn since_1970(&self) -> Duration;

    /// Comes back after so long.
    fn sleep(&self, time: Duration);
}

/// The machine's.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn since_1970(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}
