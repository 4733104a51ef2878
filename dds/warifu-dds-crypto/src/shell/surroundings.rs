// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program that has loaded the plugin: its environment, and its stderr, which may be closed or
//! full. Neither may end it.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, mem, ptr};

use crate::algorithm::Aead;

/// Lines are cut to this, PIPE_BUF, so that a pipe that has room takes them whole (pipe(7)).
const MAX_LINE_BYTES: usize = 4096;

/// A variable of the environment; none in a program with more rights than its user has
/// (AT_SECURE, getauxval(3)), who would else choose how weakly it protects what it sends, and a
/// file that it writes to.
pub fn variable(name: &str) -> Option<OsString> {
    if has_more_rights_than_its_user() { None } else { env::var_os(name) }
}

fn has_more_rights_than_its_user() -> bool {
    // SAFETY: it takes any number.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// A line on stderr, if that takes it at once.
pub fn say(text: &str) {
    let mut line = format!("warifu-dds-crypto: {text}");
    line.truncate(line.floor_char_boundary(MAX_LINE_BYTES - 1));
    line.push('\n');
    let mut stderr = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one entry, which lives.
    let is_ready = unsafe { libc::poll(&raw mut stderr, 1, 0) } == 1;
    if is_ready && stderr.revents & libc::POLLOUT != 0 {
        // SAFETY: so many octets are there. What it answers changes nothing.
        let write = || unsafe { libc::write(stderr.fd, line.as_ptr().cast(), line.len()) };
        without_signals(write);
    }
}

/// Makes a call whose SIGPIPE (nobody reads) or SIGXFSZ (the file may not grow) is not delivered to
/// the program, which either would end.
fn without_signals<T>(call: impl FnOnce() -> T) -> T {
    // SAFETY: sets of signals are plain numbers, which the calls fill; a signal is taken off only
    // if it came during the call.
    unsafe {
        let mut held: libc::sigset_t = mem::zeroed();
        let mut before: libc::sigset_t = mem::zeroed();
        let mut pending: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut held);
        libc::sigpending(&raw mut pending);
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            // One that waits already is the program's own.
            if libc::sigismember(&raw const pending, signal) == 0 {
                libc::sigaddset(&raw mut held, signal);
            }
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut before);
        let given = call();
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        while libc::sigtimedwait(&raw const held, ptr::null_mut(), &raw const now) > 0 {}
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        given
    }
}

/// Says once in a process that an AEAD is not one of DDS Security's.
pub fn announce(aead: Aead) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !aead.is_standard() && !SAID.swap(true, Ordering::Relaxed) {
        say(&format!(
            "EXPERIMENT: {} is not DDS Security, which knows AES-GCM alone: use AES for what has \
             to be secure",
            aead.name()
        ));
    }
}
