// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads and stores (DDI 0403E sections A3.2 and A7.7).

use super::{Core, Fault, Flow, Operation, Trap};
use crate::isa::{Address, Index, Instruction, Offset, PC, Reg, SP, Width};
use crate::memory::Space;

impl Core {
    /// The address of an access, and the new value of its base register.
    #[inline]
    pub fn effective_address(&self, address: Address) -> (u32, u32) {
        let base = self.registers.get(address.base);
        let moved = match address.offset {
            Offset::Immediate(offset) => base.wrapping_add_signed(offset),
            Offset::Register { rm, lsl } => base.wrapping_add(self.registers.get(rm) << lsl),
        };
        if address.index == Index::Post { (base, moved) } else { (moved, moved) }
    }

    #[inline]
    pub(super) fn load(
        &mut self,
        operation: &Operation,
        width: Width,
        rt: Reg,
        address: Address,
    ) -> Flow {
        let (at, moved) = self.effective_address(address);
        let Some(value) = self.read(operation, width, at) else { return Flow::Trapped };
        if address.index != Index::Offset {
            self.registers.set(address.base, moved);
        }
        self.loaded(rt, value)
    }

    #[inline]
    pub(super) fn load_at(
        &mut self,
        operation: &Operation,
        width: Width,
        rt: Reg,
        at: u32,
    ) -> Flow {
        match self.read(operation, width, at) {
            Some(value) => self.loaded(rt, value),
            None => Flow::Trapped,
        }
    }

    #[inline]
    fn loaded(&mut self, rt: Reg, value: u32) -> Flow {
        if rt == PC {
            return self.branch_exchange(value);
        }
        self.registers.set(rt, value);
        Flow::Next
    }

    #[inline]
    pub(super) fn store(
        &mut self,
        operation: &Operation,
        width: Width,
        rt: Reg,
        address: Address,
    ) -> Flow {
        let (at, moved) = self.effective_address(address);
        let (value, before) = (self.registers.get(rt), self.registers.get(address.base));
        if !self.write_memory(operation, width, at, value) {
            return Flow::Trapped;
        }
        if address.index != Index::Offset {
            self.registers.set(address.base, moved);
            if self.overflows(address.base, before, moved) {
                return self.overflow(operation);
            }
        }
        self.stored(operation, at)
    }

    /// A store to a system register may enable an interrupt.
    #[inline]
    pub(super) fn stored(&mut self, operation: &Operation, at: u32) -> Flow {
        if at >> 28 != 0xe {
            return Flow::Next;
        }
        self.registers.r[15] = operation.next();
        self.trapped(Trap::Resynchronise)
    }

    pub(super) fn load_multiple(
        &mut self,
        operation: &Operation,
        rn: Reg,
        list: u16,
        writeback: bool,
        before: bool,
    ) -> Flow {
        let (start, end) = self.block(rn, list, before);
        if start & 3 != 0 {
            return self.fault(Fault::Unaligned { address: start });
        }
        let mut values = [0u32; 16];
        let mut at = start;
        for register in 0..16u8 {
            if list >> register & 1 == 1 {
                let Some(value) = self.read(operation, Width::Word, at) else {
                    return Flow::Trapped;
                };
                values[usize::from(register)] = value;
                at = at.wrapping_add(4);
            }
        }
        if writeback {
            self.registers.set(rn, end);
        }
        for register in 0..15u8 {
            if list >> register & 1 == 1 {
                self.registers.set(register, values[usize::from(register)]);
            }
        }
        if list >> PC & 1 == 1 { self.branch_exchange(values[15]) } else { Flow::Next }
    }

