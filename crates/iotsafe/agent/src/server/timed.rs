// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading a caller's request and writing the reply by a deadline.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// How long a request may take from its first byte to its last, and a reply to be taken.
const FRAME_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection for one frame: a caller that sends or takes a byte now and then does not keep its
/// place with it.
pub(super) struct Timed<'a> {
    stream: &'a UnixStream,
    /// None while a caller with rights may be silent.
    deadline: Option<Instant>,
}

impl<'a> Timed<'a> {
    /// A frame that may begin at any time.
    pub(super) fn whenever(stream: &'a UnixStream) -> Timed<'a> {
        Timed { stream, deadline: None }
    }

    /// A frame that begins now.
    pub(super) fn now(stream: &'a UnixStream) -> Timed<'a> {
        Timed::within(stream, FRAME_TIMEOUT)
    }

    /// A frame that must be there within this time.
    pub(super) fn within(stream: &'a UnixStream, timeout: Duration) -> Timed<'a> {
        Timed { stream, deadline: Some(Instant::now() + timeout) }
    }

    fn wait(&self, flags: PollFlags, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::from_borrowed_fd(self.stream.as_fd(), flags)], Some(&timeout)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(deadline) = self.deadline else {
            let bytes = self.stream.read(room)?;
            self.deadline = (bytes > 0).then(|| Instant::now() + FRAME_TIMEOUT);
            return Ok(bytes);
        };
        loop {
            // First without waiting: the rest of a request comes with its beginning.
            match rustix::net::recv(self.stream, &mut *room, RecvFlags::DONTWAIT) {
                Ok((bytes, _)) => return Ok(bytes),
                Err(Errno::AGAIN) => self.wait(PollFlags::IN, deadline)?,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + FRAME_TIMEOUT);
        loop {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(self.stream, bytes, flags) {
                Ok(bytes) => return Ok(bytes),
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, deadline)?,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_now_and_then_does_not_extend_the_time() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let drip = std::thread::spawn(move || {
            while { &theirs }.write_all(&[0]).is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let mut timed = Timed::within(&ours, Duration::from_millis(100));
        let error = timed.read_exact(&mut [0; 100_000]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(ours);
        drip.join().unwrap();
    }

    #[test]
    fn reply_that_nobody_takes() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut timed = Timed::within(&ours, Duration::from_millis(50));
        let error = timed.write_all(&[0; 10_000_000]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
