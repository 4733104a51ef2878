// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processor: registers, the effect of instructions, exceptions, and the system registers.
//!
//! [`Core::execute`] executes one decoded instruction; [`crate::machine`] fetches and decodes.

mod arithmetic;
mod direct;
mod exceptions;
mod execute;
mod fault;
mod load_store;
mod registers;
mod special;
mod system;
mod systick;

use direct::choose;
pub use direct::{Fields, Run};
pub use exceptions::{Exception, Returned};
pub use fault::Fault;
pub use registers::{Flags, Registers};
pub use system::System;

use crate::isa::{Condition, Decoded, Instruction};
use crate::memory::Memory;
use crate::timing::{Cycles, OperandCycles};

/// An instruction ready to be executed.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What it does.
    pub instruction: Instruction,
    /// Where it is.
    pub address: u32,
    /// Its length, 2 or 4 bytes.
    pub bytes: u8,
    /// Its condition within an IT block; a branch has its own.
    pub condition: Condition,
    /// EPSR.IT before it.
    pub it_state: u8,
    /// Its cycles, without operand-dependent ones and those of taken branches.
    pub cycles: Cycles,
    /// The part of `cycles` that waits for its code words.
    pub fetch_wait: u32,
    /// Cycles of the operations before it in its block.
    pub cycles_before: Cycles,
    /// The function that executes it ([`choose`]).
    pub run: Run,
    /// Its operands for that function.
    pub fields: Fields,
}

impl Operation {
    /// An instruction at an address; `it_state` is EPSR.IT before it. Its cycles are not set yet.
    pub fn new(decoded: &Decoded, address: u32, it_state: u8) -> Self {
        let condition = if it_state == 0 { Condition::ALWAYS } else { Condition(it_state >> 4) };
        let (run, fields) = choose(&decoded.instruction, condition);
        Operation {
            instruction: decoded.instruction,
            address,
            bytes: decoded.bytes,
            condition,
            it_state,
            cycles: Cycles::default(),
            fetch_wait: 0,
            cycles_before: Cycles::default(),
            run,
            fields,
        }
    }

    /// The address of the next instruction in memory.
    pub fn next(&self) -> u32 {
        self.address.wrapping_add(u32::from(self.bytes))
    }

    /// EPSR.IT after it.
    pub fn it_after(&self) -> u8 {
        match self.instruction {
            Instruction::IfThen { first, mask } => first.0 << 4 | mask,
            _ => registers::advance_it(self.it_state),
        }
    }

    /// Cycles of the block up to and including this operation.
    pub fn cycles_through(&self) -> Cycles {
        self.cycles_before + self.cycles
    }
}

/// Where execution continues after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// At the next instruction in memory.
    Next,
    /// At [`Registers::pc`].
    Jumped,
    /// The machine must handle [`Core::trap`] first.
    Trapped,
}

/// What the machine must handle before the next instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// A synchronous fault. The instruction changed no register but R15, except for a branch to an
    /// address without the Thumb bit, which is complete.
    Fault(Fault),
    /// SVC.
    SupervisorCall(u8),
    /// BKPT; 0xAB is semihosting.
    Breakpoint(u8),
    /// A branch in Handler mode to the EXC_RETURN value given.
    ExceptionReturn(u32),
    /// WFI or WFE; the instruction is complete.
    Sleep,
    /// System registers were written: check interrupts and reset requests.
    Resynchronise,
    /// The main stack grew below [`Core::stack_limit`].
    StackOverflow,
}

/// The processor with its memory.
#[derive(Debug)]
pub struct Core {
    /// R0 to R15, the program status and the special registers.
    pub registers: Registers,
    /// What is on the bus.
    pub memory: Memory,
    /// SysTick, NVIC, SCB and DWT.
    pub system: System,
    /// Cycles so far, without those of earlier instructions in the current block.
    pub clock: Cycles,
    /// Operand-dependent cycles.
    pub costs: OperandCycles,
    /// Why [`Flow::Trapped`] was returned.
    pub trap: Trap,
    /// The lowest address that the main stack may reach; 0 if unknown.
    pub stack_limit: u32,
    /// The local exclusive monitor, which covers all memory (DDI 0337I section 3.6).
    exclusive: bool,
}

impl Core {
    /// A processor before reset.
    pub fn new(memory: Memory, costs: OperandCycles) -> Self {
        Core {
            registers: Registers::default(),
            memory,
            system: System::default(),
            clock: Cycles::default(),
            costs,
            trap: Trap::Sleep,
            stack_limit: 0,
            exclusive: false,
        }
    }

    /// Loads SP and PC from the vector table (DDI 0403E section B1.5.5).
    ///
    /// # Errors
    /// The fault, if the table is not in memory or its reset vector lacks the Thumb bit.
    pub fn reset(&mut self, vector_table: u32) -> Result<(), Fault> {
        self.registers = Registers::default();
        self.system = System::default();
        self.system.vector_table = vector_table;
        self.exclusive = false;
        let word = |at: u32| self.memory.peek(at).ok_or(Fault::Data { address: at, write: false });
        let (stack, entry) = (word(vector_table)?, word(vector_table.wrapping_add(4))?);
        self.registers.r[13] = stack & !3;
        self.registers.r[14] = 0xffff_ffff;
        if entry & 1 == 0 {
            return Err(Fault::InvalidState { target: entry });
        }
        self.registers.r[15] = entry & !1;
        Ok(())
    }

    #[cold]
    fn fault(&mut self, fault: Fault) -> Flow {
        self.trapped(Trap::Fault(fault))
    }

    #[cold]
    fn trapped(&mut self, trap: Trap) -> Flow {
        self.trap = trap;
        Flow::Trapped
    }
}
