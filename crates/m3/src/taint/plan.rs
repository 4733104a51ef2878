// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effect of an instruction on labels, computed once for each address.
//!
//! Most instructions write results that are secret if an operand is: a set of sources and a set of
//! destinations describe them.

use super::{C, FLAGS, LeakKind, N, Z, read_by};
use crate::core::Operation;
use crate::isa::{
    Address, DataOp, Instruction, LR, Offset, Operand, PC, Reg, SP, ShiftKind, Width,
};

/// How labels propagate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What is written is secret if anything that is read is.
    Result,
    /// The same, and a secret that is read is a leak ([`Plan::leak`]).
    LeakingResult,
    /// One register from memory: `reads` is the address, `writes` the register.
    Load,
    /// One register to memory: `reads` is the address, `writes` the register stored.
    Store,
    /// Handled in [`super::transfer`].
    Other,
}

/// The effect of an instruction on labels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    tag: u32,
    pub(super) reads: u32,
    pub(super) writes: u32,
    pub(super) kind: Kind,
    pub(super) leak: LeakKind,
    /// The width of an access.
    pub(super) bytes: u8,
    /// Whether an access is relative to SP.
    pub(super) from_stack: bool,
}

impl Default for Plan {
    fn default() -> Self {
        NONE
    }
}

/// Plans by address.
#[derive(Debug)]
pub(super) struct Plans {
    slots: Box<[Plan; SLOTS]>,
}

const SLOTS: usize = 1 << 14;
/// No instruction has this tag.
const NONE: Plan = Plan {
    tag: u32::MAX,
    reads: 0,
    writes: 0,
    kind: Kind::Other,
    leak: LeakKind::Branch,
    bytes: 0,
    from_stack: false,
};

impl Default for Plans {
    fn default() -> Self {
        Plans { slots: Box::new([NONE; SLOTS]) }
    }
}

impl Plans {
    #[inline]
    pub(super) fn find(&mut self, operation: &Operation) -> Plan {
        // In an IT block the same encoding may not set flags.
        let tag = operation.address | u32::from(operation.it_state != 0);
        let slot = &mut self.slots[(operation.address >> 1) as usize & (SLOTS - 1)];
        if slot.tag != tag {
            *slot = plan(&operation.instruction);
            slot.tag = tag;
        }
        *slot
    }

    /// Empties the cache, because code was changed.
    #[cold]
    pub(super) fn clear(&mut self) {
        self.slots.fill(NONE);
    }
}

#[cold]
fn plan(instruction: &Instruction) -> Plan {
    let result = |reads, writes| Plan { kind: Kind::Result, reads, writes, ..NONE };
    let leaking =
        |leak, reads, writes| Plan { kind: Kind::LeakingResult, leak, reads, writes, ..NONE };
    match *instruction {
        Instruction::Data { op, flags, rd, rn, operand } => data(op, flags, rd, rn, operand),
        // A shift that sets flags is not planned: its carry depends on whether the amount is zero.
        Instruction::Shift { flags: false, rd, rn, rm, .. } => result(1 << rn | 1 << rm, 1 << rd),
        Instruction::Unary { rd, rm, .. } => result(1 << rm, 1 << rd),
        Instruction::BitFieldExtract { rd, rn, .. } => result(1 << rn, 1 << rd),
        Instruction::BitFieldInsert { rd, rn, width, .. } => {
            result(1 << rn | kept(rd, width), 1 << rd)
        }
        Instruction::BitFieldClear { rd, width, .. } => result(kept(rd, width), 1 << rd),
        Instruction::MovTop { rd, .. } => result(1 << rd, 1 << rd),
        Instruction::Adr { rd, .. } => result(0, 1 << rd),
        Instruction::Mul { flags, rd, rn, rm } => {
            result(1 << rn | 1 << rm, 1 << rd | if flags { N | Z } else { 0 })
        }
        Instruction::Mla { rd, rn, rm, ra } | Instruction::Mls { rd, rn, rm, ra } => {
            result(1 << rn | 1 << rm | 1 << ra, 1 << rd)
        }
        // DDI 0337I table 3-1 does not say on which operands the cycles of UMLAL depend: include
        // the accumulator.
        Instruction::LongMul { accumulate, lo, hi, rn, rm, .. } => {
            let sum = if accumulate { 1 << lo | 1 << hi } else { 0 };
            leaking(LeakKind::Multiply, 1 << rn | 1 << rm | sum, 1 << lo | 1 << hi)
        }
        Instruction::Div { rd, rn, rm, .. } => {
            leaking(LeakKind::Divide, 1 << rn | 1 << rm, 1 << rd)
        }
        Instruction::Branch { condition, .. } => leaking(LeakKind::Branch, read_by(condition), 0),
        Instruction::CompareBranch { rn, .. } => leaking(LeakKind::Branch, 1 << rn, 0),
        // LR depends on the address of the instruction only.
        Instruction::BranchLink { .. } => result(0, 1 << LR),
        Instruction::IfThen { .. } | Instruction::Nop => result(0, 0),
        Instruction::Load { width, rt, address } if rt != PC => {
            Plan { leak: LeakKind::LoadAddress, ..access(Kind::Load, width, rt, address) }
        }
        Instruction::Store { width, rt, address } => {
            Plan { leak: LeakKind::StoreAddress, ..access(Kind::Store, width, rt, address) }
        }
        _ => NONE,
    }
}

fn access(kind: Kind, width: Width, rt: Reg, address: Address) -> Plan {
    let (bytes, from_stack) = (width.bytes() as u8, address.base == SP);
    Plan { kind, reads: read_by_address(address), writes: 1 << rt, bytes, from_stack, ..NONE }
}

fn data(op: DataOp, flags: bool, rd: Reg, rn: Reg, operand: Operand) -> Plan {
    let reads = read_by_data(op, rn, operand);
    let rd = if op.is_test() { 0 } else { 1 << rd };
    let result = |writes| Plan { kind: Kind::Result, reads, writes, ..NONE };
    if rd == 1 << PC {
        return NONE;
    }
    if !flags {
        return result(rd);
    }
    if op.is_arithmetic() {
        return result(rd | FLAGS);
    }
    // The carry is the shifter's: it depends on one operand, on none (a constant), or is unchanged.
    match shifter(operand) {
        None => result(rd | N | Z),
        Some(carry) if carry == reads => result(rd | N | Z | C),
        Some(_) => NONE,
    }
}

/// What the carry out of an operand's shift depends on; `None` if the carry is unchanged.
pub(super) fn shifter(operand: Operand) -> Option<u32> {
    match operand {
        Operand::Register { rm, amount: 1.., .. } => Some(1 << rm),
        Operand::Immediate { carry: Some(_), .. } => Some(0),
        _ => None,
    }
}

/// The registers and flags that a data-processing result depends on.
pub(super) fn read_by_data(op: DataOp, rn: Reg, operand: Operand) -> u32 {
    let carry = if op.reads_carry() { C } else { 0 };
    let first = if op.reads_rn() { 1 << rn } else { 0 };
    match operand {
        Operand::Immediate { .. } => first | carry,
        // x - x, x ^ x, x & !x and x | !x are constants, as are their flags. x - x - !C depends on
        // C alone; compilers make masks of it.
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

/// The register whose old bits a bit-field instruction keeps; none if the field is 32 bits wide.
fn kept(rd: Reg, width: u8) -> u32 {
    if width < 32 { 1 << rd } else { 0 }
}

/// The registers that form an address.
pub(super) fn read_by_address(address: Address) -> u32 {
    1 << address.base | if let Offset::Register { rm, .. } = address.offset { 1 << rm } else { 0 }
}
