// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A running chip: finds instructions, executes them, takes exceptions, reports why it stopped.

use crate::block::{self, Blocks};
use crate::chip::Chip;
use crate::core::{Core, Exception, Fault, Flow, Operation, Returned, Trap};
use crate::isa::Instruction;
use crate::memory::{MapError, Memory};
use crate::peripherals::Peripherals;
use crate::semihosting::{Answer, Semihosting};
use crate::stop::Stop;
use crate::timing::{Cycles, OperandCycles, Rules};

/// Watches a run, instruction by instruction. For each instruction the machine calls `before`, then
/// `after` or `faulted`; `semihosting_done` and `exception` follow the instruction that caused
/// them.
pub trait Observer {
    /// Whether the callbacks do anything; if not, whole blocks are executed at once.
    const ENABLED: bool = true;
    /// Whether [`Observer::pauses_at`] is asked.
    const PAUSES: bool = false;
    /// Whether the run pauses ([`Stop::Paused`]) before the instruction at an address, which is the
    /// next one. It is asked again where the run then pauses, and gives the same answer.
    fn pauses_at(&mut self, _address: u32) -> bool {
        false
    }
    /// Before an instruction, whose condition may still fail.
    fn before(&mut self, core: &Core, operation: &Operation);
    /// After an instruction that did not fault; `now` includes its cycles.
    fn after(&mut self, core: &mut Core, operation: &Operation, now: Cycles);
    /// After an instruction that faulted ([`Core::trap`] says how); what it stored before the fault
    /// stays stored.
    fn faulted(&mut self, _core: &mut Core, _operation: &Operation) {}
    /// After a semihosting call, with addresses and lengths of what the host wrote to memory.
    fn semihosting_done(&mut self, _core: &Core, _written: &[(u32, u32)]) {}
    /// After exception entry, or exception return if `entered` is false.
    fn exception(&mut self, _core: &Core, _entered: bool) {}
    /// Bytes that the program has made the observer write so far, of which one instruction may ask
    /// for many: they count against [`Limits`].
    fn written_bytes(&self) -> u64 {
        0
    }
}

/// The observer of a run that nothing watches.
#[derive(Debug)]
pub struct Unobserved;

impl Observer for Unobserved {
    const ENABLED: bool = false;
    fn before(&mut self, _core: &Core, _operation: &Operation) {}
    fn after(&mut self, _core: &mut Core, _operation: &Operation, _now: Cycles) {}
}

/// A chip with a program in it.
#[derive(Debug)]
pub struct Machine {
    /// The processor and its memory.
    pub core: Core,
    /// Instructions executed so far, including those that faulted.
    pub instructions: u64,
    /// The host's side of semihosting.
    pub semihosting: Semihosting,
    /// Whether faults go to the program's handlers; otherwise the first one ends the run.
    pub deliver_faults: bool,
    /// The instruction count at which, or shortly after which, the run pauses ([`Stop::Paused`]).
    /// Running again resumes it; the pause changes nothing. [`Limits`] is exact instead.
    pub pause_at: u64,
    blocks: Blocks,
    rules: Rules,
    /// Where the run paused, if that was inside a block or where one was cut: the cost of the next
    /// instruction depends on the one before.
    paused: Option<Position>,
}

/// A place in a decoded block.
#[derive(Clone, Copy, Debug)]
struct Position {
    block: u32,
    /// Of its operations; their number is the end of a block that was cut.
    index: usize,
}

/// Bounds of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Instructions in total, including those of earlier calls. What the host does for the program
    /// counts as well, an instruction for each [`HOST_BYTES`]: reading and printing by semihosting,
    /// and labelling by the taint port. [`Machine::instructions`] does not have it.
    pub instructions: u64,
}

/// Bytes that the host copies or labels in the time of an instruction, about.
pub const HOST_BYTES: u64 = 64;

