// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an instruction makes secret, and how it shows secrets; loads and stores are in [`super::memory`].

use super::labels::Label;
use super::{
    BASEPRI, C, CONTROL, FAULTMASK, FLAGS, LeakKind, MONITOR, N, OTHER_STACK, PRIMASK, Q, Taint, Z,
    read_by,
};
use crate::core::{Core, Operation};
use crate::isa::{DataOp, Instruction, LR, Operand, PC, Reg, SP, ShiftKind};

impl Taint {
    /// Before an instruction: notes what it shows, and keeps what it may overwrite. It may still fault.
    #[inline]
    pub(super) fn look(&mut self, core: &Core, operation: &Operation) {
        match operation.instruction {
            Instruction::Data { op, rd, rn, operand, .. } => {
                if rd == PC && !op.is_test() && !self.now.skipped {
                    let label = self.first(read_by_data(op, rn, operand));
                    self.jump(operation, label);
                }
            }
            Instruction::Shift { rm, .. } => self.now.amount = core.registers.get(rm) & 0xff,
            Instruction::Branch { condition, .. } if condition.is_conditional() => {
                let label = self.first(read_by(condition));
                self.show(LeakKind::Branch, operation, label);
            }
            Instruction::CompareBranch { rn, .. } => {
                let label = self.first(1 << rn);
                self.show(LeakKind::Branch, operation, label);
            }
            Instruction::BranchExchange { rm, .. } => {
                let label = self.first(1 << rm);
                self.jump(operation, label);
            }
            // Which operand the cycles of UMLAL depend on is not said (DDI 0337I table 3-1): the sum's are looked at too.
            Instruction::LongMul { accumulate, lo, hi, rn, rm, .. } => {
                let sum = if accumulate { 1 << lo | 1 << hi } else { 0 };
                let label = self.first(1 << rn | 1 << rm | sum);
                self.show(LeakKind::Multiply, operation, label);
            }
            Instruction::Div { rn, rm, .. } => {
                let label = self.first(1 << rn | 1 << rm);
                self.show(LeakKind::Divide, operation, label);
            }
            Instruction::Msr { .. } | Instruction::ChangeState { .. } => {
                self.now.privileged = core.registers.privileged()
            }
            Instruction::BranchLink { .. } | Instruction::IfThen { .. } | Instruction::Nop => {}
            _ => self.look_at_memory(core, operation),
        }
    }

    /// Notes a leak of an instruction that is executed.
    #[inline]
    pub(super) fn show(&mut self, kind: LeakKind, operation: &Operation, label: Label) {
        if label.is_secret() && !self.now.skipped {
            self.leak(kind, operation, label);
        }
    }

    /// A jump to where a register or memory says.
    pub(super) fn jump(&mut self, operation: &Operation, label: Label) {
        self.show(LeakKind::Target, operation, label);
    }

    /// After an instruction that was executed: labels its results.
    #[inline]
    pub(super) fn transfer(&mut self, core: &mut Core, operation: &Operation) {
        match operation.instruction {
            Instruction::Data { op, flags, rd, rn, operand } => {
                self.data(op, flags, rd, rn, operand)
            }
            Instruction::Shift { flags, rd, rn, rm, .. } => self.shift(flags, rd, rn, rm),
            Instruction::Unary { rd, rm, .. } => self.result(rd, 1 << rm),
            Instruction::BitFieldExtract { rd, rn, .. } => self.result(rd, 1 << rn),
            Instruction::BitFieldInsert { rd, rn, width, .. } => {
                self.result(rd, 1 << rn | kept(rd, width))
            }
            Instruction::BitFieldClear { rd, width, .. } => self.result(rd, kept(rd, width)),
            // Half of the register stays.
            Instruction::MovTop { .. } => {}
            Instruction::Adr { rd, .. } => self.set(1 << rd, Label::CLEAN),
            Instruction::Saturate { rd, rn, .. } => {
                let label = self.first(1 << rn);
                self.set(1 << rd, label);
                // Q is set and never cleared by this.
                self.add(Q, label);
            }
            Instruction::Mul { flags, rd, rn, rm } => {
                let label = self.first(1 << rn | 1 << rm);
                self.set(1 << rd | if flags { N | Z } else { 0 }, label);
            }
            Instruction::Mla { rd, rn, rm, ra } | Instruction::Mls { rd, rn, rm, ra } => {
                self.result(rd, 1 << rn | 1 << rm | 1 << ra);
            }
            Instruction::LongMul { accumulate, lo, hi, rn, rm, .. } => {
                let sum = if accumulate { 1 << lo | 1 << hi } else { 0 };
                let label = self.first(1 << rn | 1 << rm | sum);
                self.set(1 << lo | 1 << hi, label);
            }
            Instruction::Div { rd, rn, rm, .. } => self.result(rd, 1 << rn | 1 << rm),
            // The link is this instruction's address.
            Instruction::BranchLink { .. } | Instruction::BranchExchange { link: true, .. } => {
                self.set(1 << LR, Label::CLEAN);
                self.note_return(core, operation);
            }
            Instruction::BranchExchange { .. } => self.note_return(core, operation),
            Instruction::Mrs { rd, sysm } => {
                let label = self.special(sysm);
                self.set(1 << rd, label);
            }
            Instruction::Msr { rn, sysm } => self.set_special(core, sysm, rn),
            Instruction::ChangeState { primask, faultmask, .. } if self.now.privileged => {
                self.set(
                    if primask { PRIMASK } else { 0 } | if faultmask { FAULTMASK } else { 0 },
                    Label::CLEAN,
                );
            }
            Instruction::ClearExclusive => self.set(MONITOR, Label::CLEAN),
            Instruction::Breakpoint { number: 0xab } => self.semihosting(core),
            Instruction::Branch { .. }
            | Instruction::CompareBranch { .. }
            | Instruction::IfThen { .. } => {}
            _ => self.transfer_memory(core, operation),
        }
    }

