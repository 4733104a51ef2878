// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A chip that runs: finds instructions, executes them, takes exceptions, and says why it stopped.

use crate::block::{self, Blocks};
use crate::chip::Chip;
use crate::core::{Core, Exception, Fault, Flow, Operation, Returned, Trap};
use crate::isa::Instruction;
use crate::memory::{MapError, Memory};
use crate::semihosting::{Answer, Semihosting};
use crate::stop::Stop;
use crate::timing::{Cycles, OperandCycles, Rules};

/// Somebody who looks on, instruction by instruction.
pub trait Observer {
    /// Whether there is anything to see; without it whole blocks are executed at once.
    const LOOKS: bool = true;
    /// Before an instruction whose condition may still fail.
    fn before(&mut self, core: &Core, operation: &Operation);
    /// After it, unless it faulted. `now` has its cycles in it.
    fn after(&mut self, core: &mut Core, operation: &Operation, now: Cycles);
    /// It faulted ([`Core::trap`] says how): what it stored before that stays stored.
    fn faulted(&mut self, _core: &mut Core, _operation: &Operation) {}
    /// The host answered a semihosting call, and wrote to memory: addresses and lengths.
    fn answered(&mut self, _core: &Core, _written: &[(u32, u32)]) {}
    /// An exception was entered, or left where `entered` is false.
    fn exception(&mut self, _core: &Core, _entered: bool) {}
}

/// Nobody looks on.
#[derive(Debug)]
pub struct Unobserved;

impl Observer for Unobserved {
    const LOOKS: bool = false;
    fn before(&mut self, _core: &Core, _operation: &Operation) {}
    fn after(&mut self, _core: &mut Core, _operation: &Operation, _now: Cycles) {}
}

/// A chip with a program in it.
#[derive(Debug)]
pub struct Machine {
    /// The processor and its memory.
    pub core: Core,
    /// Instructions executed so far, those that faulted among them.
    pub instructions: u64,
    /// What the program asks of its host.
    pub semihosting: Semihosting,
    /// Whether faults go to the program's own handlers; else the first one ends the run.
    pub deliver_faults: bool,
    /// After so many instructions in all, or a few more, the run pauses ([`Stop::Paused`]), and goes on as if it had not
    /// when it is run again. [`Limits`] is exact instead.
    pub pause_at: u64,
    blocks: Blocks,
    rules: Rules,
}

/// How far to run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// At most so many instructions in all.
    pub instructions: u64,
}

impl Machine {
    /// A chip before reset, its memories filled with zeros.
    ///
    /// # Errors
    /// [`MapError`] where the chip's memory map cannot be.
    pub fn new(chip: &Chip, rules: Rules) -> Result<Self, MapError> {
        let memory = Memory::new(&chip.regions)?;
        let mut core = Core::new(memory, OperandCycles::new(&rules));
        core.system.priority_mask = chip.priority_mask;
        Ok(Machine {
            core,
            instructions: 0,
            semihosting: Semihosting::default(),
            deliver_faults: false,
            pause_at: u64::MAX,
            blocks: Blocks::default(),
            rules,
        })
    }

    /// The rules that cycles are counted by.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Runs until something stops it.
    pub fn run(&mut self, limits: Limits) -> Stop {
        self.run_observed(limits, &mut Unobserved)
    }

    /// As [`Machine::run`], with somebody who looks on.
    pub fn run_observed<O: Observer>(&mut self, limits: Limits, observer: &mut O) -> Stop {
        loop {
            if let Some(stop) = self.attend(observer) {
                return stop;
            }
            if let Err(stop) = self.run_until_attention(limits, observer) {
                return stop;
            }
        }
    }

    /// Executes blocks until an interrupt may be due or an instruction asks for more than the core does.
    fn run_until_attention<O: Observer>(
        &mut self,
        limits: Limits,
        observer: &mut O,
    ) -> Result<(), Stop> {
        let due = self.core.system.next_tick().unwrap_or(u64::MAX);
        loop {
            let now = self.core.system.reading(self.core.clock);
            if now >= due {
                return Ok(());
            }
            if self.core.memory.code_changed {
                self.core.memory.forget_decoded();
                self.blocks.clear();
            }
            let at = self.core.registers.r[15];
            let room = limits.instructions.saturating_sub(self.instructions);
            if room == 0 {
                return Err(Stop::InstructionLimit { limit: limits.instructions });
            }
            if self.instructions >= self.pause_at {
                return Err(Stop::Paused);
            }
            if self.core.registers.it_state != 0 {
                return self.step(at, observer);
            }
            let Some(number) = self.blocks.find(at, &mut self.core.memory, &self.rules) else {
                return self.no_instruction(at, observer);
            };
            let block = self.blocks.get(number);
            let length = block.operations.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let operations = &block.operations[..length];
            let near =
                due != u64::MAX && now + block.longest_stay(self.core.memory.slowest()) >= due;
            let (done, flow) = if near {
                execute(&mut self.core, operations, observer, |core, operation| {
                    core.system.reading(core.clock + operation.through()) >= due
                })
            } else {
                execute(&mut self.core, operations, observer, |_, _| false)
            };
            self.instructions += done as u64;
            let last = &operations[done.saturating_sub(1)];
            match flow {
                Flow::Next => self.core.registers.r[15] = last.next(),
                Flow::Jumped => {}
                Flow::Trapped => {
                    let undone = leaves_undone(self.core.trap);
                    let operation = operations[if undone { done } else { done - 1 }].clone();
                    return self.trapped(&operation, observer);
                }
            }
            self.core.clock += last.through();
            if block.has_it {
                self.core.registers.it_state = last.it_after();
            }
        }
    }

