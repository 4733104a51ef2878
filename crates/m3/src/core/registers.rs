// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registers and program status (DDI 0403E section B1.4).

use crate::isa::{Condition, Reg};

/// N, Z, C and V. N and Z are stored as the results that they describe, which saves work in most
/// instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// N is its bit 31.
    pub negative: u32,
    /// Z is set where it is 0.
    pub zero: u32,
    /// C.
    pub carry: bool,
    /// V.
    pub overflow: bool,
}

impl Default for Flags {
    fn default() -> Self {
        Flags { negative: 0, zero: 1, carry: false, overflow: false }
    }
}

impl Flags {
    /// N.
    pub fn n(self) -> bool {
        self.negative >> 31 == 1
    }

    /// Z.
    pub fn z(self) -> bool {
        self.zero == 0
    }

    /// Whether a condition holds (DDI 0403E table A7-1).
    #[inline]
    pub fn satisfy(self, condition: Condition) -> bool {
        let plain = match condition.0 >> 1 {
            0 => self.z(),
            1 => self.carry,
            2 => self.n(),
            3 => self.overflow,
            4 => self.carry && !self.z(),
            5 => self.n() == self.overflow,
            6 => self.n() == self.overflow && !self.z(),
            _ => return true,
        };
        plain ^ (condition.0 & 1 == 1)
    }

    /// Bits 31 to 28 of APSR.
    pub fn to_bits(self) -> u32 {
        u32::from(self.n()) << 31
            | u32::from(self.z()) << 30
            | u32::from(self.carry) << 29
            | u32::from(self.overflow) << 28
    }

    /// From bits 31 to 28 of APSR.
    pub fn from_bits(bits: u32) -> Self {
        Flags {
            negative: bits & 1 << 31,
            zero: !bits >> 30 & 1,
            carry: bits >> 29 & 1 == 1,
            overflow: bits >> 28 & 1 == 1,
        }
    }
}

/// The programmer's model of the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// R0 to R15. During an instruction R15 is its address plus 4, between instructions the address
    /// of the next one.
    pub r: [u32; 16],
    /// The flags.
    pub flags: Flags,
    /// Q, the sticky saturation flag.
    pub saturated: bool,
    /// EPSR.IT.
    pub it_state: u8,
    /// The number of the active exception, 0 in Thread mode.
    pub ipsr: u16,
    /// PRIMASK, one bit.
    pub primask: bool,
    /// FAULTMASK, one bit.
    pub faultmask: bool,
    /// BASEPRI.
    pub basepri: u8,
    /// CONTROL.nPRIV.
    pub unprivileged: bool,
    /// CONTROL.SPSEL.
    pub process_stack: bool,
    /// The stack pointer (MSP or PSP) that R13 does not select.
    pub other_stack: u32,
}

impl Registers {
    /// A register's value as an operand.
    #[inline]
    pub fn get(&self, register: Reg) -> u32 {
        self.r[usize::from(register & 15)]
    }

    /// Sets R0 to R14; bits 1 and 0 of a stack pointer stay 0 (DDI 0403E section B1.4.1).
    #[inline]
    pub fn set(&mut self, register: Reg, value: u32) {
        let value = if register == 13 { value & !3 } else { value };
        self.r[usize::from(register & 15)] = value;
    }

    /// The address of the next instruction, between instructions.
    pub fn pc(&self) -> u32 {
        self.r[15]
    }

    /// xPSR as MRS and the stack show it.
    pub fn xpsr(&self) -> u32 {
        let it = u32::from(self.it_state);
        self.flags.to_bits()
            | u32::from(self.saturated) << 27
            | (it & 3) << 25
            | 1 << 24
            | (it >> 2) << 10
            | u32::from(self.ipsr)
    }

    /// Sets APSR and EPSR, as the return from an exception does.
    pub fn set_xpsr(&mut self, bits: u32) {
        self.flags = Flags::from_bits(bits);
        self.saturated = bits >> 27 & 1 == 1;
        self.it_state = ((bits >> 25 & 3) | (bits >> 10 & 0x3f) << 2) as u8;
        self.ipsr = (bits & 0x1ff) as u16;
    }

    /// Whether the processor is in Handler mode.
    pub fn in_handler(&self) -> bool {
        self.ipsr != 0
    }

    /// Whether execution is privileged.
    pub fn privileged(&self) -> bool {
        self.in_handler() || !self.unprivileged
    }

    /// The main stack pointer.
    pub fn main_stack(&self) -> u32 {
        if self.process_stack { self.other_stack } else { self.r[13] }
    }

    /// The process stack pointer.
    pub fn process_stack(&self) -> u32 {
        if self.process_stack { self.r[13] } else { self.other_stack }
    }

    /// Sets the main stack pointer.
    pub fn set_main_stack(&mut self, value: u32) {
        *(if self.process_stack { &mut self.other_stack } else { &mut self.r[13] }) = value & !3;
    }

    /// Sets the process stack pointer.
    pub fn set_process_stack(&mut self, value: u32) {
        *(if self.process_stack { &mut self.r[13] } else { &mut self.other_stack }) = value & !3;
    }

    /// Makes R13 the process stack pointer, or the main one.
    pub fn select_stack(&mut self, process: bool) {
        if process != self.process_stack {
            std::mem::swap(&mut self.r[13], &mut self.other_stack);
            self.process_stack = process;
        }
    }
}

/// EPSR.IT after an instruction of an IT block (DDI 0403E section A7.3.3, ITAdvance).
pub fn advance_it(state: u8) -> u8 {
    if state & 7 == 0 { 0 } else { state & 0xe0 | (state << 1) & 0x1f }
}
