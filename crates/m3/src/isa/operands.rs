// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registers and flags that an instruction reads and writes.

use super::{Address, DataOp, Index, Instruction, LR, Offset, Operand, PC, Reg, SP, ShiftKind};

/// A set of registers, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterSet(pub u16);

impl RegisterSet {
    /// No register.
    pub const NONE: RegisterSet = RegisterSet(0);

    /// The registers listed.
    pub fn of(registers: &[Reg]) -> Self {
        RegisterSet(registers.iter().fold(0, |set, register| set | 1 << register))
    }

    /// Both sets together.
    #[must_use]
    pub fn with(self, other: RegisterSet) -> Self {
        RegisterSet(self.0 | other.0)
    }

    /// Whether a register is in it.
    pub fn contains(self, register: Reg) -> bool {
        self.0 >> register & 1 == 1
    }

    /// Whether the two sets share a register.
    pub fn meets(self, other: RegisterSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Its registers in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Reg> {
        (0..16).filter(move |register| self.contains(*register))
    }
}

/// What an instruction reads and writes, apart from its condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operands {
    /// Registers whose value goes into a result, a comparison or memory.
    pub reads: RegisterSet,
    /// Registers that form an address.
    pub address: RegisterSet,
    /// Registers written, including a base with write-back.
    pub writes: RegisterSet,
    /// Whether N and Z are written.
    pub sets_nz: bool,
    /// Whether C is written.
    pub sets_c: bool,
    /// Whether V is written.
    pub sets_v: bool,
    /// Whether C is an operand.
    pub reads_c: bool,
}

impl Instruction {
    /// What the instruction reads and writes.
    pub fn operands(&self) -> Operands {
        let mut all = Operands::default();
        match *self {
            Instruction::Data { op, flags, rd, rn, operand } => {
                data(&mut all, op, flags, rd, rn, operand)
            }
            Instruction::Shift { flags, rd, rn, rm, .. } => {
                all.reads = RegisterSet::of(&[rn, rm]);
                all.writes = RegisterSet::of(&[rd]);
                (all.sets_nz, all.sets_c) = (flags, flags);
                // A shift by zero leaves the carry unchanged.
                all.reads_c = flags;
            }
            Instruction::MovTop { rd, .. } | Instruction::BitFieldClear { rd, .. } => {
                all.reads = RegisterSet::of(&[rd]);
                all.writes = all.reads;
            }
            Instruction::Adr { rd, .. } | Instruction::Mrs { rd, .. } => {
                all.writes = RegisterSet::of(&[rd])
            }
            Instruction::Unary { rd, rm, .. } => arithmetic(&mut all, rd, &[rm]),
            Instruction::BitFieldInsert { rd, rn, .. } => arithmetic(&mut all, rd, &[rd, rn]),
            Instruction::BitFieldExtract { rd, rn, .. } | Instruction::Saturate { rd, rn, .. } => {
                arithmetic(&mut all, rd, &[rn]);
            }
            Instruction::Mul { flags, rd, rn, rm } => {
                arithmetic(&mut all, rd, &[rn, rm]);
                all.sets_nz = flags;
            }
            Instruction::Mla { rd, rn, rm, ra } | Instruction::Mls { rd, rn, rm, ra } => {
                arithmetic(&mut all, rd, &[rn, rm, ra]);
            }
            Instruction::LongMul { accumulate, lo, hi, rn, rm, .. } => {
                all.reads = RegisterSet::of(&[rn, rm]);
                all.writes = RegisterSet::of(&[lo, hi]);
                if accumulate {
                    all.reads = all.reads.with(all.writes);
                }
            }
            Instruction::Div { rd, rn, rm, .. } => arithmetic(&mut all, rd, &[rn, rm]),
            Instruction::BranchExchange { rm, link } => {
                all.reads = RegisterSet::of(&[rm]);
                all.writes = if link { RegisterSet::of(&[LR, PC]) } else { RegisterSet::of(&[PC]) };
            }
            Instruction::Branch { .. } => all.writes = RegisterSet::of(&[PC]),
            Instruction::BranchLink { .. } => all.writes = RegisterSet::of(&[LR, PC]),
            Instruction::CompareBranch { rn, .. } => {
                all.reads = RegisterSet::of(&[rn]);
                all.writes = RegisterSet::of(&[PC]);
            }
            Instruction::Msr { rn, .. } => {
                all.reads = RegisterSet::of(&[rn]);
                // APSR is numbers 0 to 3; 8 and 9 are the stack pointers.
                let apsr = matches!(self, Instruction::Msr { sysm: 0..=3, .. });
                (all.sets_nz, all.sets_c, all.sets_v) = (apsr, apsr, apsr);
                if matches!(self, Instruction::Msr { sysm: 8 | 9, .. }) {
                    all.writes = RegisterSet::of(&[SP]);
                }
            }
            _ => memory(self, &mut all),
        }
        all
    }
}

