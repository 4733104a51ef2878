// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Exception entry, return and priority (DDI 0403E section B1.5).

use super::system::{get, set};
use super::{Core, Fault};
use crate::isa::Width;
use crate::timing::Cycles;

/// An exception by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exception(pub u16);

/// The result of an exception return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// A pending exception was entered by tail-chaining.
    Chained,
    /// The registers were restored from the frame.
    Thumb,
    /// The same, but the frame's EPSR.T is clear: no instruction can be executed.
    NotThumb,
}

#[allow(missing_docs)] // the names are DDI 0403E's
impl Exception {
    pub const NMI: Exception = Exception(2);
    pub const HARD_FAULT: Exception = Exception(3);
    pub const MEM_MANAGE: Exception = Exception(4);
    pub const BUS_FAULT: Exception = Exception(5);
    pub const USAGE_FAULT: Exception = Exception(6);
    pub const SV_CALL: Exception = Exception(11);
    pub const PEND_SV: Exception = Exception(14);
    pub const SYS_TICK: Exception = Exception(15);
}

impl Fault {
    /// Its exception, and its bit in CFSR (DDI 0403E section B3.2.15).
    pub fn exception(self) -> (Exception, u32) {
        match self {
            // Not a fault of its own, and without a bit in CFSR.
            Fault::SupervisorCall => (Exception::HARD_FAULT, 0),
            Fault::Undefined => (Exception::USAGE_FAULT, 1 << 16),
            Fault::InvalidState { .. } => (Exception::USAGE_FAULT, 1 << 17),
            Fault::InvalidReturn { .. } => (Exception::USAGE_FAULT, 1 << 18),
            Fault::Coprocessor => (Exception::USAGE_FAULT, 1 << 19),
            Fault::Unaligned { .. } => (Exception::USAGE_FAULT, 1 << 24),
            Fault::DivideByZero => (Exception::USAGE_FAULT, 1 << 25),
            Fault::Data { .. } => (Exception::BUS_FAULT, 1 << 9 | 1 << 15),
            Fault::Fetch { .. } => (Exception::BUS_FAULT, 1 << 8),
            Fault::ExecuteNever { .. } => (Exception::MEM_MANAGE, 1),
        }
    }
}

impl Core {
    /// The execution priority (DDI 0403E, ExecutionPriority); an exception needs a lower number to
    /// preempt.
    pub fn execution_priority(&self) -> i16 {
        let priority = self.priority_without_primask();
        if self.registers.primask { priority.min(0) } else { priority }
    }

