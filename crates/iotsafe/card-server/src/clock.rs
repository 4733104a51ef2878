// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The only place where this crate looks at a clock.

use rustix::time::{ClockId, Timespec};
use warifu_model::Nanos;

/// The present on CLOCK_MONOTONIC, the same in every process of the machine.
#[must_use]
pub fn now() -> Nanos {
    let time = rustix::time::clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// Sleeps until an instant of CLOCK_MONOTONIC, or returns at once if it has passed. The time is
/// absolute, so what was spent before the call is not slept again.
pub fn sleep_until(instant: Nanos) {
    let until = Timespec {
        tv_sec: i64::try_from(instant.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (instant.0 % 1_000_000_000) as _,
    };
    // A signal wakes the sleeper early; the absolute time makes it safe to go back.
    while now() < instant
        && rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until).is_err()
    {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_ends_after_the_moment_and_not_at_all_for_one_that_passed() {
        let until = Nanos(now().0 + 5_000_000);
        sleep_until(until);
        assert!(now() >= until);
        sleep_until(Nanos(0));
    }
}
