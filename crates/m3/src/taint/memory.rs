// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads and stores of secrets. A base register with write-back keeps its own label.

use super::labels::Label;
use super::plan::read_by_address;
use super::{LeakKind, MONITOR, PoisonedBy, Secret, Taint};
use crate::core::{Core, Operation};
use crate::isa::{Address, Instruction, PC, Reg, SP, Width};
use crate::memory::Space;
use crate::ports::PIPE_DATA;
use crate::semihosting::{MAX_WRITE, console_writes};

/// The end of ITM's stimulus ports (DDI 0403E section C1.7.2).
const ITM_END: u32 = 0xe000_0080;

impl Taint {
    /// Before an access: records its address and reports a secret one.
    #[inline(never)]
    pub(super) fn check_memory_access(&mut self, core: &Core, operation: &Operation) {
        match operation.instruction {
            Instruction::Load { address, .. } | Instruction::LoadDual { address, .. } => {
                self.set_access_address(core, address);
                self.leak_if_secret(LeakKind::LoadAddress, operation, self.current.address);
            }
            Instruction::StoreDual { address, .. } => {
                self.set_access_address(core, address);
                self.leak_if_secret(LeakKind::StoreAddress, operation, self.current.address);
            }
            Instruction::LoadLiteral { address, .. }
            | Instruction::LoadDualLiteral { address, .. } => {
                (self.current.at, self.current.address) = (address, Label::CLEAN);
            }
            Instruction::LoadMultiple { rn, list, before, .. } => {
                self.set_access_block(core, rn, list, before);
                self.leak_if_secret(LeakKind::LoadAddress, operation, self.current.address);
            }
            Instruction::StoreMultiple { rn, list, before, .. } => {
                self.set_access_block(core, rn, list, before);
                self.leak_if_secret(LeakKind::StoreAddress, operation, self.current.address);
            }
            Instruction::LoadExclusive { rn, offset, .. } => {
                self.set_access(rn, core.registers.get(rn).wrapping_add(u32::from(offset)));
                self.leak_if_secret(LeakKind::LoadAddress, operation, self.current.address);
            }
            Instruction::StoreExclusive { rn, offset, .. } => {
                self.set_access(rn, core.registers.get(rn).wrapping_add(u32::from(offset)));
                self.leak_if_secret(LeakKind::StoreAddress, operation, self.current.address);
            }
            Instruction::TableBranch { half, rn, rm } => {
                self.check_table_branch(core, operation, half, rn, rm)
            }
            _ => {}
        }
        self.check_loaded_target(core, operation);
    }

    fn set_access_address(&mut self, core: &Core, address: Address) {
        self.current.at = core.effective_address(address).0;
        self.current.address = self.first(read_by_address(address));
    }

    fn set_access(&mut self, rn: Reg, at: u32) {
        (self.current.at, self.current.address) = (at, self.first(1 << rn));
    }

    fn set_access_block(&mut self, core: &Core, rn: Reg, list: u16, before: bool) {
        let base = core.registers.get(rn);
        self.set_access(rn, if before { base.wrapping_sub(4 * list.count_ones()) } else { base });
    }

    fn check_table_branch(
        &mut self,
        core: &Core,
        operation: &Operation,
        half: bool,
        rn: Reg,
        rm: Reg,
    ) {
        let base =
            if rn == PC { operation.address.wrapping_add(4) } else { core.registers.get(rn) };
        let at = base.wrapping_add(core.registers.get(rm) << u32::from(half));
        let label = self.first(1 << rn | 1 << rm);
        self.leak_if_secret(LeakKind::LoadAddress, operation, label);
        let entry = self.read(core, at, 1 + u32::from(half));
        self.leak_if_secret(LeakKind::Target, operation, label.or(entry));
    }

    /// Reports a secret that is loaded to PC.
    fn check_loaded_target(&mut self, core: &Core, operation: &Operation) {
        let at = match operation.instruction {
            Instruction::Load { rt: PC, .. } | Instruction::LoadLiteral { rt: PC, .. } => {
                self.current.at
            }
            Instruction::LoadMultiple { list, .. } if list >> PC & 1 == 1 => {
                self.current.at.wrapping_add(4 * (list.count_ones() - 1))
            }
            _ => return,
        };
        let label = self.read(core, at, 4).or(self.current.address);
        self.leak_if_secret(LeakKind::Target, operation, label);
    }

