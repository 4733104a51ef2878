// SPDX-License-Identifier: Apache-2.0 OR MIT
//! System registers: SysTick, NVIC, SCB, and the cycle counter of DWT (DDI 0403E chapters B3 and
//! C1).

use super::Core;
use super::systick::SysTick;
use crate::isa::Width;
use crate::timing::Cycles;

/// Cortex-M3 r2p1 (DDI 0337I section 4.3).
const CPUID: u32 = 0x412f_c231;
/// The key that a write to AIRCR needs.
const VECTKEY: u32 = 0x05fa;

/// External interrupts of the NVIC.
pub const INTERRUPTS: usize = 240;

/// The system registers' state.
#[derive(Clone, Debug)]
pub struct System {
    /// VTOR.
    pub vector_table: u32,
    /// Which priority bits exist.
    pub priority_mask: u8,
    /// Whether SysTick and CYCCNT count by the low reading of the cycle rules instead of the high
    /// one.
    pub low_reading: bool,
    /// The event register of WFE and SEV.
    pub event: bool,
    /// SYSRESETREQ was written.
    pub reset_requested: bool,
    /// Pending exceptions, one bit each.
    pub(super) pending: [u64; 4],
    /// Active exceptions, one bit each.
    pub(super) active: [u64; 4],
    /// Enabled interrupts, by exception number.
    enabled: [u64; 4],
    priorities: [u8; 16 + INTERRUPTS],
    priority_group: u8,
    scr: u32,
    ccr: u32,
    /// UsageFault, BusFault and MemManage enables: SHCSR bits 18 to 16.
    handlers: u32,
    pub(super) cfsr: u32,
    pub(super) hfsr: u32,
    pub(super) mmfar: u32,
    pub(super) bfar: u32,
    demcr: u32,
    pub(super) systick: SysTick,
    counter: CycleCounter,
}