    pub(super) fn store_multiple(
        &mut self,
        operation: &Operation,
        rn: Reg,
        list: u16,
        writeback: bool,
        before: bool,
    ) -> Flow {
        let (start, end) = self.block(rn, list, before);
        if start & 3 != 0 {
            return self.fault(Fault::Unaligned { address: start });
        }
        let base = self.registers.get(rn);
        let mut at = start;
        for register in 0..15u8 {
            if list >> register & 1 == 1 {
                let value = self.registers.get(register);
                if !self.write_memory(operation, Width::Word, at, value) {
                    return Flow::Trapped;
                }
                at = at.wrapping_add(4);
            }
        }
        if writeback {
            self.registers.set(rn, end);
            if self.overflows(rn, base, end) {
                return self.overflow(operation);
            }
        }
        self.stored(operation, start)
    }

    /// Whether a push or a frame allocation took the main stack below its limit. A stack moved
    /// below it by MOV or MSR is another stack, whose limit is unknown.
    pub(super) fn overflows(&self, base: Reg, before: u32, moved: u32) -> bool {
        base == SP
            && moved < self.stack_limit
            && before >= self.stack_limit
            && !self.registers.process_stack
    }

    #[cold]
    pub(super) fn overflow(&mut self, operation: &Operation) -> Flow {
        self.registers.r[15] = operation.next();
        self.trapped(Trap::StackOverflow)
    }

    /// The lowest address of a register block, and the new base. `before` means descending (STMDB,
    /// LDMDB, PUSH); POP is decoded as an ascending load.
    fn block(&self, rn: Reg, list: u16, before: bool) -> (u32, u32) {
        let base = self.registers.get(rn);
        let bytes = list.count_ones() * 4;
        if before {
            let start = base.wrapping_sub(bytes);
            (start, start)
        } else {
            (base, base.wrapping_add(bytes))
        }
    }

    /// Less frequent loads and stores.
    pub(super) fn load_store_uncommon(&mut self, operation: &Operation) -> Flow {
        match operation.instruction {
            Instruction::LoadDual { rt, rt2, address } => {
                let (at, moved) = self.effective_address(address);
                let Some(values) = self.read_pair(operation, at) else { return Flow::Trapped };
                if address.index != Index::Offset {
                    self.registers.set(address.base, moved);
                }
                self.pair(rt, rt2, values)
            }
            Instruction::LoadDualLiteral { rt, rt2, address } => {
                match self.read_pair(operation, address) {
                    Some(values) => self.pair(rt, rt2, values),
                    None => Flow::Trapped,
                }
            }
            Instruction::StoreDual { rt, rt2, address } => {
                let (at, moved) = self.effective_address(address);
                if at & 3 != 0 {
                    return self.fault(Fault::Unaligned { address: at });
                }
                let (low, high) = (self.registers.get(rt), self.registers.get(rt2));
                let before = self.registers.get(address.base);
                if !self.write_memory(operation, Width::Word, at, low)
                    || !self.write_memory(operation, Width::Word, at.wrapping_add(4), high)
                {
                    return Flow::Trapped;
                }
                if address.index != Index::Offset {
                    self.registers.set(address.base, moved);
                    if self.overflows(address.base, before, moved) {
                        return self.overflow(operation);
                    }
                }
                self.stored(operation, at)
            }
            Instruction::LoadExclusive { width, rt, rn, offset } => {
                let at = self.registers.get(rn).wrapping_add(u32::from(offset));
                if at % width.bytes() != 0 {
                    return self.fault(Fault::Unaligned { address: at });
                }
                self.exclusive = true;
                self.load_at(operation, width, rt, at)
            }
            Instruction::StoreExclusive { width, rd, rt, rn, offset } => {
                let at = self.registers.get(rn).wrapping_add(u32::from(offset));
                if at % width.bytes() != 0 {
                    return self.fault(Fault::Unaligned { address: at });
                }
                let mine = std::mem::take(&mut self.exclusive);
                let value = self.registers.get(rt);
                if mine && !self.write_memory(operation, width, at, value) {
                    return Flow::Trapped;
                }
                self.registers.set(rd, u32::from(!mine));
                if mine { self.stored(operation, at) } else { Flow::Next }
            }
            Instruction::ClearExclusive => {
                self.exclusive = false;
                Flow::Next
            }
            Instruction::TableBranch { half, rn, rm } => {
                let index = self.registers.get(rm);
                let (width, offset) =
                    if half { (Width::Half, index << 1) } else { (Width::Byte, index) };
                let at = self.registers.get(rn).wrapping_add(offset);
                let Some(entry) = self.read(operation, width, at) else { return Flow::Trapped };
                self.registers.r[15] = self.registers.r[15].wrapping_add(entry * 2);
                Flow::Jumped
            }
            _ => not_implemented(self),
        }
    }