impl Machine {
    /// A chip before reset, its memories filled with zeros.
    ///
    /// # Errors
    /// [`MapError`] if the chip's memory map is invalid.
    pub fn new(chip: &Chip, rules: Rules) -> Result<Self, MapError> {
        let mut memory = Memory::with_aliases(&chip.regions, &chip.aliases)?;
        memory.peripherals = Peripherals::new(&chip.peripherals, &chip.uarts);
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
            paused: None,
        })
    }

    /// Registers, clock and counts as they were before reset; memories keep their content.
    pub(crate) fn begin_anew(&mut self) {
        let core = &mut self.core;
        // Without a vector table it faults, once the registers are reset.
        let _ = core.reset(core.system.vector_table);
        core.registers.r[13..].fill(0);
        (core.clock, core.stack_limit) = (Cycles::default(), 0);
        core.memory.reset();
        (self.instructions, self.pause_at, self.paused) = (0, u64::MAX, None);
        self.semihosting.handled = 0;
    }

    /// The rules that cycles are counted by.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Runs until something stops it.
    pub fn run(&mut self, limits: Limits) -> Stop {
        self.run_observed(limits, &mut Unobserved)
    }

    /// As [`Machine::run`], with an observer.
    pub fn run_observed<O: Observer>(&mut self, limits: Limits, observer: &mut O) -> Stop {
        let stop = loop {
            if let Some(stop) = self.service_interrupts(observer) {
                break stop;
            }
            if let Err(stop) = self.run_until_interrupt(limits, observer) {
                break stop;
            }
        };
        self.print_sent();
        stop
    }

    /// Prints what UARTs have sent.
    fn print_sent(&mut self) {
        let sent = std::mem::take(&mut self.core.memory.peripherals.sent);
        if !sent.is_empty() {
            self.semihosting.print(&sent);
        }
    }

    /// Executes blocks until an interrupt may be due or an instruction traps.
    fn run_until_interrupt<O: Observer>(
        &mut self,
        limits: Limits,
        observer: &mut O,
    ) -> Result<(), Stop> {
        let due = self.core.system.next_tick().unwrap_or(u64::MAX);
        let (mut inside, mut cut) = (None, None);
        if self.paused.is_some() {
            (inside, cut) = self.resumed();
        }
        loop {
            let now = self.core.system.reading(self.core.clock);
            if now >= due {
                return Ok(());
            }
            if self.core.memory.code_changed {
                self.core.memory.forget_decoded();
                self.blocks.clear();
                (inside, cut) = (None, None);
            }
            if !self.core.memory.peripherals.sent.is_empty() {
                self.print_sent();
            }
            let at = self.core.registers.r[15];
            let handled = self.semihosting.handled.saturating_add(observer.written_bytes());
            let spent = self.instructions.saturating_add(handled / HOST_BYTES);
            let remaining = limits.instructions.saturating_sub(spent);
            if remaining == 0 {
                return Err(Stop::InstructionLimit { limit: limits.instructions });
            }
            if self.instructions >= self.pause_at || O::PAUSES && observer.pauses_at(at) {
                let end =
                    |block: u32| Position { block, index: self.blocks.get(block).operations.len() };
                self.paused = inside.or(cut.map(end));
                return Err(Stop::Paused);
            }
            let position = if O::PAUSES { inside.take() } else { None };
            let (number, first) = match position {
                Some(Position { block, index }) => (block, index),
                _ if self.core.registers.it_state != 0 => return self.step(at, observer),
                _ => match self.blocks.find(at, cut, &mut self.core.memory, &self.rules) {
                    Some(number) => (number, 0),
                    None => return self.fetch_failed(at, observer),
                },
            };
            let block = self.blocks.get(number);
            // The clock includes what was executed of the block, and so do its operations.
            if O::PAUSES {
                self.core.clock = self.core.clock - block.operations[first].cycles_before;
            }
            let operations = if O::PAUSES { &block.operations[first..] } else { &block.operations };
            let length = operations.len().min(usize::try_from(remaining).unwrap_or(usize::MAX));
            let operations = &operations[..length];
            let tick_may_be_due =
                due != u64::MAX && now + block.max_cycles(self.core.memory.max_wait()) >= due;
            let is_due = |core: &Core, operation: &Operation| {
                core.system.reading(core.clock + operation.cycles_through()) >= due
            };
            let core = &mut self.core;
            let (executed, flow) = if core.memory.reads_lines() {
                execute(core, operations, observer, Core::wait_for_fetch, is_due)
            } else if tick_may_be_due {
                execute(core, operations, observer, |_, _| {}, is_due)
            } else {
                execute(core, operations, observer, |_, _| {}, |_, _| false)
            };
            self.instructions += executed as u64;
            let last = &operations[executed.saturating_sub(1)];
            let end = first + executed;
            let is_cut = block.cut_after.is_some() && end == block.operations.len();
            cut = (flow == Flow::Next && is_cut).then_some(number);
            if O::PAUSES && flow == Flow::Next && end < block.operations.len() {
                inside = Some(Position { block: number, index: end });
            }
            match flow {
                Flow::Next => self.core.registers.r[15] = last.next(),
                Flow::Jumped => {}
                Flow::Trapped => {
                    let undone = is_not_executed(self.core.trap);
                    let operation =
                        operations[if undone { executed } else { executed - 1 }].clone();
                    return self.trapped(&operation, observer);
                }
            }
            self.core.clock += last.cycles_through();
            if block.has_it {
                self.core.registers.it_state = last.it_after();
            }
        }
    }

    /// Where a paused run continues: inside a block, which only an observer that pauses leaves, or
    /// behind one that was cut. Neither, if the program is elsewhere by now.
    #[cold]
    fn resumed(&mut self) -> (Option<Position>, Option<u32>) {
        let Some(position) = self.paused.take() else { return (None, None) };
        if self.core.memory.code_changed {
            return (None, None);
        }
        let registers = &self.core.registers;
        let operations = &self.blocks.get(position.block).operations;
        match operations.get(position.index) {
            Some(next) if next.address == registers.pc() && next.it_state == registers.it_state => {
                (Some(position), None)
            }
            None if operations.last().is_some_and(|last| last.next() == registers.pc()) => {
                (None, Some(position.block))
            }
            _ => (None, None),
        }
    }

    /// Executes one instruction inside an IT block that an exception interrupted.
    fn step<O: Observer>(&mut self, at: u32, observer: &mut O) -> Result<(), Stop> {
        let it_state = self.core.registers.it_state;
        let Some(block) = block::decode(at, None, it_state, 1, &self.core.memory, &self.rules)
        else {
            return self.fetch_failed(at, observer);
        };
        let fetch = |core: &mut Core, operation: &Operation| {
            if core.memory.reads_lines() {
                core.wait_for_fetch(operation);
            }
        };
        let (executed, flow) =
            execute(&mut self.core, &block.operations, observer, fetch, |_, _| false);
        self.instructions += executed as u64;
        let operation = &block.operations[0];
        match flow {
            Flow::Next => self.core.registers.r[15] = operation.next(),
            Flow::Jumped => {}
            Flow::Trapped => return self.trapped(operation, observer),
        }
        self.core.clock += operation.cycles_through();
        self.core.registers.it_state = operation.it_after();
        Ok(())
    }

    fn fetch_failed<O: Observer>(&mut self, at: u32, observer: &mut O) -> Result<(), Stop> {
        let never = matches!(at >> 28, 4 | 5 | 0xa..=0xf);
        let fault =
            if never { Fault::ExecuteNever { address: at } } else { Fault::Fetch { address: at } };
        self.take_fault(fault, observer)
    }

    /// Handles [`Core::trap`]. The clock does not include the block's cycles yet.
    #[cold]
    fn trapped<O: Observer>(
        &mut self,
        operation: &Operation,
        observer: &mut O,
    ) -> Result<(), Stop> {
        let trap = self.core.trap;
        if is_not_executed(trap) {
            self.core.clock += operation.cycles_before;
            self.core.registers.it_state = operation.it_state;
            self.core.registers.r[15] = operation.address;
        } else {
            self.core.clock += operation.cycles_through();
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
            // WFE found no event. A pending but masked interrupt wakes WFI, not WFE.
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
        // It counts, so that a handler that keeps returning to it reaches the limit.
        self.instructions += 1;
        self.escalate(fault, address, observer)
    }

    /// Passes a fault to its handler or HardFault's, or ends the run. The return address is R15.
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

    /// A stack overflow that shows only as a faulting access: of a frame that SUB made, or of a
    /// PUSH below the start of the memory.
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
        self.print_sent();
        match self.semihosting.call(&mut self.core) {
            Answer::Value(value) => {
                observer.semihosting_done(&self.core, &self.semihosting.written);
                self.core.registers.r[0] = value;
                self.core.registers.r[15] = operation.next();
                Ok(())
            }
            Answer::Exit(code) => Err(Stop::Exit { code }),
            Answer::Unknown(number) => {
                Err(Stop::UnknownSemihosting { number, address: operation.address })
            }
            Answer::Unmapped { number, address: at } => {
                Err(Stop::UnmappedSemihosting { number, at, address: operation.address })
            }
        }
    }

    /// WFI, WFE and sleep-on-exit: advances the clock to the next SysTick.
    fn sleep(&mut self, address: u32, wakes: fn(&Core) -> bool) -> Result<(), Stop> {
        if wakes(&self.core) {
            return Ok(());
        }
        let Some(due) = self.core.system.next_tick() else { return Err(Stop::Asleep { address }) };
        self.core.sleep_until(due);
        self.core.system.tick(self.core.clock);
        if wakes(&self.core) { Ok(()) } else { Err(Stop::Asleep { address }) }
    }

    /// Takes pending interrupts and reset requests between instructions.
    fn service_interrupts<O: Observer>(&mut self, observer: &mut O) -> Option<Stop> {
        self.core.system.tick(self.core.clock);
        if self.core.system.reset_requested {
            return Some(Stop::Reset { address: self.core.registers.r[15] });
        }
        let exception = self.core.pending_exception()?;
        self.enter(exception, observer).err()
    }
}

