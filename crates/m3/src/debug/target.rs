// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The chip as gdb's remote protocol sees it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write;

use gdbstub::common::Signal;
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::single_register_access::{
    SingleRegisterAccess, SingleRegisterAccessOps,
};
use gdbstub::target::ext::base::singlethread::{
    SingleThreadBase, SingleThreadRangeStepping, SingleThreadRangeSteppingOps, SingleThreadResume,
    SingleThreadResumeOps, SingleThreadSingleStep, SingleThreadSingleStepOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps,
    SwBreakpoint, SwBreakpointOps,
};
use gdbstub::target::ext::flash::{Flash, FlashOps};
use gdbstub::target::ext::memory_map::{MemoryMap, MemoryMapOps};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps, outputln};
use gdbstub::target::{Target, TargetError, TargetResult};

use super::control::{BreakKind, Control, Until, WatchKind, Watchpoint};
use super::registers::{BYTES, CortexM3, Number, Values};
use crate::isa::Width;
use crate::memory::{Memory, Space, Span};
use crate::session::Session;
use crate::stop::Stop;

/// EFAULT.
const BAD_ADDRESS: u8 = 14;
/// What gdb may erase at once, in bytes: chips differ, and nothing here depends on it.
const FLASH_BLOCK: u32 = 1024;

const HELP: &str = "\
monitor cycles   cycles by both readings, and instructions, since reset
monitor reset    reset the chip; memories keep their content, as on a board
monitor why      why the program stopped";

/// A chip under a debugger.
#[derive(Debug)]
pub(super) struct Debugged {
    pub(super) session: Session,
    pub(super) control: Control,
    /// Why the run stopped last, if not at a breakpoint or a step.
    pub(super) stopped: Option<Stop>,
    input: VecDeque<u8>,
    memory_map: String,
}

impl Debugged {
    pub(super) fn new(session: Session) -> Self {
        let memory_map = memory_map(&session.machine.core.memory);
        let input = session.machine.semihosting.input.clone();
        Debugged { session, control: Control::default(), stopped: None, input, memory_map }
    }

    fn go(&mut self, until: Until) {
        let registers = &mut self.session.machine.core.registers;
        // A chip's debugger steps over BKPT of the program, which would stop it again.
        if let Some(Stop::Breakpoint { address, .. }) = self.stopped.take()
            && registers.pc() == address
        {
            registers.r[15] = address.wrapping_add(2);
        }
        self.control.resume(until);
    }

    fn reset(&mut self) -> Result<(), String> {
        self.session.reset().map_err(|error| error.to_string())?;
        self.session.machine.semihosting.input.clone_from(&self.input);
        self.stopped = None;
        Ok(())
    }

    /// One byte of a memory, or of a word of a system register.
    fn byte(&self, at: u32) -> Option<u8> {
        let core = &self.session.machine.core;
        match core.memory.space(at) {
            Space::Memory => core.memory.byte(at),
            Space::BitBand { byte, bit } => self.byte(byte).map(|value| value >> bit & 1),
            Space::Peripheral => core.memory.peripherals.read(at).map(|word| word as u8),
            Space::System => {
                core.peek_system(at & !3).map(|word| word.to_le_bytes()[(at & 3) as usize])
            }
            // Loads have effects there.
            Space::Ports | Space::Nothing => None,
        }
    }
}

impl Target for Debugged {
    type Arch = CortexM3;
    type Error = Infallible;

    fn base_ops(&mut self) -> BaseOps<'_, CortexM3, Infallible> {
        BaseOps::SingleThread(self)
    }

    // Acknowledgements tell answers that were made here from those of the library.
    fn use_no_ack_mode(&self) -> bool {
        false
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }

    fn support_memory_map(&mut self) -> Option<MemoryMapOps<'_, Self>> {
        Some(self)
    }

    fn support_flash_operations(&mut self) -> Option<FlashOps<'_, Self>> {
        Some(self)
    }
}

impl SingleThreadBase for Debugged {
    fn read_registers(&mut self, values: &mut Values) -> TargetResult<(), Self> {
        *values = Values::of(&self.session.machine.core.registers);
        Ok(())
    }

