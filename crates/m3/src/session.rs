// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program loaded on a chip, ready to run, and the description of its failure.

use crate::chip::{Chip, ChipError, UnknownChip};
use crate::core::{Fault, Registers};
use crate::machine::Machine;
use crate::memory::MapError;
use crate::printable::is_obeyed;
use crate::program::{Program, ProgramError};
use crate::stop::Stop;
use crate::timing::Rules;

/// Settings of a run.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The chip's name.
    pub chip: String,
    /// Its description ([`Chip::parse`]), if it is not a built-in one.
    pub chip_file: Option<String>,
    /// Wait states by the name of a memory; memories not named have none.
    pub wait_states: Vec<(String, u64)>,
    /// Whether each code word and each data access waits, also where the chip's flash reads lines.
    pub plain_wait_states: bool,
    /// Whether faults go to the program's handlers; otherwise the first one ends the run.
    pub deliver_faults: bool,
    /// Whether the chip's counters (SysTick, CYCCNT) count by the low reading of the rules.
    pub low_reading: bool,
    /// What the program reads from its console.
    pub input: Vec<u8>,
    /// Its command line.
    pub arguments: String,
    /// Whether a program for another core of Arm's is run, by a Cortex-M3's instructions and
    /// timing.
    pub any_core: bool,
}

/// Why a run cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// Unknown chip.
    #[error(transparent)]
    Chip(#[from] UnknownChip),
    /// The chip's file is invalid.
    #[error(transparent)]
    ChipFile(#[from] ChipError),
    /// The memory map is invalid.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The ELF file cannot be run.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Wait states for a memory that the chip does not have.
    #[error("{chip} has no memory {name}: its memories are {known}")]
    Region {
        /// The chip.
        chip: String,
        /// The unknown memory.
        name: String,
        /// The chip's memories.
        known: String,
    },
    /// The built-in cycle rules are invalid.
    #[error("the cycle rules cannot be read: {0}")]
    Rules(String),
}

/// A program on a chip.
#[derive(Debug)]
pub struct Session {
    /// The chip, with the wait states of the setup.
    pub chip: Chip,
    /// The program.
    pub program: Program,
    /// The chip with the program in it, after reset.
    pub machine: Machine,
}

impl Session {
    /// Loads the program of an ELF file onto a chip.
    ///
    /// # Errors
    /// [`SetupError`] if file or setup is invalid.
    pub fn new(file: &[u8], setup: &Setup) -> Result<Self, SetupError> {
        let chip = setup.chip()?;
        let rules = Rules::cortex_m3().map_err(|error| SetupError::Rules(error.to_string()))?;
        let program =
            if setup.any_core { Program::parse_any_core(file)? } else { Program::parse(file)? };
        let mut machine = Machine::new(&chip, rules)?;
        machine.semihosting.input = setup.input.iter().copied().collect();
        machine.semihosting.command_line.clone_from(&setup.arguments);
        machine.deliver_faults = setup.deliver_faults;
        program.load(&mut machine, &chip)?;
        machine.core.system.low_reading = setup.low_reading;
        Ok(Session { chip, program, machine })
    }

    /// Resets the chip: clock, counts and marks begin anew, memories keep their content.
    ///
    /// # Errors
    /// [`SetupError`] if the program cannot start, because it has overwritten what it starts from.
    pub fn reset(&mut self) -> Result<(), SetupError> {
        let low_reading = self.machine.core.system.low_reading;
        self.machine.begin_anew();
        self.program.start(&mut self.machine, &self.chip)?;
        self.machine.core.system.low_reading = low_reading;
        Ok(())
    }

    /// Why the program ended, where, and with which registers, in one line.
    pub fn describe(&self, stop: &Stop) -> String {
        let registers = &self.machine.core.registers;
        // PC is the target of a wild jump; the return address shows where it came from.
        let address = stop.address().unwrap_or(registers.pc());
        let mut line = format!("{stop} at {}", self.program.describe(address));
        if let Stop::Fault { fault: Fault::Fetch { .. } | Fault::ExecuteNever { .. }, .. }
        | Stop::Fault { fault: Fault::InvalidState { .. }, .. } = stop
        {
            line += &format!(", called from {}", self.program.describe(registers.r[14] & !1));
        }
        if let Stop::Fault { fault: Fault::Data { address, write: true }, .. } = stop
            && let Some(region) = self.machine.core.memory.region_of(*address)
        {
            line += &format!(
                "; {} is read-only: link variables to RAM, as `warifu m3 init` does",
                region.name
            );
        }
        // Symbol names may contain any character.
        let line = line.replace(is_obeyed, "?");
        line + "; " + &register_dump(registers)
    }
}

impl Setup {
    fn chip(&self) -> Result<Chip, SetupError> {
        let mut chip: Chip = match &self.chip_file {
            Some(text) => Chip::parse(text)?,
            None => self.chip.parse()?,
        };
        if self.plain_wait_states {
            chip.regions.iter_mut().for_each(|region| region.lines = None);
        }
        for (name, cycles) in &self.wait_states {
            let Some(region) = chip.regions.iter_mut().find(|region| region.name == *name) else {
                let known: Vec<&str> =
                    chip.regions.iter().map(|region| region.name.as_str()).collect();
                return Err(SetupError::Region {
                    chip: chip.name.clone(),
                    name: name.clone(),
                    known: known.join(", "),
                });
            };
            region.wait_states = *cycles;
        }
        Ok(chip)
    }
}

/// The registers in one line, as a debugger prints them.
fn register_dump(registers: &Registers) -> String {
    let mut text = String::new();
    for (index, value) in registers.r.iter().enumerate() {
        let name = match index {
            13 => "sp".to_owned(),
            14 => "lr".to_owned(),
            15 => "pc".to_owned(),
            _ => format!("r{index}"),
        };
        text += &format!("{name}={value:08x} ");
    }
    text + &format!("xpsr={:08x}", registers.xpsr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_chip_and_memory_are_named() {
        let chip = Setup { chip: "lpc1769".into(), ..Setup::default() };
        let error = Session::new(&[], &chip).expect_err("there is no such chip");
        assert!(error.to_string().starts_with("unknown chip lpc1769: choose lpc1768, stm32f103, "));
        let region = Setup {
            chip: "stm32f103".into(),
            wait_states: vec![("rom".into(), 2)],
            ..Setup::default()
        };
        let error = Session::new(&[], &region).expect_err("there is no such memory");
        assert_eq!(error.to_string(), "stm32f103 has no memory rom: its memories are flash, sram");
    }

    #[test]
    fn wait_states_apply_to_the_named_memory() {
        let setup = Setup {
            chip: "stm32f103".into(),
            wait_states: vec![("flash".into(), 2)],
            ..Setup::default()
        };
        let chip = setup.chip().expect("the chip is known");
        let waits: Vec<u64> = chip.regions.iter().map(|region| region.wait_states).collect();
        assert_eq!(waits, [2, 0]);
    }
}
