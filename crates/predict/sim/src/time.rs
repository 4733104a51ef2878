// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When something happens, if it does.

/// When an event happens, ns. One that is not waiting is later than all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(u64);

impl Time {
    pub(crate) const NONE: Time = Time(u64::MAX);

    #[inline]
    pub(crate) fn at(time: u64) -> Time {
        Time(time)
    }

    /// In ns.
    #[inline]
    pub(crate) fn ns(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn of(time: Option<u64>) -> Time {
        time.map_or(Time::NONE, Time)
    }
}

impl Default for Time {
    fn default() -> Time {
        Time::NONE
    }
}