    fn write_registers(&mut self, values: &Values) -> TargetResult<(), Self> {
        let core = &mut self.session.machine.core;
        values.write(&mut core.registers, core.system.priority_mask);
        Ok(())
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, (), Self>> {
        Some(self)
    }

    /// Up to the first byte that cannot be read.
    fn read_addrs(&mut self, start: u32, data: &mut [u8]) -> TargetResult<usize, Self> {
        let mut read = 0;
        for (offset, place) in (0u32..).zip(data.iter_mut()) {
            let Some(byte) = start.checked_add(offset).and_then(|at| self.byte(at)) else { break };
            *place = byte;
            read += 1;
        }
        if read == 0 && !data.is_empty() {
            return Err(TargetError::Errno(BAD_ADDRESS));
        }
        Ok(read)
    }

    fn write_addrs(&mut self, start: u32, data: &[u8]) -> TargetResult<(), Self> {
        let core = &mut self.session.machine.core;
        let written = match core.memory.space(start) {
            Space::Memory => core.memory.patch(start, data),
            // Registers act on whole words.
            space @ (Space::System | Space::Peripheral) => {
                let (words, rest) = data.as_chunks::<BYTES>();
                let mut each = (start..).step_by(BYTES).zip(words);
                rest.is_empty()
                    && start & 3 == 0
                    && each.all(|(at, word)| match (space, u32::from_le_bytes(*word)) {
                        (Space::System, value) => core.poke_system(at, value),
                        (_, value) => core.memory.peripherals.write(Width::Word, at, value),
                    })
            }
            _ => data.is_empty(),
        };
        if written { Ok(()) } else { Err(TargetError::Errno(BAD_ADDRESS)) }
    }

    fn support_resume(&mut self) -> Option<SingleThreadResumeOps<'_, Self>> {
        Some(self)
    }
}

impl SingleRegisterAccess<()> for Debugged {
    fn read_register(
        &mut self,
        (): (),
        number: Number,
        place: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let value = number.read(&self.session.machine.core.registers);
        place.get_mut(..BYTES).ok_or(TargetError::NonFatal)?.copy_from_slice(&value.to_le_bytes());
        Ok(BYTES)
    }

    fn write_register(&mut self, (): (), number: Number, value: &[u8]) -> TargetResult<(), Self> {
        let value = value.try_into().map_err(|_| TargetError::NonFatal)?;
        let core = &mut self.session.machine.core;
        let mask = core.system.priority_mask;
        number.write(&mut core.registers, u32::from_le_bytes(value), mask);
        Ok(())
    }
}

impl SingleThreadResume for Debugged {
    // A chip has no signals: the one that gdb hands back, where a fault stopped it, means nothing.
    fn resume(&mut self, _signal: Option<Signal>) -> Result<(), Infallible> {
        self.go(Until::Stopped);
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<SingleThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_range_step(&mut self) -> Option<SingleThreadRangeSteppingOps<'_, Self>> {
        Some(self)
    }
}

impl SingleThreadSingleStep for Debugged {
    fn step(&mut self, _signal: Option<Signal>) -> Result<(), Infallible> {
        self.go(Until::Step);
        Ok(())
    }
}

impl SingleThreadRangeStepping for Debugged {
    fn resume_range_step(&mut self, start: u32, end: u32) -> Result<(), Infallible> {
        self.go(Until::Outside(start..end));
        Ok(())
    }
}

impl Breakpoints for Debugged {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Debugged {
    fn add_sw_breakpoint(&mut self, address: u32, _kind: usize) -> TargetResult<bool, Self> {
        Ok(self.control.add_breakpoint(address, BreakKind::Software))
    }

    fn remove_sw_breakpoint(&mut self, address: u32, _kind: usize) -> TargetResult<bool, Self> {
        Ok(self.control.remove_breakpoint(address, BreakKind::Software))
    }
}

impl HwBreakpoint for Debugged {
    fn add_hw_breakpoint(&mut self, address: u32, _kind: usize) -> TargetResult<bool, Self> {
        Ok(self.control.add_breakpoint(address, BreakKind::Hardware))
    }

    fn remove_hw_breakpoint(&mut self, address: u32, _kind: usize) -> TargetResult<bool, Self> {
        Ok(self.control.remove_breakpoint(address, BreakKind::Hardware))
    }
}

impl HwWatchpoint for Debugged {
    fn add_hw_watchpoint(
        &mut self,
        address: u32,
        bytes: u32,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        Ok(self.control.add_watchpoint(Watchpoint { address, bytes, kind }))
    }