fn arithmetic(all: &mut Operands, rd: Reg, reads: &[Reg]) {
    all.reads = RegisterSet::of(reads);
    all.writes = RegisterSet::of(&[rd]);
}

fn data(all: &mut Operands, op: DataOp, flags: bool, rd: Reg, rn: Reg, operand: Operand) {
    if op.reads_rn() {
        all.reads = RegisterSet::of(&[rn]);
    }
    if !op.is_test() {
        all.writes = RegisterSet::of(&[rd]);
    }
    all.reads_c = op.reads_carry();
    let shifter_carry = match operand {
        Operand::Register { rm, kind, amount } => {
            all.reads = all.reads.with(RegisterSet::of(&[rm]));
            all.reads_c |= kind == ShiftKind::Rrx;
            amount != 0
        }
        Operand::Immediate { carry, .. } => carry.is_some(),
    };
    all.sets_nz = flags;
    all.sets_v = flags && op.is_arithmetic();
    all.sets_c = flags && (op.is_arithmetic() || shifter_carry);
}

fn memory(instruction: &Instruction, all: &mut Operands) {
    match *instruction {
        Instruction::Load { rt, address, .. } => {
            place(all, address);
            all.writes = all.writes.with(RegisterSet::of(&[rt]));
        }
        Instruction::LoadLiteral { rt, .. } => all.writes = RegisterSet::of(&[rt]),
        Instruction::LoadDual { rt, rt2, address } => {
            place(all, address);
            all.writes = all.writes.with(RegisterSet::of(&[rt, rt2]));
        }
        Instruction::LoadDualLiteral { rt, rt2, .. } => all.writes = RegisterSet::of(&[rt, rt2]),
        Instruction::Store { rt, address, .. } => {
            place(all, address);
            all.reads = RegisterSet::of(&[rt]);
        }
        Instruction::StoreDual { rt, rt2, address } => {
            place(all, address);
            all.reads = RegisterSet::of(&[rt, rt2]);
        }
        Instruction::LoadMultiple { rn, list, writeback, .. } => {
            all.address = RegisterSet::of(&[rn]);
            all.writes = RegisterSet(list).with(RegisterSet(u16::from(writeback) << rn));
        }
        Instruction::StoreMultiple { rn, list, writeback, .. } => {
            all.address = RegisterSet::of(&[rn]);
            all.reads = RegisterSet(list);
            all.writes = RegisterSet(u16::from(writeback) << rn);
        }
        Instruction::LoadExclusive { rt, rn, .. } => {
            all.address = RegisterSet::of(&[rn]);
            all.writes = RegisterSet::of(&[rt]);
        }
        Instruction::StoreExclusive { rd, rt, rn, .. } => {
            all.address = RegisterSet::of(&[rn]);
            all.reads = RegisterSet::of(&[rt]);
            all.writes = RegisterSet::of(&[rd]);
        }
        Instruction::TableBranch { rn, rm, .. } => {
            all.address = RegisterSet::of(&[rn, rm]);
            all.writes = RegisterSet::of(&[PC]);
        }
        _ => {}
    }
}

fn place(all: &mut Operands, address: Address) {
    all.address = RegisterSet::of(&[address.base]);
    if let Offset::Register { rm, .. } = address.offset {
        all.address = all.address.with(RegisterSet::of(&[rm]));
    }
    if address.index != Index::Offset {
        all.writes = RegisterSet::of(&[address.base]);
    }
}
