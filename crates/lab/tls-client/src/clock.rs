// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The clocks of samples.

use std::mem::MaybeUninit;

/// A reading of both clocks, ns: the wall's, and this thread's processor time, which leaves out
/// what others did to the processor meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub wall_ns: u64,
    pub cpu_ns: u64,
}

impl Reading {
    pub(crate) fn now() -> Reading {
        Reading {
            wall_ns: read(libc::CLOCK_MONOTONIC),
            cpu_ns: read(libc::CLOCK_THREAD_CPUTIME_ID),
        }
    }

    pub(crate) fn since(self, earlier: Reading) -> Reading {
        Reading {
            wall_ns: self.wall_ns.saturating_sub(earlier.wall_ns),
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
        }
    }

    pub(crate) fn plus(self, other: Reading) -> Reading {
        Reading { wall_ns: self.wall_ns + other.wall_ns, cpu_ns: self.cpu_ns + other.cpu_ns }
    }
}

/// Mean processor time of one reading, ns.
pub(crate) fn reading_cpu_ns() -> f64 {
    const TIMES: u32 = 1_000;
    let before = Reading::now();
    for _ in 1..TIMES {
        Reading::now();
    }
    let spent = Reading::now().since(before);
    spent.cpu_ns as f64 / f64::from(TIMES)
}

/// Processor time of the whole process so far, ns.
pub(crate) fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: `time` is writable and plain numbers; the clocks exist since Linux 2.6.12.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