    fn remove_hw_watchpoint(
        &mut self,
        address: u32,
        bytes: u32,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        Ok(self.control.remove_watchpoint(Watchpoint { address, bytes, kind }))
    }
}

impl MemoryMap for Debugged {
    fn memory_map_xml(
        &self,
        offset: u64,
        length: usize,
        place: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.memory_map.as_bytes().get(from..).unwrap_or_default();
        let count = rest.len().min(length).min(place.len());
        place[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

impl Flash for Debugged {
    fn flash_erase(&mut self, start: u32, length: u32) -> TargetResult<(), Self> {
        let memory = &mut self.session.machine.core.memory;
        let holds = |at: u32| memory.region_of(at).map(|region| region.base);
        let last = length.checked_sub(1).and_then(|last| start.checked_add(last));
        let last = last.ok_or(TargetError::Errno(BAD_ADDRESS))?;
        if holds(start).is_none() || holds(start) != holds(last) {
            return Err(TargetError::Errno(BAD_ADDRESS));
        }
        // As bounded as its memory.
        memory.patch(start, &vec![0xff; length as usize]);
        Ok(())
    }

    fn flash_write(&mut self, start: u32, data: &[u8]) -> TargetResult<(), Self> {
        let written = self.session.machine.core.memory.patch(start, data);
        if written { Ok(()) } else { Err(TargetError::Errno(BAD_ADDRESS)) }
    }

    fn flash_done(&mut self) -> TargetResult<(), Self> {
        Ok(())
    }
}

impl MonitorCmd for Debugged {
    fn handle_monitor_cmd(
        &mut self,
        command: &[u8],
        mut out: ConsoleOutput<'_>,
    ) -> Result<(), Infallible> {
        let command = String::from_utf8_lossy(command);
        match command.trim() {
            "cycles" => {
                let machine = &self.session.machine;
                let (cycles, instructions) = (machine.core.clock, machine.instructions);
                outputln!(out, "{cycles} cycles, {instructions} instructions since reset");
            }
            // The second is what boards' servers call it.
            "reset" | "reset halt" => match self.reset() {
                Ok(()) => {
                    outputln!(out, "reset; now: maintenance flush register-cache");
                }
                Err(error) => outputln!(out, "the chip cannot start: {error}"),
            },
            "why" => match &self.stopped {
                Some(stop) => outputln!(out, "{}", self.session.describe(stop)),
                None => outputln!(out, "a breakpoint, a step, an interrupt, or the reset"),
            },
            "" | "help" => outputln!(out, "{HELP}"),
            _ => outputln!(out, "no such command; there are:\n{HELP}"),
        }
        Ok(())
    }
}

/// The memories for gdb, which refuses to touch anything else (its manual, "Memory Map Format").
fn memory_map(memory: &Memory) -> String {
    let mut map = String::from(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE memory-map PUBLIC \"+//IDN gnu.org//DTD GDB Memory Map \
         V1.0//EN\" \"http://sourceware.org/gdb/gdb-memory-map.dtd\">\n<memory-map>\n",
    );
    let mut add = |kind: &str, base: u32, bytes: u32, content: &str| {
        // A String takes whatever is written to it.
        let _ = writeln!(
            map,
            "<memory type=\"{kind}\" start=\"{base:#x}\" length=\"{bytes:#x}\">{content}</memory>"
        );
    };
    let flash = format!("<property name=\"blocksize\">{FLASH_BLOCK:#x}</property>");
    for span in memory.spans() {
        let is_ram = memory.region_of(span.first).is_some_and(|region| region.writable);
        let (kind, content) = if is_ram { ("ram", "") } else { ("flash", flash.as_str()) };
        add(kind, span.first, (span.last - span.first).saturating_add(1), content);
    }
    for (base, bytes) in memory.peripherals.extents() {
        add("ram", base, bytes, "");
    }
    // Bit-band aliases and the private peripheral bus (DDI 0337I section 3.4).
    for base in [0x2200_0000u32, 0x4200_0000] {
        const ALIAS: u32 = 0x0200_0000;
        let is_clear = |span: &Span| span.last < base || span.first - base >= ALIAS;
        if memory.spans().iter().all(is_clear) {
            add("ram", base, ALIAS, "");
        }
    }
    add("ram", 0xe000_0000, 0x0010_0000, "");
    map + "</memory-map>\n"
}