    fn priority_without_primask(&self) -> i16 {
        let mut priority = 256;
        for (index, word) in self.system.active.into_iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let number = index as u16 * 64 + left.trailing_zeros() as u16;
                priority = priority.min(self.system.group_priority(number));
                left &= left - 1;
            }
        }
        if self.registers.basepri != 0 {
            priority = priority.min(self.system.group_of(self.registers.basepri));
        }
        if self.registers.faultmask {
            priority = priority.min(-1);
        }
        priority
    }

    /// The pending exception to take now, if any.
    pub fn pending_exception(&self) -> Option<Exception> {
        if self.system.pending == [0; 4] {
            return None;
        }
        self.first_pending()
            .filter(|number| self.system.group_priority(*number) < self.execution_priority())
            .map(Exception)
    }

    fn first_pending(&self) -> Option<u16> {
        (1..256u16)
            .filter(|number| get(&self.system.pending, *number) && self.system.is_enabled(*number))
            .min_by_key(|number| (self.system.priority(*number), *number))
    }

    /// Whether WFE ends: an exception can be taken, or the event register is set.
    pub fn is_interrupted(&self) -> bool {
        self.pending_exception().is_some() || self.system.event
    }

    /// Whether WFI ends: a pending exception could be taken if PRIMASK were clear.
    pub fn wakes(&self) -> bool {
        let level = self.priority_without_primask();
        self.first_pending().is_some_and(|number| self.system.group_priority(number) < level)
    }

    /// The exception that takes a fault: its own if that is enabled and can preempt, otherwise
    /// HardFault; `None` is lockup.
    pub fn route(&mut self, fault: Fault) -> Option<Exception> {
        let (own, bit) = fault.exception();
        self.system.cfsr |= bit;
        if let Fault::Data { address, .. } = fault {
            self.system.bfar = address;
        }
        let level = self.execution_priority();
        if own != Exception::HARD_FAULT
            && self.system.is_enabled(own.0)
            && self.system.group_priority(own.0) < level
        {
            return Some(own);
        }
        if level <= -1 {
            return None;
        }
        self.system.hfsr |= 1 << 30;
        Some(Exception::HARD_FAULT)
    }

    /// Whether SVCall can preempt the running code.
    pub fn takes_supervisor_call(&self) -> bool {
        self.system.group_priority(Exception::SV_CALL.0) < self.execution_priority()
    }

    /// Enters an exception: stacks eight words and branches to its handler. The return address is
    /// R15.
    ///
    /// # Errors
    /// A fault of the vector table or of the stack, on which nothing was stored then.
    pub fn enter(&mut self, exception: Exception) -> Result<(), Fault> {
        let handler = self.handler(exception)?;
        let frame = self.push_frame()?;
        let registers = &mut self.registers;
        let process = registers.process_stack;
        let from_handler = registers.in_handler();
        registers.r[13] = frame;
        registers.r[14] = match (from_handler, process) {
            (true, _) => 0xffff_fff1,
            (false, false) => 0xffff_fff9,
            (false, true) => 0xffff_fffd,
        };
        registers.select_stack(false);
        registers.ipsr = exception.0;
        registers.it_state = 0;
        set(&mut self.system.active, exception.0, true);
        set(&mut self.system.pending, exception.0, false);
        self.exclusive = false;
        self.system.event = true;
        self.clock += self.costs.exception_entry;
        self.registers.r[15] = handler;
        Ok(())
    }

    /// The address of an exception's handler, by the vector table.
    fn handler(&self, exception: Exception) -> Result<u32, Fault> {
        let at = self.system.vector_table.wrapping_add(4 * u32::from(exception.0));
        let handler = self.memory.peek(at).ok_or(Fault::Data { address: at, write: false })?;
        if handler & 1 == 0 {
            return Err(Fault::InvalidState { target: handler });
        }
        Ok(handler & !1)
    }

    fn push_frame(&mut self) -> Result<u32, Fault> {
        let registers = self.registers;
        let aligned = self.system.aligns_stack() && registers.r[13] & 4 != 0;
        let top = if aligned { registers.r[13].wrapping_sub(4) } else { registers.r[13] };
        let frame = top.wrapping_sub(32);
        let status = registers.xpsr() & !(1 << 9) | u32::from(aligned) << 9;
        let r = registers.r;
        let words = [r[0], r[1], r[2], r[3], r[12], r[14], r[15], status];
        let word = |index: usize| self.memory.word(frame.wrapping_add(4 * index as u32));
        let before: [Option<u32>; 8] = std::array::from_fn(word);
        for (index, value) in (0u32..).zip(words) {
            let at = frame.wrapping_add(4 * index);
            if !self.memory.set_word(at, value) {
                // Half a frame would be of no use to anybody, and whoever follows what is stored
                // is told of whole ones.
                for (index, word) in (0..index).zip(before) {
                    let at = frame.wrapping_add(4 * index);
                    if let Some(word) = word {
                        self.memory.set_word(at, word);
                    }
                }
                return Err(Fault::Data { address: at, write: true });
            }
        }
        Ok(frame)
    }

    /// Returns from an exception by an EXC_RETURN value, or enters a pending exception without
    /// touching the frame (tail-chaining, DDI 0403E section B1.5.12).
    ///
    /// # Errors
    /// [`Fault::InvalidReturn`] if the value does not fit the state, or the fault of the stack. The
    /// exception is no longer active then, and the frame is still on the stack.
    pub fn return_from(&mut self, value: u32) -> Result<Returned, Fault> {
        let ending = self.registers.ipsr;
        let nested = self.system.active.iter().map(|word| word.count_ones()).sum::<u32>() > 1;
        let (to_handler, process) = match value & 0xf {
            0b0001 => (true, false),
            0b1001 => (false, false),
            0b1101 => (false, true),
            _ => {
                set(&mut self.system.active, ending, false);
                return Err(Fault::InvalidReturn { value });
            }
        };
        let allowed =
            to_handler == nested || (!to_handler && self.system.returns_to_thread_from_anywhere());
        let was_active = get(&self.system.active, ending);
        set(&mut self.system.active, ending, false);
        if value >> 4 != 0x0fff_ffff || !was_active || !allowed {
            return Err(Fault::InvalidReturn { value });
        }
        if ending != 2 {
            self.registers.faultmask = false;
        }
        self.exclusive = false;
        self.system.event = true;
        if let Some(next) = self.pending_exception() {
            self.chain(next, value)?;
            return Ok(Returned::Chained);
        }
        self.clock += self.costs.exception_return;
        self.registers.select_stack(process);
        self.pop_frame(to_handler, value)
    }

    /// Enters the next handler directly from the last one; the frame stays on the stack.
    ///
    /// # Errors
    /// The fault of the vector table.
    pub fn chain(&mut self, next: Exception, value: u32) -> Result<(), Fault> {
        self.registers.r[14] = value;
        self.registers.select_stack(false);
        self.registers.ipsr = next.0;
        self.registers.it_state = 0;
        set(&mut self.system.active, next.0, true);
        set(&mut self.system.pending, next.0, false);
        self.clock += self.costs.tail_chain;
        self.registers.r[15] = self.handler(next)?;
        Ok(())
    }

    fn pop_frame(&mut self, to_handler: bool, value: u32) -> Result<Returned, Fault> {
        let frame = self.registers.r[13];
        let mut words = [0u32; 8];
        for (index, word) in words.iter_mut().enumerate() {
            let at = frame.wrapping_add(4 * index as u32);
            *word = self.memory.word(at).ok_or(Fault::Data { address: at, write: false })?;
        }
        let [r0, r1, r2, r3, r12, lr, pc, status] = words;
        if (status & 0x1ff != 0) != to_handler {
            return Err(Fault::InvalidReturn { value });
        }
        let registers = &mut self.registers;
        registers.r[..4].copy_from_slice(&[r0, r1, r2, r3]);
        (registers.r[12], registers.r[14], registers.r[15]) = (r12, lr, pc & !1);
        let padding = if self.system.aligns_stack() && status >> 9 & 1 == 1 { 4 } else { 0 };
        registers.r[13] = frame.wrapping_add(32 + padding);
        registers.set_xpsr(status);
        let thumb = status >> 24 & 1 == 1;
        Ok(if thumb { Returned::Thumb } else { Returned::NotThumb })
    }

    /// Whether the processor sleeps on its return to Thread mode (SCR.SLEEPONEXIT).
    pub fn sleeps_after_return(&self) -> bool {
        self.system.sleeps_on_exit() && !self.registers.in_handler()
    }

    /// A value as a debugger reads it, without side effects or cycles.
    pub fn peek(&self, at: u32, width: Width) -> Option<u32> {
        match width.bytes() {
            4 => self.memory.peek(at),
            2 => self.memory.half(at).map(u32::from),
            _ => self.memory.byte(at).map(u32::from),
        }
    }

    /// Advances the clock without executing an instruction.
    pub fn sleep_until(&mut self, reading: u64) {
        let now = self.system.reading(self.clock);
        let wait = reading.saturating_sub(now);
        self.clock += Cycles { low: wait, high: wait };
    }
}
