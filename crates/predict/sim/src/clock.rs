// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's clocks: jiffies, the timer wheel, and TCP's time stamps.

use std::cell::{Cell, RefCell};

use warifu_model::Nanos;

/// `LVL_CLK_SHIFT` of kernel/time/timer.c: each level of the wheel is 8 times as coarse.
const LEVEL_SHIFT: u32 = 3;
/// `LVL_SIZE - 1` of kernel/time/timer.c: a level's buckets but one.
const LEVEL_SPAN: u64 = 63;
/// The levels that a timer of TCP can reach (level 4 begins after 129 s).
const LEVELS: u32 = 5;
/// The pattern of buckets repeats after this many jiffies: the granularity of the last level.
const WHEEL_PERIOD_JIFFIES: u64 = 1 << (LEVEL_SHIFT * (LEVELS - 1));
/// From the tick until the timer's function has sent its packet, ns. Of the order of a softirq;
/// far below what any comparison resolves.
const SOFTIRQ_NS: u64 = 10_000;
/// Ticks by which a number of them is far from another. Nearer, trials of one case would now note a
/// span and now a number, and could not share their tapes.
const BY_FAR: u32 = 2;

/// The length of the kernel's tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jiffy {
    /// In nanoseconds.
    pub ns: u64,
    /// In microseconds.
    pub us: u64,
    /// Its inverse, as a fraction of 2^64 rounded up: a division by a variable takes longer than
    /// all else in a timer.
    inverse: u64,
}

impl Jiffy {
    /// A tick of this length.
    pub(crate) fn new(length: Nanos) -> Jiffy {
        let ns = length.0.max(1_000);
        Jiffy { ns, us: ns / 1_000, inverse: u64::MAX / ns + 1 }
    }

    /// Rounds up to whole jiffies, as the kernel's `usecs_to_jiffies` does.
    #[inline]
    pub(crate) fn ceil_us(self, us: u64) -> u32 {
        let floor = self.floor(us * 1_000);
        (floor + u64::from(floor * self.us < us)) as u32
    }

    /// Whole jiffies in some nanoseconds.
    #[inline]
    fn floor(self, ns: u64) -> u64 {
        // The inverse is rounded up, so the product may be one too large, and no more than that
        // below 2^64 / 2 ns.
        let guess = ((u128::from(ns) * u128::from(self.inverse)) >> 64) as u64;
        guess - u64::from(guess * self.ns > ns)
    }
}

/// The kernel's view of the time: it is moved from event to event, and what all of TCP asks for
/// is worked out once for each.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// The trial's time, ns.
    pub now: u64,
    /// The number of the event at hand, while it is noted what decisions rest on.
    pub event: u16,
    /// The same in microseconds, as `tcp_mstamp`.
    pub now_us: u64,
    /// The jiffy counter.
    pub jiffies: u32,
    /// TCP's time stamp, ms (`TCP_TS_HZ` is 1000); never 0.
    pub stamp: u32,
    /// Whether what happened may depend on where the trial lies relative to the ticks.
    pub phase_matters: Cell<bool>,
    /// What decisions so far rest on, where they are noted.
    relied_on: Option<Box<ReliedOn>>,
    /// The link's delay both ways, ns, where that is noted.
    pub least_rtt_ns: u64,
    jiffy: Jiffy,
    /// When the next jiffy begins, ns.
    next_jiffy: u64,
    /// Nanoseconds from jiffy 0 of the wheel's pattern to the trial's time 0.
    jiffy_offset_ns: u64,
    /// Nanoseconds from a whole millisecond of the time stamp clock to the trial's time 0.
    stamp_offset_ns: u64,
}

/// A time that has passed since something else, within which a decision would have been the same:
/// whatever the phase of the ticks, and whatever was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The number of the event from which on it is counted.
    pub from: u16,
    /// At least so long, ns.
    pub least: u64,
    /// At most so long, ns.
    pub most: u64,
}

/// A number of ticks that have begun since something else, within which a decision would have been
/// the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// The number of the event from which on they are counted.
    pub from: u16,
    /// At least so many.
    pub least: u32,
    /// At most so many.
    pub most: u32,
}

/// A kernel's time at some instant, by its tick and its monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTime {
    /// The length of its ticks, ns.
    pub tick_ns: u64,
    /// The jiffies of some tick before.
    pub jiffies: u64,
    /// How long ago that tick began, ns.
    pub since_ns: u64,
    /// CLOCK_MONOTONIC, from which TCP's time stamps come, ns.
    pub monotonic_ns: u64,
}

/// What decisions rest on.
#[derive(Clone, Debug, Default)]
struct ReliedOn {
    spans: RefCell<Vec<Span>>,
    ticks: RefCell<Vec<Ticks>>,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::from_bits(Jiffy::new(Nanos::from_millis(4)), 0)
    }
}

