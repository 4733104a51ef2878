// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processor: registers, the instructions' effect, exceptions, and the system registers beside them.
//!
//! [`Core::execute`] does one instruction and knows nothing of how instructions were found; [`crate::machine`] finds them.

mod arithmetic;
mod direct;
mod exceptions;
mod execute;
mod load_store;
mod registers;
mod special;
mod system;
mod ticker;

use direct::choose;
pub use direct::{Fields, Run};
pub use exceptions::{Exception, Returned};
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
    /// What it costs, operand-dependent cycles and taken branches aside.
    pub cycles: Cycles,
    /// What of that is waiting for its words of code.
    pub fetch_wait: u32,
    /// What those before it in its block cost.
    pub before: Cycles,
    /// The function that executes it ([`choose`]).
    pub run: Run,
    /// Its operands for that function.
    pub fields: Fields,
}

impl Operation {
    /// An instruction at an address, `it_state` being EPSR.IT before it; it costs nothing yet.
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
            before: Cycles::default(),
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

    /// What the block costs up to and with this operation.
    pub fn through(&self) -> Cycles {
        self.before + self.cycles
    }
}

/// Where to go on after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// At the next instruction in memory.
    Next,
    /// At [`Registers::pc`].
    Jumped,
    /// [`Core::trap`] says why not.
    Trapped,
}

/// What takes the processor out of the flow of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// A synchronous fault; the instruction has changed no register but R15, a branch to no Thumb address aside.
    Fault(Fault),
    /// SVC.
    SupervisorCall(u8),
    /// BKPT; 0xAB is semihosting.
    Breakpoint(u8),
    /// A branch in Handler mode to the EXC_RETURN value given.
    ExceptionReturn(u32),
    /// WFI or WFE; the instruction is done.
    Sleep,
    /// System registers were written: interrupts and reset requests are to be looked at.
    Resynchronise,
    /// The main stack grew below [`Core::stack_limit`].
    StackOverflow,
}

/// Why an instruction could not be executed (DDI 0403E section B1.5.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// UsageFault UNDEFINSTR.
    Undefined,
    /// UsageFault NOCP.
    Coprocessor,
    /// UsageFault INVSTATE: a branch to an address whose bit 0 is clear.
    InvalidState {
        /// The address.
        target: u32,
    },
    /// SVC where SVCall may not preempt what runs: a HardFault.
    SupervisorCall,
    /// UsageFault INVPC: an EXC_RETURN value that does not fit.
    InvalidReturn {
        /// The value.
        value: u32,
    },
    /// UsageFault UNALIGNED.
    Unaligned {
        /// The address.
        address: u32,
    },
    /// UsageFault DIVBYZERO, where CCR.DIV_0_TRP asks for it.
    DivideByZero,
    /// BusFault PRECISERR: nothing there, or it cannot be written.
    Data {
        /// The address.
        address: u32,
        /// Whether it was a store.
        write: bool,
    },
    /// BusFault IBUSERR: no memory where the instruction should be.
    Fetch {
        /// The address.
        address: u32,
    },
    /// MemManage IACCVIOL: an instruction fetch from a region that is never executable.
    ExecuteNever {
        /// The address.
        address: u32,
    },
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
    /// Cycles so far, without those of the instructions before the present one in its block.
    pub clock: Cycles,
    /// What operands add.
    pub costs: OperandCycles,
    /// Why [`Flow::Trapped`] was returned.
    pub trap: Trap,
    /// The lowest address that the main stack may reach; 0 where it is not known.
    pub stack_limit: u32,
    /// Whether LDREX has marked memory: all of it, whatever its address (DDI 0337I section 3.6).
    exclusive: bool,
}

impl Core {
    /// A processor after reset, before its first vector was read.
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
    /// The fault of a table that is not in memory or has no Thumb address.
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