    fn read_pair(&mut self, operation: &Operation, at: u32) -> Option<[u32; 2]> {
        if at & 3 != 0 {
            self.fault(Fault::Unaligned { address: at });
            return None;
        }
        let first = self.read(operation, Width::Word, at)?;
        Some([first, self.read(operation, Width::Word, at.wrapping_add(4))?])
    }

    fn pair(&mut self, rt: Reg, rt2: Reg, [first, second]: [u32; 2]) -> Flow {
        self.registers.set(rt, first);
        self.registers.set(rt2, second);
        Flow::Next
    }

    /// Reads memory for an instruction; `None` leaves a fault in [`Core::trap`].
    #[inline]
    pub(super) fn read(&mut self, operation: &Operation, width: Width, at: u32) -> Option<u32> {
        if at & (width.bytes() - 1) == 0 {
            let value = match width {
                Width::Word => self.memory.word(at),
                Width::Half => self.memory.half(at).map(u32::from),
                Width::Byte => self.memory.byte(at).map(u32::from),
                Width::SignedHalf => self.memory.half(at).map(|half| half as i16 as u32),
                Width::SignedByte => self.memory.byte(at).map(|byte| byte as i8 as u32),
            };
            if let Some(value) = value {
                self.wait(operation, at);
                return Some(value);
            }
        }
        self.read_elsewhere(operation, width, at)
    }

    #[inline]
    pub(super) fn write_memory(
        &mut self,
        operation: &Operation,
        width: Width,
        at: u32,
        value: u32,
    ) -> bool {
        if at & (width.bytes() - 1) == 0 {
            let done = match width.bytes() {
                4 => self.memory.set_word(at, value),
                2 => self.memory.set_half(at, value as u16),
                _ => self.memory.set_byte(at, value as u8),
            };
            if done {
                self.wait(operation, at);
                return true;
            }
        }
        self.write_elsewhere(operation, width, at, value)
    }

    #[inline]
    fn wait(&mut self, operation: &Operation, at: u32) {
        if self.memory.has_wait_states() {
            self.wait_for_data(operation, at);
        }
    }

    /// Apart, so that accesses without wait states stay small enough to be inlined.
    #[cold]
    fn wait_for_data(&mut self, operation: &Operation, at: u32) {
        let now = self.clock + operation.cycles_before;
        self.clock += self.memory.data_wait(at, now);
    }

    /// The wait for an instruction in a memory that is read by lines.
    #[inline]
    pub(crate) fn wait_for_fetch(&mut self, operation: &Operation) {
        let now = self.clock + operation.cycles_before;
        self.clock += self.memory.fetch(operation.address, operation.bytes, now);
    }