    /// After an access: propagates labels.
    #[inline(never)]
    pub(super) fn transfer_memory(&mut self, core: &mut Core, operation: &Operation) {
        let at = self.current.at;
        let second = at.wrapping_add(4);
        match operation.instruction {
            // A load to PC: other loads have a plan.
            Instruction::Load { .. } => self.note_return(core, operation),
            Instruction::LoadLiteral { width, rt, .. } => {
                self.load_to(core, operation, false, (rt, at), width.bytes());
            }
            Instruction::LoadDual { rt, rt2, address } => {
                self.load_to(core, operation, address.base == SP, (rt, at), 4);
                self.load_to(core, operation, address.base == SP, (rt2, second), 4);
            }
            Instruction::LoadDualLiteral { rt, rt2, .. } => {
                self.load_to(core, operation, false, (rt, at), 4);
                self.load_to(core, operation, false, (rt2, second), 4);
            }
            Instruction::LoadMultiple { rn, list, .. } => {
                for place in listed(list, at) {
                    self.load_to(core, operation, rn == SP, place, 4);
                }
            }
            Instruction::LoadExclusive { width, rt, rn, .. } => {
                // The monitor does not record the address.
                self.set(MONITOR, Label::CLEAN);
                self.load_to(core, operation, rn == SP, (rt, at), width.bytes());
            }
            Instruction::StoreDual { rt, rt2, .. } => {
                self.store(core, operation, 1 << rt, at, 4);
                self.store(core, operation, 1 << rt2, second, 4);
            }
            Instruction::StoreMultiple { list, .. } => {
                for (rt, at) in listed(list, at) {
                    self.store(core, operation, 1 << rt, at, 4);
                }
            }
            Instruction::StoreExclusive { width, rd, rt, .. } => {
                self.store_exclusive(core, operation, width, rd, rt);
            }
            _ => {}
        }
    }

    fn load_to(
        &mut self,
        core: &Core,
        operation: &Operation,
        from_stack: bool,
        (rt, at): (Reg, u32),
        bytes: u32,
    ) {
        if rt == PC {
            return self.note_return(core, operation);
        }
        let label = self.loaded(core, operation, from_stack, at, bytes);
        self.set(1 << rt, label);
    }

    /// The label of what is loaded.
    #[inline]
    pub(super) fn loaded(
        &mut self,
        core: &Core,
        operation: &Operation,
        from_stack: bool,
        at: u32,
        bytes: u32,
    ) -> Label {
        let stored = self.read(core, at, bytes);
        if stored.is_secret() {
            self.label_of_load(stored, operation, from_stack)
        } else {
            self.current.address
        }
    }

    /// The label of a loaded secret. A register restored from the stack keeps its origin, since the
    /// load before it is what a reader looks for.
    fn label_of_load(&mut self, label: Label, operation: &Operation, from_stack: bool) -> Label {
        let label = self.names.plain(label);
        if from_stack && self.names.origin(label).loaded_by.is_some() {
            return label;
        }
        self.names.load(label, operation)
    }

    #[inline]
    pub(super) fn store(
        &mut self,
        core: &mut Core,
        operation: &Operation,
        of: u32,
        at: u32,
        bytes: u32,
    ) {
        let label = self.first(of).or(self.current.address);
        self.write(core, operation, at, bytes, label);
        if core.memory.code_changed {
            self.plans.clear();
        }
    }

    fn store_exclusive(
        &mut self,
        core: &mut Core,
        operation: &Operation,
        width: Width,
        rd: Reg,
        rt: Reg,
    ) {
        // Success depends on the monitor alone.
        let success = self.first(MONITOR);
        let done = core.registers.get(rd) == 0;
        if done || success.is_secret() {
            let label = self.first(1 << rt).or(success).or(self.current.address);
            self.write(core, operation, self.current.at, width.bytes(), label);
        }
        self.set(1 << rd, success);
        self.set(MONITOR, Label::CLEAN);
    }

    /// The label of bytes at an address.
    #[inline]
    pub(super) fn read(&self, core: &Core, at: u32, bytes: u32) -> Label {
        match self.shadow.get(at, bytes) {
            Some(label) => label,
            None => self.read_elsewhere(core, at),
        }
    }

    #[cold]
    fn read_elsewhere(&self, core: &Core, at: u32) -> Label {
        match core.memory.space(at) {
            Space::BitBand { byte, .. } => self.shadow.get(byte, 1).unwrap_or_default(),
            Space::System => self.system.get(&system_word(at)).copied().unwrap_or_default(),
            _ => Label::CLEAN,
        }
    }

    #[inline]
    fn write(&mut self, core: &mut Core, operation: &Operation, at: u32, bytes: u32, label: Label) {
        if !self.shadow.set(at, bytes, label) {
            self.write_elsewhere(core, operation, at, bytes, label);
        }
    }