    #[inline]
    fn result(&mut self, rd: Reg, of: u32) {
        let label = self.first(of);
        self.set(1 << rd, label);
    }

    #[inline]
    fn data(&mut self, op: DataOp, flags: bool, rd: Reg, rn: Reg, operand: Operand) {
        let label = self.first(read_by_data(op, rn, operand));
        let shifter = match operand {
            // A shift by nought leaves the carry as it is; any other shifts it out of the register.
            Operand::Register { rm, amount, .. } if amount != 0 => Some(self.first(1 << rm)),
            Operand::Immediate { carry: Some(_), .. } => Some(Label::CLEAN),
            _ => None,
        };
        let rd = if op.is_test() { 0 } else { 1 << rd };
        if !flags {
            self.set(rd, label);
        } else if op.is_arithmetic() {
            self.set(rd | FLAGS, label);
        } else {
            self.set(rd | N | Z, label);
            if let Some(carry) = shifter {
                self.set(C, carry);
            }
        }
    }

    fn shift(&mut self, flags: bool, rd: Reg, rn: Reg, rm: Reg) {
        let amount = self.first(1 << rm);
        let value = self.first(1 << rn);
        if flags {
            if amount.is_secret() {
                // Whether the carry stays as it was is secret too.
                let before = self.first(C);
                self.set(C, amount.or(value).or(before));
            } else if self.now.amount != 0 {
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
        if !self.now.privileged {
            return;
        }
        match sysm {
            8 | 9 => self.set(1 << self.stack_pointer(sysm == 9), label),
            16 => self.set(PRIMASK, label),
            17 => self.set(BASEPRI, label),
            // BASEPRI_MAX takes a value that is more urgent than what was there.
            18 => self.add(BASEPRI, label),
            19 => self.set(FAULTMASK, label),
            20 => {
                self.set(CONTROL, label);
                self.select_stack(core);
                // Which stack pointer R13 is depends on it.
                self.add(1 << SP | 1 << OTHER_STACK, label);
            }
            _ => {}
        }
    }

    fn stack_pointer(&self, process: bool) -> u32 {
        if process == self.process_stack { u32::from(SP) } else { OTHER_STACK }
    }

    /// Follows R13 to the other stack.
    pub(super) fn select_stack(&mut self, core: &Core) {
        if core.registers.process_stack != self.process_stack {
            self.process_stack = core.registers.process_stack;
            let (here, there) = (self.first(1 << SP), self.first(1 << OTHER_STACK));
            self.set(1 << SP, there);
            self.set(1 << OTHER_STACK, here);
        }
    }
}

/// The old bits that a bit field leaves in a register: none where it is as wide.
fn kept(rd: Reg, width: u8) -> u32 {
    if width < 32 { 1 << rd } else { 0 }
}

/// The registers and flags that a data-processing result depends on.
#[inline]
fn read_by_data(op: DataOp, rn: Reg, operand: Operand) -> u32 {
    let carry = if op.reads_carry() { C } else { 0 };
    let first = if op.reads_rn() { 1 << rn } else { 0 };
    match operand {
        Operand::Immediate { .. } => first | carry,
        // x - x, x ^ x and x & !x are nought and x | !x is all ones whatever x is, and so are the flags: a constant, as
        // from MOV. x - x - !C is C's alone; compilers make masks of it.
        Operand::Register { rm, amount: 0, .. } if rm == rn && cancels(op) => carry,
        Operand::Register { rm, kind, .. } => {
            first | carry | 1 << rm | if kind == ShiftKind::Rrx { C } else { 0 }
        }
    }
}

fn cancels(op: DataOp) -> bool {
    use DataOp::*;
    matches!(op, Eor | Teq | Sub | Cmp | Rsb | Sbc | Bic | Orn)
}
