// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A timer among the descriptors that a program waits for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A timerfd; readable from the time that it was set to.
///
/// epoll_wait counts in whole milliseconds, and would wake a program up to one late.
#[derive(Debug)]
pub struct Alarm {
    file: OwnedFd,
    set: Option<Instant>,
}

impl Alarm {
    /// Not set yet.
    pub fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Alarm { file: timerfd_create(TimerfdClockId::Monotonic, flags)?, set: None })
    }

    /// Goes off at `at`; at once if that has passed.
    pub fn set(&mut self, at: Instant) -> io::Result<()> {
        if self.set.replace(at) == Some(at) {
            return Ok(());
        }
        // A zero would disarm it.
        let wait = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let value = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(wait.subsec_nanos()),
            },
        };
        timerfd_settime(&self.file, TimerfdTimerFlags::empty(), &value)?;
        Ok(())
    }
}

impl AsFd for Alarm {
    /// The descriptor to be watched, edge-triggered: it is never read, and each expiry is news.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn expiries(alarm: &Alarm) -> Option<u64> {
        let mut file = std::fs::File::from(alarm.file.try_clone().unwrap());
        let mut count = [0; 8];
        file.read_exact(&mut count).ok().map(|()| u64::from_ne_bytes(count))
    }

    #[test]
    fn alarm_expires_at_its_time() {
        let mut alarm = Alarm::new().unwrap();
        let now = Instant::now();
        alarm.set(now + Duration::from_secs(3_600)).unwrap();
        assert_eq!(expiries(&alarm), None);
        // The past is now.
        alarm.set(now - Duration::from_millis(1)).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut seen = expiries(&alarm);
        while seen.is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
            seen = expiries(&alarm);
        }
        assert_eq!(seen, Some(1));
    }
}
