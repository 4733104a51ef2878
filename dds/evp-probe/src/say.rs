// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words for whoever started the program, on its standard error: it is the program's own, and may
//! be full, closed or read by nobody. None of that may end the program, or let it wait.

use std::mem::MaybeUninit;
use std::ptr;

/// How long a full pipe or a stopped terminal is waited for.
const PATIENCE_MS: libc::c_int = 100;
/// What poll(2) says of a pipe has room for so many bytes at least (PIPE_BUF), so that the write
/// does not wait.
const MOST: usize = 4096;

/// Writes a line, or the part of it that there is room for, or nothing.
pub fn say(text: &str) {
    let mut line = format!("warifu-evp-probe: {text}");
    // It is cut between letters.
    while line.len() >= MOST {
        line.pop();
    }
    line.push('\n');
    without_signals(|| {
        let mut ready = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
        // SAFETY: one entry, which lives here.
        let polled = unsafe { libc::poll(&raw mut ready, 1, PATIENCE_MS) };
        // Nothing else: no POLLERR (nobody reads), no POLLNVAL (closed).
        if polled == 1 && ready.revents == libc::POLLOUT {
            // SAFETY: the line's bytes; what the write says does not matter.
            unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
        }
    });
}

/// A write may raise SIGPIPE (nobody reads any more) or SIGXFSZ (the file may not grow), which end
/// a program. They are held back, and taken away if this write has raised them.
fn without_signals(write: impl FnOnce()) {
    // SAFETY: sets of signals that sigemptyset fills before they are read, and calls that take
    // them; all of it is about this thread alone, to which a write's signals go.
    unsafe {
        let mut held = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        let mut pending = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(held.as_mut_ptr());
        libc::sigemptyset(pending.as_mut_ptr());
        libc::sigpending(pending.as_mut_ptr());
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            // One that waits already is the program's own.
            if libc::sigismember(pending.as_ptr(), signal) == 0 {
                libc::sigaddset(held.as_mut_ptr(), signal);
            }
        }
        if libc::pthread_sigmask(libc::SIG_BLOCK, held.as_ptr(), before.as_mut_ptr()) != 0 {
            return;
        }
        write();
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        while libc::sigtimedwait(held.as_ptr(), ptr::null_mut(), &raw const at_once) > 0 {}
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
    }
}