    /// Executes one instruction, in the middle of an IT block that was left for an exception.
    fn step<O: Observer>(&mut self, at: u32, observer: &mut O) -> Result<(), Stop> {
        let it_state = self.core.registers.it_state;
        let Some(block) = block::decode(at, it_state, 1, &self.core.memory, &self.rules) else {
            return self.no_instruction(at, observer);
        };
        let (done, flow) = execute(&mut self.core, &block.operations, observer, |_, _| false);
        self.instructions += done as u64;
        let operation = &block.operations[0];
        match flow {
            Flow::Next => self.core.registers.r[15] = operation.next(),
            Flow::Jumped => {}
            Flow::Trapped => return self.trapped(operation, observer),
        }
        self.core.clock += operation.through();
        self.core.registers.it_state = operation.it_after();
        Ok(())
    }

    fn no_instruction<O: Observer>(&mut self, at: u32, observer: &mut O) -> Result<(), Stop> {
        let never = matches!(at >> 28, 4 | 5 | 0xa..=0xf);
        let fault =
            if never { Fault::ExecuteNever { address: at } } else { Fault::Fetch { address: at } };
        self.take_fault(fault, observer)
    }

    /// What the core could not do by itself. The clock does not have the block's cycles yet.
    #[cold]
    fn trapped<O: Observer>(
        &mut self,
        operation: &Operation,
        observer: &mut O,
    ) -> Result<(), Stop> {
        let trap = self.core.trap;
        if leaves_undone(trap) {
            self.core.clock += operation.before;
            self.core.registers.it_state = operation.it_state;
            self.core.registers.r[15] = operation.address;
        } else {
            self.core.clock += operation.through();
            self.core.registers.it_state = operation.it_after();
        }
        match trap {
            Trap::Fault(fault) => {
                if let Fault::InvalidState { target } = fault {
                    self.core.registers.r[15] = target & !1;
                }
                self.take_fault(fault, observer)
            }
            Trap::SupervisorCall(_) if self.core.takes_supervisor_call() => {
                self.enter(Exception::SV_CALL, observer)
            }
            Trap::SupervisorCall(_) => {
                self.escalate(Fault::SupervisorCall, operation.address, observer)
            }
            Trap::Breakpoint(0xab) => self.semihosting_call(operation, observer),
            Trap::Breakpoint(number) => {
                self.core.registers.r[15] = operation.address;
                Err(Stop::Breakpoint { number, address: operation.address })
            }
            Trap::ExceptionReturn(value) => self.leave(value, operation, observer),
            // WFE found no event. What only pends, because it is masked, wakes WFI alone.
            Trap::Sleep if operation.instruction == Instruction::WaitForEvent => {
                self.sleep(operation.address, Core::is_interrupted)
            }
            Trap::Sleep => self.sleep(operation.address, Core::wakes),
            Trap::Resynchronise => Ok(()),
            Trap::StackOverflow => Err(Stop::StackOverflow {
                stack: self.core.registers.r[13],
                limit: self.core.stack_limit,
                address: operation.address,
            }),
        }
    }

    fn take_fault<O: Observer>(&mut self, fault: Fault, observer: &mut O) -> Result<(), Stop> {
        let address = self.core.registers.r[15];
        if let Some(overflow) = self.stack_overflow(fault, address) {
            return Err(overflow);
        }
        // It counts: a handler that returns to it again and again comes to an end.
        self.instructions += 1;
        self.escalate(fault, address, observer)
    }

    /// A fault goes to its handler, or to HardFault's, or ends the run. The return address is R15.
    fn escalate<O: Observer>(
        &mut self,
        fault: Fault,
        address: u32,
        observer: &mut O,
    ) -> Result<(), Stop> {
        match self.core.route(fault) {
            _ if !self.deliver_faults => Err(Stop::Fault { fault, address }),
            Some(exception) => self.enter(exception, observer),
            None => Err(Stop::Lockup { address }),
        }
    }