impl Clock {
    /// A clock at time 0 whose phases come from 64 random bits.
    pub(crate) fn from_bits(jiffy: Jiffy, bits: u64) -> Clock {
        let fraction = (bits >> 20) as i64 as f64 / (1_u64 << 44) as f64;
        let jiffy_offset_ns = (fraction * (WHEEL_PERIOD_JIFFIES * jiffy.ns) as f64) as u64;
        Clock::at_offsets(jiffy, jiffy_offset_ns, ((bits & 0xf_ffff) * 1_000_000) >> 20)
    }

    /// A clock whose time 0 is an instant of a kernel with ticks of that length.
    pub(crate) fn at_kernel_time(jiffy: Jiffy, at: KernelTime) -> Clock {
        let period_ns = WHEEL_PERIOD_JIFFIES * jiffy.ns;
        let tick_ns = (at.jiffies % WHEEL_PERIOD_JIFFIES) * jiffy.ns;
        let jiffy_offset_ns = (tick_ns + at.since_ns % period_ns) % period_ns;
        Clock::at_offsets(jiffy, jiffy_offset_ns, at.monotonic_ns % 1_000_000)
    }

    fn at_offsets(jiffy: Jiffy, jiffy_offset_ns: u64, stamp_offset_ns: u64) -> Clock {
        let mut clock = Clock {
            now: 0,
            event: 0,
            now_us: 0,
            jiffies: 0,
            stamp: 0,
            phase_matters: Cell::new(false),
            relied_on: None,
            least_rtt_ns: 0,
            jiffy,
            next_jiffy: 0,
            jiffy_offset_ns,
            stamp_offset_ns,
        };
        clock.advance(0);
        clock
    }

