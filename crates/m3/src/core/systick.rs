// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SysTick (DDI 0403E section B3.3), stored as the time of its next zero, so that no cycle needs
//! work.

use crate::timing::Cycles;

use super::System;

/// The timer.
#[derive(Clone, Debug, Default)]
pub(super) struct SysTick {
    enabled: bool,
    interrupts: bool,
    processor_clock: bool,
    reload: u32,
    /// The next time the counter reaches 0, while it counts. A period is the reload value plus one.
    zero_at: u64,
    /// The counter while it is stopped.
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

    /// The time of the next zero, as of the last update.
    fn next(&self) -> Option<u64> {
        self.counts().then_some(self.zero_at)
    }

    /// The counter at the time of the last update.
    fn value(&self, now: u64) -> u32 {
        if !self.counts() {
            return self.held;
        }
        // At a zero, the next one is a full period away.
        let left = self.zero_at.saturating_sub(now);
        if left == self.period() { 0 } else { left as u32 }
    }

    /// Continues from a value; 0 takes the reload value with the next cycle.
    fn count_from(&mut self, value: u32, now: u64) {
        self.held = value;
        self.zero_at = now + if value == 0 { self.period() } else { u64::from(value) };
    }

    /// Advances past all zeros up to `now`; whether there was one.
    fn pass(&mut self, now: u64) -> bool {
        let passed = self.counts() && self.zero_at <= now;
        if passed {
            // A reload value of 0 stops it there.
            self.held = 0;
            let more = (now - self.zero_at) / self.period() + 1;
            self.zero_at += more * self.period();
            self.flag = true;
        }
        passed
    }
}

impl System {
    /// When SysTick interrupts next, in cycles of the selected reading; None without its interrupt.
    pub fn next_tick(&self) -> Option<u64> {
        if self.systick.interrupts { self.systick.next() } else { None }
    }

    /// Brings SysTick up to date: pends its exception and sets COUNTFLAG.
    pub fn tick(&mut self, now: Cycles) {
        let now = self.reading(now);
        // Several periods pend one exception, as on the chip.
        if self.systick.pass(now) && self.systick.interrupts {
            self.pend(super::Exception::SYS_TICK.0);
        }
    }

    /// Reads SYST_CSR to SYST_CALIB, by the last byte of the address.
    pub(super) fn read_systick(&mut self, register: u32, now: Cycles) -> u32 {
        self.tick(now);
        match register {
            0x10 => {
                let flag = std::mem::take(&mut self.systick.flag);
                u32::from(flag) << 16
                    | u32::from(self.systick.processor_clock) << 2
                    | u32::from(self.systick.interrupts) << 1
                    | u32::from(self.systick.enabled)
            }
            0x14 => self.systick.reload,
            0x18 => self.systick.value(self.reading(now)),
            // SYST_CALIB: NOREF and SKEW.
            _ => 0xc000_0000,
        }
    }

    pub(super) fn write_systick(&mut self, register: u32, value: u32, now: Cycles) {
        self.tick(now);
        let clock = self.reading(now);
        let shown = self.systick.value(clock);
        match register {
            0x10 => {
                self.systick.enabled = value & 1 == 1;
                self.systick.interrupts = value >> 1 & 1 == 1;
                self.systick.processor_clock = value >> 2 & 1 == 1;
                self.systick.count_from(shown, clock);
            }
            // Takes effect at the next reload.
            0x14 => {
                self.systick.reload = value & 0xff_ffff;
                self.systick.count_from(shown, clock);
            }
            // Any write clears the counter.
            0x18 => {
                self.systick.flag = false;
                self.systick.count_from(0, clock);
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
        system.write_systick(LOAD, reload, at(0));
        system.write_systick(VALUE, 0, at(0));
        system.write_systick(CONTROL, 0b111, at(0));
        system
    }

    #[test]
    fn counter_reloads_at_zero() {
        let mut system = counting(9);
        let values: Vec<u32> = (0..12).map(|clock| system.read_systick(VALUE, at(clock))).collect();
        assert_eq!(values, [0, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 9]);
        assert_eq!(system.next_tick(), Some(20));
        assert_eq!(system.read_systick(CONTROL, at(12)), 1 << 16 | 0b111);
        assert_eq!(system.read_systick(CONTROL, at(13)), 0b111, "COUNTFLAG is cleared by a read");
    }

    #[test]
    fn new_reload_value_keeps_current_count() {
        let mut system = counting(499);
        assert_eq!(system.read_systick(VALUE, at(7)), 493);
        system.write_systick(LOAD, 0xff_ffff, at(7));
        assert_eq!(system.read_systick(VALUE, at(8)), 492);
        assert_eq!(system.next_tick(), Some(500));
        system.tick(at(500));
        assert_eq!(system.next_tick(), Some(500 + 0x100_0000));
    }

    #[test]
    fn zero_reload_value_stops_at_next_zero() {
        let mut system = counting(9);
        system.write_systick(LOAD, 0, at(3));
        assert_eq!(system.next_tick(), Some(10));
        system.tick(at(10));
        assert_eq!((system.read_systick(VALUE, at(50)), system.next_tick()), (0, None));
    }

    #[test]
    fn disabled_interrupt_has_no_next_tick() {
        let mut system = counting(9);
        system.write_systick(CONTROL, 0b101, at(0));
        assert_eq!(system.next_tick(), None);
        assert_eq!(system.read_systick(CONTROL, at(10)), 1 << 16 | 0b101);
    }
}