    /// A frame that was made by SUB is noticed only where it is used, and one that PUSH would make at the end of the memory.
    fn stack_overflow(&self, fault: Fault, address: u32) -> Option<Stop> {
        let (stack, limit) = (self.core.registers.r[13], self.core.stack_limit);
        let Fault::Data { address: at, write } = fault else { return None };
        // No store that moves SP goes further than a constant of 8 bits.
        let pushed = write && stack >= limit && at >= stack.saturating_sub(256);
        let in_frame = stack < limit && at >= stack;
        let below = at < limit && (pushed || in_frame) && !self.core.registers.process_stack;
        below.then_some(Stop::StackOverflow { stack: stack.min(at), limit, address })
    }

    fn enter<O: Observer>(&mut self, exception: Exception, observer: &mut O) -> Result<(), Stop> {
        let address = self.core.registers.r[15];
        self.core.enter(exception).map_err(|fault| Stop::ExceptionEntry {
            exception,
            fault,
            address,
        })?;
        observer.exception(&self.core, true);
        Ok(())
    }

    fn leave<O: Observer>(
        &mut self,
        value: u32,
        operation: &Operation,
        observer: &mut O,
    ) -> Result<(), Stop> {
        let address = operation.address;
        let returned = match self.core.return_from(value) {
            Ok(returned) => returned,
            Err(fault) => {
                let handler = if self.deliver_faults { self.core.route(fault) } else { None };
                let Some(handler) = handler else { return Err(Stop::Fault { fault, address }) };
                self.core.chain(handler, value).map_err(|fault| Stop::ExceptionEntry {
                    exception: handler,
                    fault,
                    address,
                })?;
                Returned::Chained
            }
        };
        observer.exception(&self.core, false);
        match returned {
            Returned::Chained => {
                observer.exception(&self.core, true);
                Ok(())
            }
            Returned::NotThumb => {
                let target = self.core.registers.r[15];
                self.take_fault(Fault::InvalidState { target }, observer)
            }
            Returned::Thumb if self.core.sleeps_after_return() => self.sleep(address, Core::wakes),
            Returned::Thumb => Ok(()),
        }
    }

    fn semihosting_call<O: Observer>(
        &mut self,
        operation: &Operation,
        observer: &mut O,
    ) -> Result<(), Stop> {
        match self.semihosting.call(&mut self.core) {
            Answer::Value(value) => {
                observer.answered(&self.core, &self.semihosting.written);
                self.core.registers.r[0] = value;
                self.core.registers.r[15] = operation.next();
                Ok(())
            }
            Answer::Exit(code) => Err(Stop::Exit { code }),
            Answer::Unknown(number) => {
                Err(Stop::UnknownSemihosting { number, address: operation.address })
            }
        }
    }

    /// WFI, WFE, and sleep on exit: time goes on to the next interrupt.
    fn sleep(&mut self, address: u32, wakes: fn(&Core) -> bool) -> Result<(), Stop> {
        if wakes(&self.core) {
            return Ok(());
        }
        let Some(due) = self.core.system.next_tick() else { return Err(Stop::Asleep { address }) };
        self.core.sleep_until(due);
        self.core.system.tick(self.core.clock);
        if wakes(&self.core) { Ok(()) } else { Err(Stop::Asleep { address }) }
    }

    /// Interrupts and requests, between instructions.
    fn attend<O: Observer>(&mut self, observer: &mut O) -> Option<Stop> {
        self.core.system.tick(self.core.clock);
        if self.core.system.reset_requested {
            return Some(Stop::Reset { address: self.core.registers.r[15] });
        }
        let exception = self.core.pending_exception()?;
        self.enter(exception, observer).err()
    }
}

/// Whether the instruction has changed nothing. A branch to no Thumb address is done: the next instruction is what
/// cannot be.
fn leaves_undone(trap: Trap) -> bool {
    matches!(trap, Trap::Fault(fault) if !matches!(fault, Fault::InvalidState { .. }))
}

/// Executes operations one after the other, until one of them is `enough`: how many were done, and how the last one ended.
/// A faulting one is not done.
#[inline]
fn execute<O: Observer>(
    core: &mut Core,
    operations: &[Operation],
    observer: &mut O,
    enough: impl Fn(&Core, &Operation) -> bool,
) -> (usize, Flow) {
    for (index, operation) in operations.iter().enumerate() {
        if O::LOOKS {
            observer.before(core, operation);
        }
        let flow = (operation.run)(core, operation);
        if flow != Flow::Next {
            if flow == Flow::Trapped && leaves_undone(core.trap) {
                if O::LOOKS {
                    observer.faulted(core, operation);
                }
                return (index, flow);
            }
            if O::LOOKS {
                let now = core.clock + operation.through();
                observer.after(core, operation, now);
            }
            return (index + 1, flow);
        }
        if O::LOOKS {
            let now = core.clock + operation.through();
            observer.after(core, operation, now);
        }
        if enough(core, operation) {
            return (index + 1, flow);
        }
    }
    (operations.len(), Flow::Next)
}
