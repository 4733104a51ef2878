// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two clocks of a sample.

use std::mem::MaybeUninit;

/// A reading of both clocks, ns: the wall's, and this thread's processor time, which leaves out
/// what others did to the processor meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    pub wall_ns: u64,
    pub cpu_ns: u64,
}

impl Reading {
    pub(super) fn now() -> Reading {
        Reading {
            wall_ns: read(libc::CLOCK_MONOTONIC),
            cpu_ns: read(libc::CLOCK_THREAD_CPUTIME_ID),
        }
    }

    pub(super) fn since(self, earlier: Reading) -> Reading {
        Reading {
            wall_ns: self.wall_ns.saturating_sub(earlier.wall_ns),
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
        }
    }

    pub(super) fn plus(self, other: Reading) -> Reading {
        Reading { wall_ns: self.wall_ns + other.wall_ns, cpu_ns: self.cpu_ns + other.cpu_ns }
    }
}

/// Mean processor time of one reading, ns.
pub(super) fn reading_cpu_ns() -> f64 {
    const TIMES: u32 = 1_000;
    let before = Reading::now();
    for _ in 1..TIMES {
        Reading::now();
    }
    let spent = Reading::now().since(before);
    spent.cpu_ns as f64 / f64::from(TIMES)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: `time` is writable and plain numbers; both clocks exist since Linux 2.6.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