    /// Unaligned accesses, bit-band aliases, system registers, ports, and unmapped addresses.
    #[cold]
    fn read_elsewhere(&mut self, operation: &Operation, width: Width, at: u32) -> Option<u32> {
        let raw = match self.memory.space(at) {
            Space::Memory => {
                self.unaligned(operation, width, at, false)?;
                let mut value = 0;
                for index in 0..width.bytes() {
                    let Some(byte) = self.memory.byte(at.wrapping_add(index)) else {
                        self.fault(Fault::Data { address: at, write: false });
                        return None;
                    };
                    value |= u32::from(byte) << (8 * index);
                }
                Some(value)
            }
            Space::BitBand { byte, bit } => {
                self.wait(operation, byte);
                let value = self.memory.byte(byte).map(u32::from);
                let value = value.or_else(|| self.memory.peripherals.read(byte));
                value.map(|value| value >> bit & 1)
            }
            Space::System => self.system_read(width, at, self.clock + operation.cycles_before),
            Space::Ports => Some(self.memory.ports.read(at)),
            Space::Peripheral => {
                self.aligned(width, at)?;
                self.memory.peripherals.read(at)
            }
            Space::Nothing => None,
        };
        let Some(raw) = raw else {
            self.fault(Fault::Data { address: at, write: false });
            return None;
        };
        Some(match width {
            Width::SignedByte => raw as u8 as i8 as u32,
            Width::SignedHalf => raw as u16 as i16 as u32,
            Width::Byte => raw & 0xff,
            Width::Half => raw & 0xffff,
            Width::Word => raw,
        })
    }

    #[cold]
    fn write_elsewhere(
        &mut self,
        operation: &Operation,
        width: Width,
        at: u32,
        value: u32,
    ) -> bool {
        let now = self.clock + operation.cycles_before;
        let done = match self.memory.space(at) {
            Space::Memory => {
                if self.unaligned(operation, width, at, true).is_none() {
                    return false;
                }
                let last = at.wrapping_add(width.bytes() - 1);
                self.memory.is_writable(at)
                    && self.memory.is_writable(last)
                    && (0..width.bytes()).all(|index| {
                        self.memory.set_byte(at.wrapping_add(index), (value >> (8 * index)) as u8)
                    })
            }
            Space::BitBand { byte, bit } => match self.memory.byte(byte) {
                Some(old) => {
                    // A read and a write of the byte.
                    self.wait(operation, byte);
                    self.wait(operation, byte);
                    let new = old & !(1 << bit) | ((value & 1) as u8) << bit;
                    self.memory.set_byte(byte, new)
                }
                None => match self.memory.peripherals.read(byte) {
                    Some(old) => {
                        let new = old & !(1 << bit) | (value & 1) << bit;
                        self.memory.peripherals.write(Width::Byte, byte, new)
                    }
                    None => false,
                },
            },
            Space::System => self.system_write(width, at, value, now),
            Space::Ports => {
                self.memory.ports.write(at, value, now, self.registers.get(SP));
                true
            }
            Space::Peripheral => {
                if self.aligned(width, at).is_none() {
                    return false;
                }
                self.memory.peripherals.write(width, at, value)
            }
            Space::Nothing => false,
        };
        if !done {
            self.fault(Fault::Data { address: at, write: true });
        }
        done
    }

    /// Device memory takes no unaligned accesses (DDI 0403E section A3.2.1).
    fn aligned(&mut self, width: Width, at: u32) -> Option<()> {
        if at & (width.bytes() - 1) == 0 {
            return Some(());
        }
        self.fault(Fault::Unaligned { address: at });
        None
    }

    /// Adds the cycles of an unaligned access; `None` if it is a fault.
    fn unaligned(
        &mut self,
        operation: &Operation,
        width: Width,
        at: u32,
        store: bool,
    ) -> Option<()> {
        if at & (width.bytes() - 1) == 0 {
            self.wait(operation, at);
            return Some(());
        }
        if self.system.traps_unaligned() {
            self.fault(Fault::Unaligned { address: at });
            return None;
        }
        let parts = if width == Width::Word && at & 1 == 1 { 3 } else { 2 };
        self.clock += self.costs.unaligned(store, parts);
        for _ in 0..parts {
            self.wait(operation, at);
        }
        Some(())
    }
}

/// `execute` and this file cover every instruction; one that is missing in both faults.
#[cold]
fn not_implemented(core: &mut Core) -> Flow {
    core.fault(Fault::Undefined)
}
