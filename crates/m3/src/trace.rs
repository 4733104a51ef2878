// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An execution trace: a line an instruction, as text.
//!
//! A line has the cycle at which the instruction begins (by the high reading), its address, symbol
//! and offset, the instruction, and what it did: registers and flags written, `[ADDRESS]:BYTES`
//! loaded, `[ADDRESS]=VALUE` stored. Lines that begin with `--` after the cycle are exceptions and
//! semihosting calls.

use std::fmt::Write;

use crate::access::{Access, is_executed};
use crate::core::{Core, Operation, Trap};
use crate::isa::{Instruction, PC, RegisterSet};
use crate::machine::Observer;
use crate::printable::is_obeyed;
use crate::program::Program;
use crate::timing::Cycles;

/// Which part of a run is traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    #[default]
    All,
    /// From an address on, or, in sections, from each arrival there up to another one, which is not
    /// traced.
    Between(Option<u32>, Option<u32>),
    /// Each call of the function at an address, with what it calls, until it returns.
    Call(u32),
}

/// The observer that writes the trace.
#[derive(Debug)]
pub struct Tracer {
    program: Program,
    part: Part,
    is_on: bool,
    /// The return address of a traced call and the stack pointer at its start.
    returns: Option<(u32, u32)>,
    left: u64,
    lines: u64,
    /// The last line is that of the current instruction, and lacks what it did.
    begun: bool,
    /// Whether its condition holds.
    is_executed: bool,
    access: Option<Access>,
    text: String,
    function: Function,
}

/// The function executed last.
#[derive(Debug, Default)]
struct Function {
    /// Addresses that are known to be in it.
    from: u32,
    bytes: u32,
    address: u32,
    /// Empty if it has no symbol.
    name: String,
}

impl Tracer {
    /// Traces a part of a program's run; `most` instructions of it.
    pub fn new(program: &Program, part: Part, most: u64) -> Self {
        Tracer {
            program: program.clone(),
            part,
            is_on: matches!(part, Part::All | Part::Between(None, _)),
            returns: None,
            left: most,
            lines: 0,
            begun: false,
            is_executed: false,
            access: None,
            text: String::new(),
            function: Function::default(),
        }
    }

    /// Instructions traced so far.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Whether nothing more will be traced: the rest of the run needs no observer.
    pub fn is_done(&self) -> bool {
        let is_over = !self.is_on && matches!(self.part, Part::Between(None, _));
        self.left == 0 || is_over
    }

    /// Whether the limit cut the trace off.
    pub fn is_cut(&self) -> bool {
        self.left == 0
    }

    /// The lines since the last call.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Bytes that wait to be taken.
    pub fn waiting(&self) -> usize {
        self.text.len()
    }

    /// Switches the trace on and off.
    fn arrive(&mut self, core: &Core, at: u32) {
        let stack = core.registers.r[13];
        match self.part {
            Part::All => {}
            Part::Between(since, until) => {
                if self.is_on && until == Some(at) {
                    self.is_on = false;
                } else if since == Some(at) {
                    self.is_on = true;
                }
            }
            Part::Call(function) => match self.returns {
                Some((address, top)) if at == address && stack >= top => {
                    self.returns = None;
                    self.is_on = at == function;
                }
                None if at == function => {
                    self.returns = Some((core.registers.r[14] & !1, stack));
                    self.is_on = true;
                }
                _ => {}
            },
        }
        self.is_on &= self.left > 0;
    }

    fn begin(&mut self, core: &Core, operation: &Operation) {
        let at = operation.address;
        let cycle = (core.clock + operation.cycles_before).high;
        if at.wrapping_sub(self.function.from) >= self.function.bytes {
            self.function = self.function_at(at);
        }
        let Function { address, name, .. } = &self.function;
        let place = match at.wrapping_sub(*address) {
            _ if name.is_empty() => String::new(),
            0 => name.clone(),
            offset => format!("{name}+{offset:#x}"),
        };
        let instruction = operation.instruction.under(operation.condition).to_string();
        self.line(format_args!("{cycle:>10} {at:08x} {place:<24} {instruction:<28}"));
        self.begun = true;
        self.lines += 1;
        self.left -= 1;
        self.is_executed = is_executed(core, operation.condition);
        self.access = Access::before(core, operation);
    }

    fn function_at(&self, at: u32) -> Function {
        let Some(symbol) = self.program.symbol_at(at) else {
            return Function { from: at, ..Function::default() };
        };
        // Another function may be nested in it, or follow as a label without a size.
        let next = [&self.program.symbols, &self.program.routines]
            .map(|all| all.get(all.partition_point(|one| one.address <= at)))
            .into_iter()
            .flatten()
            .map(|one| one.address)
            .min()
            .unwrap_or(u32::MAX);
        let end = symbol.address.saturating_add(symbol.bytes.max(1)).min(next);
        // Names may contain any character.
        let name = symbol.name.replace(is_obeyed, "?");
        Function { from: at, bytes: end.saturating_sub(at), address: symbol.address, name }
    }