    /// Moves on to a time.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) {
        self.now = now;
        self.now_us = now / 1_000;
        self.stamp = 1 + ((now + self.stamp_offset_ns) / 1_000_000) as u32;
        if now >= self.next_jiffy {
            let jiffies = self.jiffy.floor(now + self.jiffy_offset_ns);
            self.jiffies = jiffies as u32;
            self.next_jiffy = (jiffies + 1) * self.jiffy.ns - self.jiffy_offset_ns;
        }
    }

    /// Notes that a decision may have gone the other way in another trial: a time of so many
    /// jiffies may be one jiffy shorter or longer at another phase, and a carrier may draw another
    /// timeout.
    #[inline]
    pub(crate) fn doubt(&self, phase_matters: bool) {
        if phase_matters {
            self.phase_matters.set(true);
        }
    }

    /// From now on notes what decisions rest on; no round trip can be shorter than that.
    pub(crate) fn begin_noting(&mut self, least_rtt_ns: u64) {
        self.relied_on = Some(Box::default());
        self.least_rtt_ns = least_rtt_ns;
    }

    /// Whether it is noted what decisions rest on.
    #[inline]
    pub(crate) fn is_noting(&self) -> bool {
        self.relied_on.is_some()
    }

    /// Notes that a decision rests on the time since an event being of that many nanoseconds. If it
    /// is not, nothing is known of other trials.
    #[inline]
    pub(crate) fn rely(&self, from: u16, least: u64, most: u64) {
        if let Some(relied_on) = &self.relied_on {
            relied_on.spans.borrow_mut().push(Span { from, least, most });
        }
    }

    /// Notes that a decision rests on so many ticks having begun since an event, where `ticks`
    /// have. Where that is so by far, a span of time says it for every phase of the ticks: within
    /// one, as many begin as fit into it, or one more.
    #[cold]
    pub(crate) fn rely_on_ticks(&self, from: u16, ticks: u32, (least, most): (u32, u32)) {
        let Some(relied_on) = &self.relied_on else { return };
        let by_far = (least == 0 || ticks >= least.saturating_add(BY_FAR))
            && (most == u32::MAX || ticks.saturating_add(BY_FAR) <= most);
        if by_far {
            let of = |ticks: u32| u64::from(ticks).saturating_mul(self.jiffy.ns);
            let most = if most == u32::MAX { u64::MAX } else { of(most).saturating_sub(1) };
            self.rely(from, of(least), most);
        } else {
            relied_on.ticks.borrow_mut().push(Ticks { from, least, most });
        }
    }

    /// Notes that a decision rests on more than spans of time can say.
    #[inline]
    pub(crate) fn rely_on_all(&self) {
        self.rely(self.event, 1, 0);
    }

    /// What was noted since the last call.
    pub(crate) fn relied_on(&self) -> Vec<Span> {
        self.relied_on.as_ref().map(|of| of.spans.take()).unwrap_or_default()
    }

    /// The numbers of ticks that were noted since the last call.
    pub(crate) fn ticks_relied_on(&self) -> Vec<Ticks> {
        self.relied_on.as_ref().map(|of| of.ticks.take()).unwrap_or_default()
    }

    /// How many ticks begin after one time of the trial and until another, ns.
    #[inline]
    pub(crate) fn ticks_between(&self, from: u64, to: u64) -> u64 {
        self.jiffy.floor(to + self.jiffy_offset_ns) - self.jiffy.floor(from + self.jiffy_offset_ns)
    }

    /// The length of the ticks, ns.
    pub(crate) fn jiffy_ns(&self) -> u64 {
        self.jiffy.ns
    }

    /// A timer that was set at a jiffy to a delay is stopped now, or set anew: at another phase
    /// it might have run. It never runs before its delay is over.
    #[inline]
    pub(crate) fn doubt_timer(&self, set_at: u32, delay: u32) {
        self.doubt(self.jiffies - set_at >= delay);
    }

    /// When a timer set now to `delay` jiffies runs, ns.
    ///
    /// The wheel never runs a timer early and rounds up to its level's granularity
    /// (`calc_wheel_index` of kernel/time/timer.c): within 63 jiffies to the jiffy after, within
    /// 504 to a multiple of 8 jiffies (32 ms at HZ = 250), within 4032 to one of 64 (256 ms).
    #[inline]
    pub(crate) fn timer_ns(&self, delay: u32) -> u64 {
        let expires = u64::from(self.jiffies) + u64::from(delay);
        let mut shift = 0;
        while u64::from(delay) >= LEVEL_SPAN << shift && shift < LEVEL_SHIFT * (LEVELS - 1) {
            shift += LEVEL_SHIFT;
        }
        let bucket = ((expires >> shift) + 1) << shift;
        bucket * self.jiffy.ns - self.jiffy_offset_ns + SOFTIRQ_NS
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    const JIFFY: Jiffy = Jiffy { ns: 4 * MS, us: 4_000, inverse: u64::MAX / (4 * MS) + 1 };

    #[test]
    fn jiffies_round_up() {
        assert_eq!(JIFFY.ceil_us(0), 0);
        assert_eq!(JIFFY.ceil_us(1), 1);
        assert_eq!(JIFFY.ceil_us(260_000), 65);
        assert_eq!(JIFFY.ceil_us(260_050), 66);
    }

    #[test]
    fn a_long_timer_runs_on_a_coarse_bucket() {
        let at = |now| {
            let mut clock = Clock::at_offsets(JIFFY, 0, 0);
            clock.advance(now);
            clock
        };
        // 40 ms: the next jiffy after.
        assert_eq!(at(0).timer_ns(10), 44 * MS + SOFTIRQ_NS);
        assert_eq!(at(3 * MS).timer_ns(10), 44 * MS + SOFTIRQ_NS);
        // 260 ms and 1 s: the next multiple of 32 ms.
        assert_eq!(at(0).timer_ns(65), 288 * MS + SOFTIRQ_NS);
        assert_eq!(at(0).timer_ns(250), 1_024 * MS + SOFTIRQ_NS);
        // 3 s: the next multiple of 256 ms.
        assert_eq!(at(0).timer_ns(750), 3_072 * MS + SOFTIRQ_NS);
    }

    #[test]
    fn the_wheel_of_a_kernel() {
        // Its jiffy 4099 began 5 ms ago, and 4100 is the fourth of the wheel's second turn.
        let at = KernelTime {
            tick_ns: 4 * MS,
            jiffies: 4_099,
            since_ns: 5 * MS,
            monotonic_ns: 7_000_300_000,
        };
        let mut clock = Clock::at_kernel_time(JIFFY, at);
        assert_eq!((clock.jiffies, clock.stamp), (4, 1));
        // 260 ms, up to a multiple of 8 jiffies: the 72nd begins 68 jiffies after the fourth.
        assert_eq!(clock.timer_ns(65), 68 * 4 * MS - MS + SOFTIRQ_NS);
        clock.advance(3 * MS - 1);
        assert_eq!(clock.jiffies, 4);
        clock.advance(3 * MS);
        assert_eq!((clock.jiffies, clock.stamp), (5, 4));
        let turns = KernelTime { since_ns: 5 * MS + 3 * 4_096 * 4 * MS, ..at };
        assert_eq!(Clock::at_kernel_time(JIFFY, turns).jiffies, 4);
    }

    proptest! {
        #[test]
        fn whole_jiffies_are_exact(ns in 0_u64..1 << 50) {
            prop_assert_eq!(JIFFY.floor(ns), ns / JIFFY.ns);
            prop_assert_eq!(JIFFY.floor(ns / JIFFY.ns * JIFFY.ns), ns / JIFFY.ns);
        }

        #[test]
        fn a_timer_is_never_early_nor_later_than_its_level_allows(
            bits: u64,
            now in 0_u64..100_000_000_000,
            delay in 1_u32..30_000,
        ) {
            let mut clock = Clock::from_bits(JIFFY, bits);
            clock.advance(now);
            let lateness = clock.timer_ns(delay) - now;
            let asked = u64::from(delay) * JIFFY.ns;
            prop_assert!(lateness >= asked);
            let granularity = match delay {
                0..63 => 1,
                63..504 => 8,
                504..4_032 => 64,
                _ => 512,
            } * JIFFY.ns;
            prop_assert!(lateness <= asked + granularity + SOFTIRQ_NS);
        }
    }
}
