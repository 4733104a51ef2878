// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SysTick (DDI 0403E section B3.3), kept as the moment of its next zero: nothing is counted down.

use crate::timing::Cycles;

use super::System;

/// The timer.
#[derive(Clone, Debug, Default)]
pub(super) struct SysTick {
    enabled: bool,
    interrupts: bool,
    processor_clock: bool,
    reload: u32,
    /// While it counts: when the counter is 0 next. From there a period is the reload value and one.
    zero_at: u64,
    /// The counter while it stands still.
    held: u32,
    flag: bool,
}

impl SysTick {
    fn period(&self) -> u64 {
        u64::from(self.reload) + 1
    }

    fn counts(&self) -> bool {
        self.enabled && (self.reload != 0 || self.held != 0)
    }

    /// When it is 0 next, as far as it has been brought up to date.
    fn next(&self) -> Option<u64> {
        self.counts().then_some(self.zero_at)
    }

    /// The counter at a moment that it has been brought up to.
    fn value(&self, now: u64) -> u32 {
        if !self.counts() {
            return self.held;
        }
        // At the zero itself the next one is a period away.
        let left = self.zero_at.saturating_sub(now);
        if left == self.period() { 0 } else { left as u32 }
    }

    /// Lets it go on from a value; from 0 it takes the reload value with the next cycle.
    fn count_from(&mut self, value: u32, now: u64) {
        self.held = value;
        self.zero_at = now + if value == 0 { self.period() } else { u64::from(value) };
    }

    /// Passes the zeros up to a moment; whether there was one.
    fn pass(&mut self, now: u64) -> bool {
        let passed = self.counts() && self.zero_at <= now;
        if passed {
            // Without a reload value it stops there.
            self.held = 0;
            let more = (now - self.zero_at) / self.period() + 1;
            self.zero_at += more * self.period();
            self.flag = true;
        }
        passed
    }
}

impl System {
    /// When SysTick is to be looked at next, in cycles of its reading: only its interrupt is noticed from outside.
    pub fn next_tick(&self) -> Option<u64> {
        if self.ticker.interrupts { self.ticker.next() } else { None }
    }

    /// Takes note of SysTick's time: pends its exception and sets COUNTFLAG.
    pub fn tick(&mut self, now: Cycles) {
        let now = self.reading(now);
        // Periods that passed unseen count once, as they do in the chip.
        if self.ticker.pass(now) && self.ticker.interrupts {
            self.pend(super::Exception::SYS_TICK.0);
        }
    }

    /// SYST_CSR to SYST_CALIB by their addresses' last byte.
    pub(super) fn read_ticker(&mut self, register: u32, now: Cycles) -> u32 {
        self.tick(now);
        match register {
            0x10 => {
                let flag = std::mem::take(&mut self.ticker.flag);
                u32::from(flag) << 16
                    | u32::from(self.ticker.processor_clock) << 2
                    | u32::from(self.ticker.interrupts) << 1
                    | u32::from(self.ticker.enabled)
            }
            0x14 => self.ticker.reload,
            0x18 => self.ticker.value(self.reading(now)),
            // No reference clock, and the calibration value is not exact.
            _ => 0xc000_0000,
        }
    }

    pub(super) fn write_ticker(&mut self, register: u32, value: u32, now: Cycles) {
        self.tick(now);
        let clock = self.reading(now);
        let shown = self.ticker.value(clock);
        match register {
            0x10 => {
                self.ticker.enabled = value & 1 == 1;
                self.ticker.interrupts = value >> 1 & 1 == 1;
                self.ticker.processor_clock = value >> 2 & 1 == 1;
                self.ticker.count_from(shown, clock);
            }
            // It takes effect when the counter is next loaded.
            0x14 => {
                self.ticker.reload = value & 0xff_ffff;
                self.ticker.count_from(shown, clock);
            }
            // Any value clears it.
            0x18 => {
                self.ticker.flag = false;
                self.ticker.count_from(0, clock);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: u32 = 0x10;
    const LOAD: u32 = 0x14;
    const VALUE: u32 = 0x18;

    fn at(clock: u64) -> Cycles {
        Cycles::both(clock)
    }

    fn counting(reload: u32) -> System {
        let mut system = System::default();
        system.write_ticker(LOAD, reload, at(0));
        system.write_ticker(VALUE, 0, at(0));
        system.write_ticker(CONTROL, 0b111, at(0));
        system
    }

    #[test]
    fn it_counts_down_and_begins_again() {
        let mut system = counting(9);
        let values: Vec<u32> = (0..12).map(|clock| system.read_ticker(VALUE, at(clock))).collect();
        assert_eq!(values, [0, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 9]);
        assert_eq!(system.next_tick(), Some(20));
        assert_eq!(system.read_ticker(CONTROL, at(12)), 1 << 16 | 0b111);
        assert_eq!(system.read_ticker(CONTROL, at(13)), 0b111, "COUNTFLAG is cleared by a read");
    }

    #[test]
    fn a_new_reload_value_leaves_the_count_alone() {
        let mut system = counting(499);
        assert_eq!(system.read_ticker(VALUE, at(7)), 493);
        system.write_ticker(LOAD, 0xff_ffff, at(7));
        assert_eq!(system.read_ticker(VALUE, at(8)), 492);
        assert_eq!(system.next_tick(), Some(500));
        system.tick(at(500));
        assert_eq!(system.next_tick(), Some(500 + 0x100_0000));
    }

    #[test]
    fn a_reload_value_of_nought_stops_it_at_the_next_zero() {
        let mut system = counting(9);
        system.write_ticker(LOAD, 0, at(3));
        assert_eq!(system.next_tick(), Some(10));
        system.tick(at(10));
        assert_eq!((system.read_ticker(VALUE, at(50)), system.next_tick()), (0, None));
    }

    #[test]
    fn without_its_interrupt_nobody_waits_for_it() {
        let mut system = counting(9);
        system.write_ticker(CONTROL, 0b101, at(0));
        assert_eq!(system.next_tick(), None);
        assert_eq!(system.read_ticker(CONTROL, at(10)), 1 << 16 | 0b101);
    }
}
