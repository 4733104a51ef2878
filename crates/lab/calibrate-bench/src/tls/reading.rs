// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a sample reads of the clocks.

use warifu_os::clock;

/// A reading of both clocks, ns: the wall's, and this thread's processor time, which leaves out
/// what others did to the processor meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub wall_ns: u64,
    pub cpu_ns: u64,
}

impl Reading {
    pub(crate) fn now() -> Reading {
        Reading { wall_ns: clock::now().0, cpu_ns: clock::thread_cpu_time().0 }
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
