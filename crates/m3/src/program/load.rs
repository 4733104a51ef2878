// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads a program into a chip: memory, vector table, stack limit, and the answer to SYS_HEAPINFO.

use super::{Program, ProgramError};
use crate::chip::Chip;
use crate::core::Fault;
use crate::machine::Machine;

impl Program {
    /// Loads the program into a chip and resets it.
    ///
    /// # Errors
    /// [`ProgramError`] if it does not fit the chip or cannot start.
    pub fn load(&self, machine: &mut Machine, chip: &Chip) -> Result<(), ProgramError> {
        for (address, content) in self.segments() {
            if !machine.core.memory.program(address, content) {
                return Err(self.outside(address, content.len() as u32, chip));
            }
        }
        for (address, bytes) in &self.extents {
            let span = machine.core.memory.span(*address);
            if span.is_none_or(|span| *bytes - 1 > span.last - address) {
                return Err(self.outside(*address, *bytes, chip));
            }
        }
        self.start(machine, chip)
    }

    /// Resets a chip that has the program in it.
    pub(crate) fn start(&self, machine: &mut Machine, chip: &Chip) -> Result<(), ProgramError> {
        machine.semihosting.heap_info = self.heap_info(machine, chip);
        machine.semihosting.stack_limit =
            self.stack_limit(machine, machine.semihosting.heap_info[2]);
        let table = self.vector_table(machine, chip)?;
        let result = match table {
            Some(table) => machine.core.reset(table),
            None => self.start_at_entry(machine, chip),
        };
        machine.core.system.priority_mask = chip.priority_mask;
        let stack = machine.core.registers.r[13];
        machine.core.stack_limit = match table {
            Some(_) => self.stack_limit(machine, stack),
            // Start-up code that uses this stack asks for it with SYS_HEAPINFO; newlib's nosys
            // start-up sets up another one.
            None => self.named_limit(machine, stack).unwrap_or(0),
        };
        result.map_err(ProgramError::Start)
    }

    fn outside(&self, address: u32, bytes: u32, chip: &Chip) -> ProgramError {
        let memories: Vec<String> = chip
            .regions
            .iter()
            .map(|region| {
                format!("{} at {:#010x}, {} KiB", region.name, region.base, region.bytes / 1024)
            })
            .collect();
        ProgramError::OutsideMemory {
            address,
            bytes,
            chip: chip.name.to_owned(),
            memories: memories.join("; "),
        }
    }

    /// The limit of a stack that begins at an address: the linker script's symbol for it, the end
    /// of static data below the stack, or the start of its memory.
    fn stack_limit(&self, machine: &Machine, stack: u32) -> u32 {
        let memory = machine.core.memory.span(stack.wrapping_sub(1));
        self.named_limit(machine, stack).or(memory.map(|span| span.first)).unwrap_or(0)
    }

    /// A symbol counts as limit if it lies below the stack in the same memory.
    fn named_limit(&self, machine: &Machine, stack: u32) -> Option<u32> {
        let memory = machine.core.memory.span(stack.wrapping_sub(1))?;
        ["__StackLimit", "__stack_limit", "_sstack", "__bss_end__", "_ebss", "_end", "end"]
            .into_iter()
            .filter_map(|name| self.label(name))
            .find(|limit| (memory.first..=stack).contains(limit))
    }

    fn heap_info(&self, machine: &Machine, chip: &Chip) -> [u32; 4] {
        let data = chip.regions.iter().filter(|region| region.writable);
        let Some(memory) =
            data.max_by_key(|region| region.base == 0x2000_0000 || region.base == 0x1000_0000)
        else {
            return [0; 4];
        };
        let end = memory.base.wrapping_add(memory.bytes);
        let heap = ["end", "_end", "__end__"]
            .into_iter()
            .find_map(|name| self.label(name))
            .unwrap_or(memory.base);
        // Heap and stack may be in different memories.
        let span = machine.core.memory.span(heap);
        let limit = span
            .filter(|span| machine.core.memory.is_writable(span.first))
            .map_or(end, |span| span.last.wrapping_add(1));
        [heap, limit, end, heap]
    }

    /// The vector table: that of its section, or at the chip's default address.
    fn vector_table(&self, machine: &Machine, chip: &Chip) -> Result<Option<u32>, ProgramError> {
        let of_section = self.vectors.filter(|table| machine.core.memory.peek(*table).is_some());
        let table = of_section.unwrap_or(chip.vector_table);
        let memory = &machine.core.memory;
        let word = |at: u32| memory.peek(table.wrapping_add(at)).unwrap_or(0);
        let (stack, reset) = (word(0), word(4));
        let has_stack = memory.is_writable(stack.wrapping_sub(4));
        let has_code = reset & 1 == 1 && memory.region_of(reset).is_some();
        if has_stack && has_code {
            return Ok(Some(table));
        }
        // Code or zeros at the default address have neither a valid SP nor the entry point as reset
        // vector: not a table.
        let is_table = has_stack || reset & !1 == self.entry & !1;
        if of_section.is_none() && !is_table {
            return Ok(None);
        }
        let what = if !has_stack {
            format!("{stack:#010x} as initial SP, outside the memories of {}", chip.name)
        } else if reset & 1 == 0 {
            format!("{reset:#010x} as its reset vector, without the Thumb bit")
        } else {
            format!("{reset:#010x} as its reset vector, where there is no memory")
        };
        Err(ProgramError::VectorTable { table, what })
    }

    /// A program without a vector table, as newlib's rdimon start is: at its entry, with the stack
    /// where HEAPINFO says.
    fn start_at_entry(&self, machine: &mut Machine, chip: &Chip) -> Result<(), Fault> {
        let core = &mut machine.core;
        if self.entry & 1 == 0 {
            return Err(Fault::InvalidState { target: self.entry });
        }
        core.system.vector_table = chip.vector_table;
        core.registers.r[13] = machine.semihosting.heap_info[2];
        core.registers.r[14] = 0xffff_ffff;
        core.registers.r[15] = self.entry & !1;
        Ok(())
    }
}
