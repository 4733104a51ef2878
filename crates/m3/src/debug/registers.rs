// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The registers as a debugger numbers and describes them (gdb's manual, "ARM Features").

use std::num::NonZeroUsize;

use gdbstub::arch::{Arch, RegId, Registers as Described};

use crate::core::Registers;

/// Bytes of a register on the wire.
pub const BYTES: usize = 4;
/// R0 to R15, xPSR, MSP, PSP, PRIMASK, BASEPRI, FAULTMASK, CONTROL.
const COUNT: usize = 23;

/// A Cortex-M3 to gdb.
#[derive(Debug)]
pub enum CortexM3 {}

impl Arch for CortexM3 {
    type Usize = u32;
    type Registers = Values;
    type BreakpointKind = usize;
    type RegId = Number;

    fn target_description_xml() -> Option<&'static str> {
        Some(include_str!("target.xml"))
    }
}

/// A register's number in `target.xml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number(usize);

impl RegId for Number {
    fn from_raw_id(id: usize) -> Option<(Self, Option<NonZeroUsize>)> {
        (id < COUNT).then_some((Number(id), NonZeroUsize::new(BYTES)))
    }

    fn to_raw_id(&self) -> Option<usize> {
        Some(self.0)
    }
}

impl Number {
    /// The register's value.
    pub fn read(self, registers: &Registers) -> u32 {
        match self.0 {
            number @ 0..=15 => registers.r[number],
            16 => registers.xpsr(),
            17 => registers.main_stack(),
            18 => registers.process_stack(),
            19 => u32::from(registers.primask),
            20 => u32::from(registers.basepri),
            21 => u32::from(registers.faultmask),
            _ => u32::from(registers.process_stack) << 1 | u32::from(registers.unprivileged),
        }
    }

    /// Sets it, as far as it can be set: the number of the active exception stays.
    pub fn write(self, registers: &mut Registers, value: u32, priority_mask: u8) {
        match self.0 {
            15 => registers.r[15] = value & !1,
            number @ 0..=14 => registers.set(number as u8, value),
            16 => {
                let active = registers.ipsr;
                registers.set_xpsr(value);
                registers.ipsr = active;
            }
            17 => registers.set_main_stack(value),
            18 => registers.set_process_stack(value),
            19 => registers.primask = value & 1 == 1,
            20 => registers.basepri = value as u8 & priority_mask,
            21 => registers.faultmask = value & 1 == 1,
            _ => {
                registers.unprivileged = value & 1 == 1;
                // Handler mode always uses the main stack.
                if !registers.in_handler() {
                    registers.select_stack(value & 2 != 0);
                }
            }
        }
    }
}

/// All registers at once, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values([u32; COUNT]);

impl Values {
    /// Those of the processor.
    pub fn of(registers: &Registers) -> Self {
        let mut values = [0; COUNT];
        for (number, value) in values.iter_mut().enumerate() {
            *value = Number(number).read(registers);
        }
        Values(values)
    }

    /// Sets those that changed: R13 and the two stack pointers are names of the same registers.
    pub fn write(&self, registers: &mut Registers, priority_mask: u8) {
        let before = Values::of(registers);
        for (number, (value, old)) in self.0.into_iter().zip(before.0).enumerate() {
            if value != old {
                Number(number).write(registers, value, priority_mask);
            }
        }
    }
}

impl Described for Values {
    type ProgramCounter = u32;

    fn pc(&self) -> u32 {
        self.0[15]
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        for byte in self.0.into_iter().flat_map(u32::to_le_bytes) {
            write_byte(Some(byte));
        }
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        let (words, []) = bytes.as_chunks::<BYTES>() else { return Err(()) };
        if words.len() != COUNT {
            return Err(());
        }
        for (value, word) in self.0.iter_mut().zip(words) {
            *value = u32::from_le_bytes(*word);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_and_numbers_agree() {
        let described = include_str!("target.xml").matches("<reg ").count();
        assert_eq!(described, COUNT);
        assert!(Number::from_raw_id(COUNT - 1).is_some() && Number::from_raw_id(COUNT).is_none());
    }

    #[test]
    fn every_register_reads_as_written_and_the_active_exception_stays() {
        let mut registers = Registers { ipsr: 15, ..Registers::default() };
        for number in (0..COUNT).map(Number) {
            number.write(&mut registers, 0xffff_fffe, 0xf0);
        }
        assert_eq!(registers.ipsr, 15);
        assert_eq!(Number(13).read(&registers), 0xffff_fffc);
        assert_eq!(Number(16).read(&registers) >> 24, 0xff);
        assert_eq!(Number(20).read(&registers), 0xf0);
        assert_eq!(Number(22).read(&registers), 0, "Handler mode has the main stack");
    }

    #[test]
    fn writing_all_registers_back_changes_nothing() {
        let mut registers = Registers { other_stack: 8, ..Registers::default() };
        registers.r[13] = 16;
        registers.select_stack(true);
        let before = registers;
        let mut values = Values::default();
        let mut bytes = Vec::new();
        Values::of(&registers).gdb_serialize(|byte| bytes.extend(byte));
        assert_eq!(values.gdb_deserialize(&bytes), Ok(()));
        values.write(&mut registers, 0xff);
        assert_eq!(registers, before);
        assert_eq!(values.gdb_deserialize(&bytes[1..]), Err(()));
    }
}
