// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading and writing a file descriptor by a deadline.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

/// How long apart a busy server is asked for a connection.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// A descriptor that never blocks.
pub struct DeadlineStream {
    fd: OwnedFd,
    socket: bool,
}

impl DeadlineStream {
    /// A connection to the Unix socket at a path; `TimedOut` where the server takes nobody in.
    pub fn connect(path: &Path, deadline: Instant) -> io::Result<DeadlineStream> {
        let address = SocketAddrUnix::new(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        loop {
            match rustix::net::connect(&socket, &address) {
                Ok(()) => return DeadlineStream::socket(socket),
                // Its queue is full (unix(7)).
                Err(Errno::AGAIN) if Instant::now() < deadline => thread::sleep(BUSY_PAUSE),
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// A socket: a write to a peer that has gone must not raise SIGPIPE in a program that only
    /// loaded us.
    pub fn socket(fd: OwnedFd) -> io::Result<DeadlineStream> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(DeadlineStream { fd, socket: true })
    }

    /// A terminal, opened with O_NONBLOCK.
    pub fn terminal(fd: OwnedFd) -> DeadlineStream {
        DeadlineStream { fd, socket: false }
    }

    /// Reads what is there, at least a byte. `UnexpectedEof` when the other side has closed,
    /// `TimedOut` at the deadline.
    pub fn read_some(&self, room: &mut [u8], deadline: Instant) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::IN, deadline)?;
            match rustix::io::read(&self.fd, &mut *room) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => return Ok(bytes),
                Err(Errno::AGAIN | Errno::INTR) => {}
                // A pseudo-terminal whose other side has closed.
                Err(Errno::IO) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Whether anything has arrived unasked, or the other side has closed: no request and answer
    /// go over it any more.
    pub fn has_input_or_end(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut asked = [PollFd::from_borrowed_fd(self.fd.as_fd(), PollFlags::IN)];
        poll(&mut asked, Some(&at_once)) != Ok(0)
    }

    /// Fills `room`.
    pub fn read_exact(&self, mut room: &mut [u8], deadline: Instant) -> io::Result<()> {
        while !room.is_empty() {
            let bytes = self.read_some(room, deadline)?;
            room = &mut room[bytes..];
        }
        Ok(())
    }

    /// Throws away what has arrived.
    pub fn drain(&self) {
        let mut room = [0; 512];
        while matches!(rustix::io::read(&self.fd, &mut room), Ok(bytes) if bytes > 0) {}
    }

    /// Writes all of it.
    pub fn write_all(&self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = if self.socket {
                rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL)
            } else {
                rustix::io::write(&self.fd, bytes)
            };
            match written {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, deadline)?,
                Err(Errno::INTR) => {}
                Err(Errno::IO | Errno::PIPE | Errno::CONNRESET) => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Waits until it can be read or written; also returns where that would fail at once.
    fn wait(&self, flags: PollFlags, deadline: Instant) -> io::Result<()> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            match poll(&mut [PollFd::from_borrowed_fd(self.fd.as_fd(), flags)], Some(&timeout)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
