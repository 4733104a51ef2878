// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A timer among the sockets. epoll_wait counts in whole milliseconds, and would begin
//! connections up to one late.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::{Duration, Instant};

/// A timerfd; readable from the time that it was set to.
pub(super) struct Alarm {
    file: OwnedFd,
    set: Option<Instant>,
}

impl Alarm {
    pub(super) fn new() -> io::Result<Alarm> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: makes a descriptor out of numbers.
        let made = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open and nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(made) };
        Ok(Alarm { file, set: None })
    }

    /// The descriptor to be watched, edge-triggered: it is never read, and each expiry is news.
    pub(super) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Goes off at `at`; at once if that has passed.
    pub(super) fn set(&mut self, at: Instant) -> io::Result<()> {
        if self.set.replace(at) == Some(at) {
            return Ok(());
        }
        // A zero would disarm it.
        let wait = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let value = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                tv_sec: libc::time_t::try_from(wait.as_secs()).unwrap_or(libc::time_t::MAX),
                tv_nsec: libc::c_long::from(wait.subsec_nanos() as i32),
            },
        };
        // SAFETY: the descriptor is an open timer; `value` is read only.
        let done = unsafe {
            libc::timerfd_settime(self.file.as_raw_fd(), 0, &raw const value, ptr::null_mut())
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
    fn expires_at_its_time_and_not_before() {
        let mut alarm = Alarm::new().unwrap();
        let now = Instant::now();
        alarm.set(now + Duration::from_secs(3_600)).unwrap();
        assert_eq!(expiries(&alarm), None);
        // The past is now.
        alarm.set(now - Duration::from_millis(1)).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(expiries(&alarm), Some(1));
    }
}
