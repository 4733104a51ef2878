// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether this process is a child that fork(2) has made since a sender began to count: it has its
//! parent's keys and counts, and would encrypt under nonces that its parent uses, too.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result};

/// How many forks lie between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

type Handler = unsafe extern "C" fn();

unsafe extern "C" {
    /// Of POSIX; crate libc lacks it for Linux.
    fn pthread_atfork(
        prepare: Option<Handler>,
        parent: Option<Handler>,
        child: Option<Handler>,
    ) -> c_int;
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// A process and those of its children that have not been forked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation(u32);

impl Generation {
    /// This process's. Forks are counted from the first call on.
    pub fn watched() -> Result<Self> {
        static WATCHED: OnceLock<bool> = OnceLock::new();
        // SAFETY: the handler may be called at any time, and the plugin is never unloaded
        // (build.rs).
        let is_watched = || unsafe { pthread_atfork(None, None, Some(in_child)) } == 0;
        if *WATCHED.get_or_init(is_watched) {
            Ok(Self(GENERATION.load(Ordering::Relaxed)))
        } else {
            Err(Error::Argument("memory for a handler of fork(2)"))
        }
    }

    /// Fails in a child of the process that this was made in.
    #[inline]
    pub fn check(self) -> Result<()> {
        if self.0 == GENERATION.load(Ordering::Relaxed) { Ok(()) } else { Err(Error::Forked) }
    }
}
