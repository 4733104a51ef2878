// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Label propagation and leaks of instructions that [`super::plan`] does not describe; loads and
//! stores are in [`super::memory`].

use super::labels::Label;
use super::plan::{read_by_data, shifter};
use super::{
    BASEPRI, C, CONTROL, FAULTMASK, FLAGS, LeakKind, MONITOR, N, OTHER_STACK, PRIMASK, Q, Taint, Z,
};
use crate::core::{Core, Operation};
use crate::isa::{DataOp, Instruction, LR, Operand, PC, Reg, SP};

impl Taint {
    /// Before an instruction without a plan, which may still fault: reports its leaks and records
    /// what it may overwrite.
    #[inline(never)]
    pub(super) fn check_unplanned(&mut self, core: &Core, operation: &Operation) {
        match operation.instruction {
            Instruction::Data { op, rd: PC, rn, operand, .. } if !op.is_test() => {
                let label = self.first(read_by_data(op, rn, operand));
                self.leak_if_secret(LeakKind::Target, operation, label);
            }
            Instruction::Shift { rm, .. } => self.current.amount = core.registers.get(rm) & 0xff,
            Instruction::BranchExchange { rm, .. } => {
                let label = self.first(1 << rm);
                self.leak_if_secret(LeakKind::Target, operation, label);
            }
            Instruction::Msr { .. } | Instruction::ChangeState { .. } => {
                self.current.privileged = core.registers.privileged()
            }
            Instruction::Breakpoint { .. } => self.current.calls_host = Some(operation.clone()),
            _ => self.check_memory_access(core, operation),
        }
    }

    /// Reports a leak if the label is secret and the instruction is executed.
    #[inline]
    pub(super) fn leak_if_secret(&mut self, kind: LeakKind, operation: &Operation, label: Label) {
        if label.is_secret() && !self.current.skipped {
            self.leak(kind, operation, label);
        }
    }

    /// After an executed instruction without a plan: labels its results.
    #[inline(never)]
    pub(super) fn transfer(&mut self, core: &mut Core, operation: &Operation) {
        match operation.instruction {
            Instruction::Data { op, rd, rn, operand, .. } => self.logical(op, rd, rn, operand),
            Instruction::Shift { flags, rd, rn, rm, .. } => self.shift(flags, rd, rn, rm),
            Instruction::Saturate { rd, rn, .. } => {
                let label = self.first(1 << rn);
                self.set(1 << rd, label);
                // Q is sticky.
                self.add(Q, label);
            }
            Instruction::BranchExchange { link, .. } => {
                // LR depends on the address of the instruction only.
                self.set(if link { 1 << LR } else { 0 }, Label::CLEAN);
                self.note_return(core, operation);
            }
            Instruction::Mrs { rd, sysm } => {
                let label = self.special(sysm);
                self.set(1 << rd, label);
            }
            Instruction::Msr { rn, sysm } => self.set_special(core, sysm, rn),
            Instruction::ChangeState { primask, faultmask, .. } if self.current.privileged => {
                self.set(
                    if primask { PRIMASK } else { 0 } | if faultmask { FAULTMASK } else { 0 },
                    Label::CLEAN,
                );
            }
            Instruction::ClearExclusive => self.set(MONITOR, Label::CLEAN),
            _ => self.transfer_memory(core, operation),
        }
    }

    /// A flag-setting logical operation whose carry and result have different origins, or a jump.
    fn logical(&mut self, op: DataOp, rd: Reg, rn: Reg, operand: Operand) {
        if rd == PC && !op.is_test() {
            return;
        }
        let label = self.first(read_by_data(op, rn, operand));
        if let Some(carry) = shifter(operand) {
            let carry = self.first(carry);
            self.set(C, carry);
        }
        self.set(if op.is_test() { 0 } else { 1 << rd } | N | Z, label);
    }

    fn shift(&mut self, flags: bool, rd: Reg, rn: Reg, rm: Reg) {
        let amount = self.first(1 << rm);
        let value = self.first(1 << rn);
        if flags {
            if amount.is_secret() {
                // A shift by zero keeps the carry, so the old carry matters too.
                let before = self.first(C);
                self.set(C, amount.or(value).or(before));
            } else if self.current.amount != 0 {
                self.set(C, value);
            }
        }
        self.set(1 << rd | if flags { N | Z } else { 0 }, value.or(amount));
    }

    /// DDI 0403E section B5.2.2.
    fn special(&self, sysm: u8) -> Label {
        match sysm {
            0..=7 if sysm & 4 == 0 => self.first(FLAGS | Q),
            8 | 9 => self.first(1 << self.stack_pointer(sysm == 9)),
            16 => self.first(PRIMASK),
            17 | 18 => self.first(BASEPRI),
            19 => self.first(FAULTMASK),
            20 => self.first(CONTROL),
            _ => Label::CLEAN,
        }
    }

    fn set_special(&mut self, core: &Core, sysm: u8, rn: Reg) {
        let label = self.first(1 << rn);
        if sysm <= 3 {
            return self.set(FLAGS | Q, label);
        }
        if !self.current.privileged {
            return;
        }
        match sysm {
            8 | 9 => self.set(1 << self.stack_pointer(sysm == 9), label),
            16 => self.set(PRIMASK, label),
            17 => self.set(BASEPRI, label),
            // BASEPRI_MAX takes a value only if it is of a higher priority.
            18 => self.add(BASEPRI, label),
            19 => self.set(FAULTMASK, label),
            20 => {
                self.set(CONTROL, label);
                self.select_stack(core);
                // CONTROL selects the stack pointer in R13.
                self.add(1 << SP | 1 << OTHER_STACK, label);
            }
            _ => {}
        }
    }

    fn stack_pointer(&self, process: bool) -> u32 {
        if process == self.process_stack { u32::from(SP) } else { OTHER_STACK }
    }

    /// Swaps the labels of the stack pointers when R13 selects the other one.
    pub(super) fn select_stack(&mut self, core: &Core) {
        if core.registers.process_stack != self.process_stack {
            self.process_stack = core.registers.process_stack;
            let (here, there) = (self.first(1 << SP), self.first(1 << OTHER_STACK));
            self.set(1 << SP, there);
            self.set(1 << OTHER_STACK, here);
        }
    }
}