    fn results(&mut self, core: &Core, operation: &Operation) {
        if !self.is_executed {
            return self.add(format_args!(" (its condition fails)"));
        }
        let operands = operation.instruction.operands();
        let written: Vec<u8> = operands.writes.iter().filter(|one| *one != PC).collect();
        for register in written {
            let value = core.registers.get(register);
            match register {
                13 => self.add(format_args!(" sp={value:08x}")),
                14 => self.add(format_args!(" lr={value:08x}")),
                number => self.add(format_args!(" r{number}={value:08x}")),
            }
        }
        if operands.sets_nz || operands.sets_c || operands.sets_v {
            let flags = core.registers.flags;
            let letter = |is_set, set, clear| if is_set { set } else { clear };
            let letters = [
                letter(flags.n(), 'N', 'n'),
                letter(flags.z(), 'Z', 'z'),
                letter(flags.carry, 'C', 'c'),
                letter(flags.overflow, 'V', 'v'),
            ];
            self.add(format_args!(" {}", String::from_iter(letters)));
        }
        if let Some(access) = self.access.take()
            && access.was_made(core, operation)
        {
            self.accessed(core, operation, access);
        }
    }

    fn accessed(&mut self, core: &Core, operation: &Operation, access: Access) {
        let Access { address, bytes, is_store } = access;
        if !is_store {
            return self.add(format_args!(" [{address:08x}]:{bytes}"));
        }
        let registers = match operation.instruction {
            Instruction::Store { rt, .. } | Instruction::StoreExclusive { rt, .. } => vec![rt],
            Instruction::StoreDual { rt, rt2, .. } => vec![rt, rt2],
            Instruction::StoreMultiple { list, .. } => RegisterSet(list).iter().collect(),
            _ => Vec::new(),
        };
        let digits = 2 * bytes.clamp(1, 4) as usize;
        self.add(format_args!(" [{address:08x}]"));
        for (index, register) in registers.into_iter().enumerate() {
            let sign = if index == 0 { '=' } else { ',' };
            let value = core.registers.get(register) & (u32::MAX >> (32 - 4 * digits));
            self.add(format_args!("{sign}{value:0digits$x}"));
        }
    }

    fn event(&mut self, core: &Core, text: std::fmt::Arguments<'_>) {
        if self.is_on {
            self.end_line();
            let cycle = core.clock.high;
            self.line(format_args!("{cycle:>10} -- {text}"));
            self.text.push('\n');
        }
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        self.end_line();
        self.add(text);
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        // A String takes whatever is written to it.
        let _ = self.text.write_fmt(text);
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.begun) {
            let used = self.text.trim_end_matches(' ').len();
            self.text.truncate(used);
            self.text.push('\n');
        }
    }
}

impl Observer for Tracer {
    fn before(&mut self, core: &Core, operation: &Operation) {
        self.arrive(core, operation.address);
        if self.is_on {
            self.begin(core, operation);
        }
    }

    fn after(&mut self, core: &mut Core, operation: &Operation, _now: Cycles) {
        if self.begun {
            self.results(core, operation);
            self.end_line();
        }
    }

    fn faulted(&mut self, core: &mut Core, _operation: &Operation) {
        if self.begun {
            self.access = None;
            if let Trap::Fault(fault) = core.trap {
                self.add(format_args!(" -- {fault}"));
            }
            self.end_line();
        }
    }

    fn semihosting_done(&mut self, core: &Core, written: &[(u32, u32)]) {
        let call = core.registers.r[0];
        let written: String =
            written.iter().map(|(at, bytes)| format!(" [{at:08x}]:{bytes}")).collect();
        let wrote = if written.is_empty() { "" } else { ", which wrote" };
        self.event(core, format_args!("semihosting call {call:#x}{wrote}{written}"));
    }

    fn exception(&mut self, core: &Core, entered: bool) {
        let number = core.registers.ipsr;
        match (entered, number) {
            (true, _) => {
                self.event(core, format_args!("enters exception {number}{}", name(number)))
            }
            (false, 0) => self.event(core, format_args!("returns to Thread mode")),
            (false, _) => self.event(core, format_args!("returns to exception {number}")),
        }
    }
}

/// An exception's name (DDI 0403E table B1-4).
fn name(number: u16) -> &'static str {
    match number {
        2 => " (NMI)",
        3 => " (HardFault)",
        4 => " (MemManage)",
        5 => " (BusFault)",
        6 => " (UsageFault)",
        11 => " (SVCall)",
        14 => " (PendSV)",
        15 => " (SysTick)",
        _ => "",
    }
}