    #[cold]
    fn write_elsewhere(
        &mut self,
        core: &mut Core,
        operation: &Operation,
        at: u32,
        bytes: u32,
        label: Label,
    ) {
        match core.memory.space(at) {
            // A public bit leaves the other seven bits as they are.
            Space::BitBand { byte, .. } if label.is_secret() => {
                self.shadow.set(byte, 1, label);
            }
            Space::Ports if at & !3 == PIPE_DATA => self.sent(operation, label),
            Space::Peripheral if core.memory.peripherals.sends(at) => self.sent(operation, label),
            Space::Ports => {
                for request in std::mem::take(&mut core.memory.ports.taint_requests) {
                    if request.poison {
                        let by = PoisonedBy::Port(operation.address);
                        self.poison(Secret { address: request.address, bytes: request.bytes, by });
                    } else {
                        self.unpoison(request.address, request.bytes);
                    }
                }
            }
            Space::System if label.is_secret() => {
                // A stimulus port sends.
                if at < ITM_END {
                    self.sent(operation, label);
                    return;
                }
                // The System Control Space decides whether and when exceptions are taken.
                if at >> 12 == 0xe000e {
                    self.leak(LeakKind::Branch, operation, label);
                }
                self.system.insert(system_word(at), label);
            }
            Space::System if bytes == 4 => {
                self.system.remove(&system_word(at));
            }
            _ => {}
        }
    }

    /// Labels the bytes that a store under a secret condition writes or would have written.
    pub(super) fn taint_conditional_store(
        &mut self,
        core: &Core,
        operation: &Operation,
        label: Label,
    ) {
        let bytes = match operation.instruction {
            Instruction::Store { width, .. } | Instruction::StoreExclusive { width, .. } => {
                width.bytes()
            }
            Instruction::StoreDual { .. } => 8,
            Instruction::StoreMultiple { list, .. } => 4 * list.count_ones(),
            _ => return,
        };
        for offset in 0..bytes {
            let at = match core.memory.space(self.current.at) {
                Space::BitBand { byte, .. } => byte,
                _ => self.current.at.wrapping_add(offset),
            };
            if self.shadow.get(at, 1) == Some(Label::CLEAN) {
                self.shadow.set(at, 1, label);
            }
        }
    }

    /// After a store that faulted: words before the faulting one are stored.
    pub(super) fn stored_before(&mut self, core: &mut Core, operation: &Operation, faulting: u32) {
        let at = self.current.at;
        match operation.instruction {
            Instruction::StoreMultiple { list, .. } => {
                for (rt, at) in listed(list, at).take_while(|(_, at)| *at != faulting) {
                    self.store(core, operation, 1 << rt, at, 4);
                }
            }
            Instruction::StoreDual { rt, .. } if faulting != at => {
                self.store(core, operation, 1 << rt, at, 4);
            }
            _ => {}
        }
    }

    fn sent(&mut self, operation: &Operation, label: Label) {
        if label.is_secret() {
            self.outputs.note(LeakKind::Output, operation, label);
        }
    }

    /// Reports secret bytes that a semihosting call printed (SYS_WRITEC, SYS_WRITE0, SYS_WRITE).
    fn printed(&mut self, core: &Core) {
        let Some(operation) = self.current.calls_host.take() else { return };
        let (number, parameter) = (core.registers.r[0], core.registers.r[1]);
        let word = |index: u32| core.memory.word(parameter.wrapping_add(4 * index)).unwrap_or(0);
        let (at, bytes) = match number {
            0x03 => (parameter, 1),
            0x04 => (parameter, core.memory.c_string(parameter, MAX_WRITE).len() as u32),
            0x05 if console_writes(word(0)) => (word(1), word(2).min(MAX_WRITE)),
            _ => return,
        };
        let label = self.shadow.get(at, bytes).unwrap_or_default();
        self.sent(&operation, self.names.plain(label));
    }

    /// The result of a semihosting call and what the host writes are public.
    pub(super) fn host_answered(&mut self, core: &Core, written: &[(u32, u32)]) {
        self.printed(core);
        for (at, bytes) in written {
            self.unpoison(*at, *bytes);
        }
        self.set(1, Label::CLEAN);
        if core.memory.code_changed {
            self.plans.clear();
        }
    }
}

/// The word address of a system register; registers that set and clear the same bits (ISER and
/// ICER, ISPR and ICPR) share the first address.
fn system_word(at: u32) -> u32 {
    let word = at & !3;
    if (0xe000_e100..0xe000_e300).contains(&word) { word & !0x80 } else { word }
}

/// The registers of a list with their addresses in memory.
fn listed(list: u16, at: u32) -> impl Iterator<Item = (Reg, u32)> {
    (0..16)
        .filter(move |register| list >> register & 1 == 1)
        .zip(0u32..)
        .map(move |(register, index)| (register, at.wrapping_add(4 * index)))
}