/// Whether the trapped instruction had no effect. A branch to an address without the Thumb bit is
/// complete: the fault belongs to the next instruction.
fn is_not_executed(trap: Trap) -> bool {
    matches!(trap, Trap::Fault(fault) if !matches!(fault, Fault::InvalidState { .. }))
}

/// Executes operations in order, each after `fetch`, up to the first for which `stop_after` holds.
/// Returns how many were executed, a faulting one not counted, and how the last one ended.
#[inline]
fn execute<O: Observer>(
    core: &mut Core,
    operations: &[Operation],
    observer: &mut O,
    fetch: impl Fn(&mut Core, &Operation),
    stop_after: impl Fn(&Core, &Operation) -> bool,
) -> (usize, Flow) {
    for (index, operation) in operations.iter().enumerate() {
        if O::ENABLED {
            observer.before(core, operation);
        }
        // Its wait counts for the instruction.
        fetch(core, operation);
        let flow = (operation.run)(core, operation);
        if flow != Flow::Next {
            if flow == Flow::Trapped && is_not_executed(core.trap) {
                if O::ENABLED {
                    observer.faulted(core, operation);
                }
                return (index, flow);
            }
            if O::ENABLED {
                let now = core.clock + operation.cycles_through();
                observer.after(core, operation, now);
            }
            return (index + 1, flow);
        }
        if O::ENABLED {
            let now = core.clock + operation.cycles_through();
            observer.after(core, operation, now);
        }
        if stop_after(core, operation) || O::PAUSES && observer.pauses_at(operation.next()) {
            return (index + 1, flow);
        }
    }
    (operations.len(), Flow::Next)
}
