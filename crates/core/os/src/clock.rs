// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The machine's clocks, and time as an argument.
//!
//! [`Nanos`] where an instant is compared with the kernel's or another process's; `Instant` where
//! it is a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};
use warifu_model::Nanos;

/// The present on CLOCK_MONOTONIC, the same in every process and namespace of the machine.
#[must_use]
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// The processor time that the calling thread has used.
#[must_use]
pub fn thread_cpu_time() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// The processor time that all threads of this process have used.
#[must_use]
pub fn process_cpu_time() -> Nanos {
    read(ClockId::ProcessCPUTime)
}

/// Sleeps until an instant of CLOCK_MONOTONIC; returns at once if it has passed. The time is
/// absolute, so what was spent before the call is not slept again.
pub fn sleep_until(instant: Nanos) {
    let until = timespec(instant);
    // A signal ends the sleep early; the absolute time makes it safe to resume.
    while now() < instant
        && rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until).is_err()
    {}
}

/// An instant as the kernel takes it.
#[must_use]
pub fn timespec(instant: Nanos) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(instant.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (instant.0 % 1_000_000_000) as _,
    }
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// Time as an argument: the machine's, or a virtual one that lets hours pass in a moment.
pub trait Clock: Send + Sync {
    /// The present; never goes back.
    fn now(&self) -> Instant;

    /// The present since the Unix epoch, for timestamps.
    fn unix_time(&self) -> Duration;

    /// Returns after `duration`.
    fn sleep(&self, duration: Duration);
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn unix_time(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// A clock that only moves when it is told to; clones share their time.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    start: Instant,
    /// The time since the Unix epoch at the start, ns, as last set.
    unix_start_ns: Arc<AtomicU64>,
    passed_ns: Arc<AtomicU64>,
}

impl VirtualClock {
    /// A clock at this time since the Unix epoch.
    #[must_use]
    pub fn starting_at(unix_start: Duration) -> VirtualClock {
        let unix_start_ns = Arc::new(AtomicU64::new(nanoseconds(unix_start)));
        VirtualClock { start: Instant::now(), unix_start_ns, passed_ns: Arc::default() }
    }

    /// Sets the time since the Unix epoch, back or forth, as people and NTP do with a machine's
    /// clock; [`Clock::now`] stays.
    pub fn set_unix_time(&self, time: Duration) {
        let start = time.saturating_sub(self.passed());
        self.unix_start_ns.store(nanoseconds(start), Ordering::SeqCst);
    }

    /// Moves the time on.
    pub fn advance(&self, by: Duration) {
        self.passed_ns.fetch_add(nanoseconds(by), Ordering::SeqCst);
    }

    /// Moves the time on to an instant, if that is not past.
    pub fn advance_to(&self, instant: Instant) {
        self.advance(instant.saturating_duration_since(self.now()));
    }

    fn passed(&self) -> Duration {
        Duration::from_nanos(self.passed_ns.load(Ordering::SeqCst))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Default for VirtualClock {
    /// A clock at the Unix epoch.
    fn default() -> VirtualClock {
        VirtualClock::starting_at(Duration::ZERO)
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        self.start + self.passed()
    }

    fn unix_time(&self) -> Duration {
        Duration::from_nanos(self.unix_start_ns.load(Ordering::SeqCst)) + self.passed()
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_until_future_and_past_instants() {
        let until = Nanos(now().0 + 5_000_000);
        sleep_until(until);
        assert!(now() >= until);
        sleep_until(Nanos(0));
    }

    #[test]
    fn cpu_time_of_a_sleeping_thread() {
        let (wall, thread) = (now(), thread_cpu_time());
        sleep_until(Nanos(wall.0 + 50_000_000));
        assert!(thread_cpu_time().0 - thread.0 < 50_000_000);
        assert!(process_cpu_time() >= thread_cpu_time());
    }

    #[test]
    fn virtual_time_moves_only_when_told() {
        let clock = VirtualClock::starting_at(Duration::from_secs(1_000));
        let (start, same) = (clock.now(), clock.clone());
        clock.sleep(Duration::from_secs(3_600));
        same.advance_to(start + Duration::from_secs(3_601));
        clock.advance_to(start);
        assert_eq!(clock.now() - start, Duration::from_secs(3_601));
        assert_eq!(clock.unix_time(), Duration::from_secs(4_601));
        clock.set_unix_time(Duration::from_secs(4_000));
        same.advance(Duration::from_secs(1));
        assert_eq!(clock.unix_time(), Duration::from_secs(4_001));
        assert_eq!(clock.now() - start, Duration::from_secs(3_602));
    }
}