impl Default for System {
    fn default() -> Self {
        System {
            vector_table: 0,
            priority_mask: 0xf0,
            low_reading: false,
            event: false,
            reset_requested: false,
            pending: [0; 4],
            active: [0; 4],
            enabled: [0; 4],
            priorities: [0; 16 + INTERRUPTS],
            priority_group: 0,
            scr: 0,
            // STKALIGN, set at reset in r2p1.
            ccr: 1 << 9,
            handlers: 0,
            cfsr: 0,
            hfsr: 0,
            mmfar: 0,
            bfar: 0,
            demcr: 0,
            systick: SysTick::default(),
            counter: CycleCounter::default(),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct CycleCounter {
    enabled: bool,
    /// CYCCNT minus the clock while it counts; its value while it is stopped.
    offset: u32,
}

impl System {
    /// Whether an integer division by zero is a fault (CCR.DIV_0_TRP).
    pub fn traps_division_by_zero(&self) -> bool {
        self.ccr >> 4 & 1 == 1
    }

    /// Whether an unaligned access is a fault (CCR.UNALIGN_TRP).
    pub fn traps_unaligned(&self) -> bool {
        self.ccr >> 3 & 1 == 1
    }

    pub(super) fn aligns_stack(&self) -> bool {
        self.ccr >> 9 & 1 == 1
    }

    pub(super) fn sleeps_on_exit(&self) -> bool {
        self.scr >> 1 & 1 == 1
    }

    pub(super) fn returns_to_thread_from_anywhere(&self) -> bool {
        self.ccr & 1 == 1
    }

    /// The clock by the reading that the chip's counters use.
    pub fn reading(&self, now: Cycles) -> u64 {
        if self.low_reading { now.low } else { now.high }
    }

    /// Makes an exception pending.
    pub(super) fn pend(&mut self, exception: u16) {
        set(&mut self.pending, exception, true);
        // SEVONPEND.
        if self.scr >> 4 & 1 == 1 {
            self.event = true;
        }
    }

    pub(super) fn is_enabled(&self, number: u16) -> bool {
        match number {
            4 => self.handlers >> 16 & 1 == 1,
            5 => self.handlers >> 17 & 1 == 1,
            6 => self.handlers >> 18 & 1 == 1,
            0..16 => true,
            _ => get(&self.enabled, number),
        }
    }

    /// The group priority of an exception, which decides preemption.
    pub(super) fn group_priority(&self, number: u16) -> i16 {
        match self.priority(number) {
            fixed @ ..0 => fixed,
            priority => priority & !((2i16 << self.priority_group) - 1),
        }
    }

    /// DDI 0403E table B1-4.
    pub(super) fn priority(&self, number: u16) -> i16 {
        match number {
            1 => -3,
            2 => -2,
            3 => -1,
            _ => i16::from(self.priorities[usize::from(number)]),
        }
    }

    pub(super) fn group_of(&self, priority: u8) -> i16 {
        i16::from(priority) & !((2i16 << self.priority_group) - 1)
    }

    fn read_word(&mut self, at: u32, now: Cycles) -> Option<u32> {
        let clock = self.reading(now);
        Some(match at {
            0xe000_1000 => u32::from(self.counter.enabled) | 4 << 28,
            0xe000_1004 => self.counter.offset.wrapping_add(if self.counter.enabled {
                clock as u32
            } else {
                0
            }),
            0xe000_1008..0xe000_2000 => 0,
            // ITM stimulus ports are always ready; their data is discarded.
            0xe000_0000..0xe000_1000 => 1,
            0xe000_e004 => (INTERRUPTS as u32).div_ceil(32) - 1,
            0xe000_e010..0xe000_e020 => self.read_systick(at & 0xff, now),
            0xe000_e100..0xe000_e120 | 0xe000_e180..0xe000_e1a0 => {
                interrupt_word(&self.enabled, at)
            }
            0xe000_e200..0xe000_e220 | 0xe000_e280..0xe000_e2a0 => {
                interrupt_word(&self.pending, at)
            }
            0xe000_e300..0xe000_e320 => interrupt_word(&self.active, at),
            0xe000_e400..0xe000_e4f0 => self.priority_word(16 + (at - 0xe000_e400)),
            0xe000_ed00 => CPUID,
            0xe000_ed04 => self.icsr(),
            0xe000_ed08 => self.vector_table,
            0xe000_ed0c => 0xfa05_0000 | u32::from(self.priority_group) << 8,
            0xe000_ed10 => self.scr,
            0xe000_ed14 => self.ccr,
            0xe000_ed18..0xe000_ed24 => self.priority_word(4 + (at - 0xe000_ed18)),
            0xe000_ed24 => self.shcsr(),
            0xe000_ed28 => self.cfsr,
            0xe000_ed2c => self.hfsr,
            0xe000_ed34 => self.mmfar,
            0xe000_ed38 => self.bfar,
            0xe000_edfc => self.demcr,
            0xe000_e000..0xe000_f000 => 0,
            // The rest of the private peripheral bus (TPIU, FPB, ROM table) reads as zero.
            0xe000_2000..0xe010_0000 => 0,
            _ => return None,
        })
    }

    fn write_word(&mut self, at: u32, value: u32, now: Cycles) -> bool {
        let clock = self.reading(now);
        match at {
            0xe000_1000 => self.enable_counter(value & 1 == 1, clock),
            0xe000_1004 => {
                self.counter.offset =
                    value.wrapping_sub(if self.counter.enabled { clock as u32 } else { 0 });
            }
            0xe000_e010..0xe000_e020 => self.write_systick(at & 0xff, value, now),
            0xe000_e100..0xe000_e120 => change_interrupts(&mut self.enabled, at, value, true),
            0xe000_e180..0xe000_e1a0 => change_interrupts(&mut self.enabled, at, value, false),
            0xe000_e200..0xe000_e220 => interrupts(at, value).for_each(|number| self.pend(number)),
            0xe000_e280..0xe000_e2a0 => change_interrupts(&mut self.pending, at, value, false),
            0xe000_e400..0xe000_e4f0 => self.set_priority_word(16 + (at - 0xe000_e400), value),
            0xe000_ed04 => self.set_icsr(value),
            // Bits 31, 30 and 6 to 0 do not exist.
            0xe000_ed08 => self.vector_table = value & 0x3fff_ff80,
            0xe000_ed0c if value >> 16 == VECTKEY => {
                self.priority_group = (value >> 8 & 7) as u8;
                self.reset_requested |= value >> 2 & 1 == 1;
            }
            0xe000_ed10 => self.scr = value & 0x16,
            0xe000_ed14 => self.ccr = value & 0x31b,
            0xe000_ed18..0xe000_ed24 => self.set_priority_word(4 + (at - 0xe000_ed18), value),
            0xe000_ed24 => self.handlers = value & 0x7_0000,
            0xe000_ed28 => self.cfsr &= !value,
            0xe000_ed2c => self.hfsr &= !value,
            0xe000_ed34 => self.mmfar = value,
            0xe000_ed38 => self.bfar = value,
            0xe000_edfc => self.demcr = value,
            0xe000_ef00 => self.pend(16 + (value & 0xff).min(INTERRUPTS as u32 - 1) as u16),
            0xe000_0000..0xe010_0000 => {}
            _ => return false,
        }
        true
    }

    /// CYCCNT counts only while DEMCR.TRCENA is set, which it is not after power-up.
    fn enable_counter(&mut self, enable: bool, clock: u64) {
        let enable = enable && self.demcr >> 24 & 1 == 1;
        if enable != self.counter.enabled {
            let shown = self.counter.offset.wrapping_add(if self.counter.enabled {
                clock as u32
            } else {
                0
            });
            self.counter.offset = shown.wrapping_sub(if enable { clock as u32 } else { 0 });
            self.counter.enabled = enable;
        }
    }

    fn icsr(&self) -> u32 {
        let vectactive = (0..256u16)
            .filter(|number| get(&self.active, *number))
            .min_by_key(|n| self.priority(*n));
        let pending = (0..256u16)
            .filter(|number| get(&self.pending, *number) && self.is_enabled(*number))
            .min_by_key(|number| self.priority(*number));
        let external =
            self.pending[0] >> 16 != 0 || self.pending[1..].iter().any(|word| *word != 0);
        u32::from(get(&self.pending, 2)) << 31
            | u32::from(get(&self.pending, 14)) << 28
            | u32::from(get(&self.pending, 15)) << 26
            | u32::from(external) << 22
            | u32::from(pending.unwrap_or(0)) << 12
            | u32::from(self.active.iter().map(|word| word.count_ones()).sum::<u32>() <= 1) << 11
            | u32::from(vectactive.unwrap_or(0))
    }

    fn set_icsr(&mut self, value: u32) {
        for (bit, number, pend) in
            [(31, 2, true), (28, 14, true), (27, 14, false), (26, 15, true), (25, 15, false)]
        {
            if value >> bit & 1 == 0 {
                continue;
            }
            if pend { self.pend(number) } else { set(&mut self.pending, number, false) }
        }
    }

    fn shcsr(&self) -> u32 {
        let active = [(4, 0), (5, 1), (6, 3), (11, 7), (12, 8), (14, 10), (15, 11)];
        let pending = [(6, 12), (4, 13), (5, 14), (11, 15)];
        let bit = |set: &[u64; 4], (number, bit): (u16, u32)| u32::from(get(set, number)) << bit;
        self.handlers
            | active.into_iter().map(|pair| bit(&self.active, pair)).sum::<u32>()
            | pending.into_iter().map(|pair| bit(&self.pending, pair)).sum::<u32>()
    }

    fn priority_word(&self, first: u32) -> u32 {
        let first = first as usize;
        u32::from_le_bytes(
            [0, 1, 2, 3].map(|index| self.priorities.get(first + index).copied().unwrap_or(0)),
        )
    }

    fn set_priority_word(&mut self, first: u32, value: u32) {
        for (index, byte) in value.to_le_bytes().into_iter().enumerate() {
            if let Some(priority) = self.priorities.get_mut(first as usize + index) {
                *priority = byte & self.priority_mask;
            }
        }
    }
}

impl Core {
    /// The word of a system register as a debugger reads it, without effects.
    pub fn peek_system(&self, at: u32) -> Option<u32> {
        // What is read may change with it (COUNTFLAG): in a copy.
        self.system.clone().read_word(at, self.clock)
    }

    /// Writes the word of a system register as a debugger does, which is privileged.
    pub fn poke_system(&mut self, at: u32, value: u32) -> bool {
        self.system.write_word(at, value, self.clock)
    }

    pub(super) fn system_read(&mut self, width: Width, at: u32, now: Cycles) -> Option<u32> {
        if !self.registers.privileged() {
            return None;
        }
        let word = self.system.read_word(at & !3, now)?;
        Some(if width == Width::Word { word } else { word >> (8 * (at & 3)) })
    }

    /// Narrow stores change their part of the word. In registers where writing a one acts, the bits
    /// around it are written as zeros.
    pub(super) fn system_write(&mut self, width: Width, at: u32, value: u32, now: Cycles) -> bool {
        if !self.registers.privileged() {
            // Unprivileged stores fault, including those to STIR (CCR.USERSETMPEND is not
            // modelled).
            return false;
        }
        if width == Width::Word {
            return self.system.write_word(at, value, now);
        }
        let shift = 8 * (at & 3);
        let mask = (if width.bytes() == 1 { 0xff } else { 0xffff }) << shift;
        let by_ones = matches!(
            at,
            0xe000_e100..0xe000_e2a0 | 0xe000_ed04..0xe000_ed08 | 0xe000_ed28..0xe000_ed30
        );
        let word = match self.system.read_word(at & !3, now) {
            Some(_) if by_ones => 0,
            Some(word) => word,
            None => return false,
        };
        self.system.write_word(at & !3, word & !mask | value << shift & mask, now)
    }
}

pub(super) fn get(set: &[u64; 4], number: u16) -> bool {
    set[usize::from(number >> 6 & 3)] >> (number & 63) & 1 == 1
}

pub(super) fn set(set: &mut [u64; 4], number: u16, value: bool) {
    let word = &mut set[usize::from(number >> 6 & 3)];
    *word = *word & !(1 << (number & 63)) | u64::from(value) << (number & 63);
}

fn interrupt_word(words: &[u64; 4], at: u32) -> u32 {
    let first = (at & 0x1f) / 4 * 32;
    (0..32)
        .filter(|bit| first + bit < INTERRUPTS as u32 && get(words, (16 + first + bit) as u16))
        .map(|bit| 1 << bit)
        .sum()
}

/// The exceptions whose bits are set in a word of the NVIC.
fn interrupts(at: u32, value: u32) -> impl Iterator<Item = u16> {
    let first = (at & 0x1f) / 4 * 32;
    (0..32)
        .filter(move |bit| value >> bit & 1 == 1 && first + bit < INTERRUPTS as u32)
        .map(move |bit| (16 + first + bit) as u16)
}

fn change_interrupts(words: &mut [u64; 4], at: u32, value: u32, to: bool) {
    interrupts(at, value).for_each(|number| set(words, number, to));
}
