// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a device does between two connections: other things, and then nothing.

use std::hint::black_box;
use std::time::Duration;

use super::config::Config;

/// More than the caches of one processor of 2026 hold, and of most all of them together: what is in
/// between comes from memory, as after any other program of some size.
const FILL_BYTES: usize = 64 << 20;
/// A cache line's length, or a part of it (x86-64, Armv8-A).
const LINE_BYTES: usize = 64;

/// Rests between connections.
pub(super) struct Rest {
    /// What goes through the caches; empty where nothing is to rest.
    others: Vec<u8>,
    pause: Duration,
}

impl Rest {
    pub(super) fn new(config: &Config) -> Rest {
        let bytes = if config.rested == 0 { 0 } else { FILL_BYTES };
        Rest { others: vec![1; bytes], pause: Duration::from_secs_f64(config.rest_ms / 1e3) }
    }

    /// Lets other data through the caches, every line written, and then sleeps: in this order, so
    /// that the processor comes out of its idle states with nothing of the bench in its caches.
    pub(super) fn pause(&mut self) {
        for byte in self.others.iter_mut().step_by(LINE_BYTES) {
            *byte = byte.wrapping_add(1);
        }
        black_box(&self.others);
        std::thread::sleep(self.pause);
    }
}
