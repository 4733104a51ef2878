// SPDX-License-Identifier: Apache-2.0 OR MIT
//! 16-bit encodings (DDI 0403E section A5.2).

use super::{
    Address, Condition, DataOp, Index, Instruction, LR, Offset, Operand, PC, Reg, SP, ShiftKind,
    UnaryOp, Width, bits, reg, sign_extend,
};

pub(super) fn decode(address: u32, half: u16, in_it_block: bool) -> Instruction {
    let flags = !in_it_block;
    let pc = address.wrapping_add(4);
    match bits(half, 15, 10) {
        0b000000..=0b001111 => shift_add_compare(half, flags),
        0b010000 => data_processing(half, flags),
        0b010001 => special(half),
        0b010010 | 0b010011 => Instruction::LoadLiteral {
            width: Width::Word,
            rt: low(half, 8),
            address: (pc & !3).wrapping_add(bits(half, 7, 0) << 2),
        },
        0b010100..=0b010111 => register_offset(half),
        0b011000..=0b100111 => immediate_offset(half),
        0b101000 | 0b101001 => Instruction::Adr {
            rd: low(half, 8),
            address: (pc & !3).wrapping_add(bits(half, 7, 0) << 2),
        },
        0b101010 | 0b101011 => {
            add_constant(DataOp::Add, false, low(half, 8), SP, bits(half, 7, 0) << 2)
        }
        0b101100..=0b101111 => miscellaneous(address, half),
        0b110000 | 0b110001 => {
            let rn = low(half, 8);
            Instruction::StoreMultiple { rn, list: half & 0xff, writeback: true, before: false }
        }
        0b110010 | 0b110011 => {
            let rn = low(half, 8);
            let list = half & 0xff;
            Instruction::LoadMultiple { rn, list, writeback: list >> rn & 1 == 0, before: false }
        }
        0b110100..=0b110111 => conditional_branch(pc, half),
        _ => Instruction::Branch {
            condition: Condition::ALWAYS,
            target: pc.wrapping_add_signed(sign_extend(bits(half, 10, 0) << 1, 12)),
        },
    }
}

fn low(half: u16, at: u32) -> Reg {
    bits(half, at + 2, at) as Reg
}

fn shift_add_compare(half: u16, flags: bool) -> Instruction {
    let (rd, rn) = (low(half, 0), low(half, 3));
    let wide = low(half, 8);
    let constant = bits(half, 7, 0);
    match bits(half, 13, 9) {
        0b00000..=0b01011 => {
            let (kind, amount) = shift_constant(bits(half, 12, 11), bits(half, 10, 6));
            let operand = Operand::Register { rm: rn, kind, amount };
            Instruction::Data { op: DataOp::Mov, flags, rd, rn: 0, operand }
        }
        0b01100 | 0b01101 => {
            let op = if bits(half, 9, 9) == 0 { DataOp::Add } else { DataOp::Sub };
            Instruction::Data { op, flags, rd, rn, operand: plain(low(half, 6)) }
        }
        0b01110 => add_constant(DataOp::Add, flags, rd, rn, bits(half, 8, 6)),
        0b01111 => add_constant(DataOp::Sub, flags, rd, rn, bits(half, 8, 6)),
        0b10000..=0b10011 => add_constant(DataOp::Mov, flags, wide, 0, constant),
        0b10100..=0b10111 => add_constant(DataOp::Cmp, true, 0, wide, constant),
        0b11000..=0b11011 => add_constant(DataOp::Add, flags, wide, wide, constant),
        _ => add_constant(DataOp::Sub, flags, wide, wide, constant),
    }
}

/// DecodeImmShift: the shift that an encoding's type and constant stand for.
pub(super) fn shift_constant(kind: u32, constant: u32) -> (ShiftKind, u8) {
    match (kind, constant) {
        (0, amount) => (ShiftKind::Lsl, amount as u8),
        (1, 0) => (ShiftKind::Lsr, 32),
        (1, amount) => (ShiftKind::Lsr, amount as u8),
        (2, 0) => (ShiftKind::Asr, 32),
        (2, amount) => (ShiftKind::Asr, amount as u8),
        (_, 0) => (ShiftKind::Rrx, 1),
        (_, amount) => (ShiftKind::Ror, amount as u8),
    }
}

fn plain(rm: Reg) -> Operand {
    Operand::Register { rm, kind: ShiftKind::Lsl, amount: 0 }
}

fn add_constant(op: DataOp, flags: bool, rd: Reg, rn: Reg, value: u32) -> Instruction {
    Instruction::Data { op, flags, rd, rn, operand: Operand::Immediate { value, carry: None } }
}

fn data_processing(half: u16, flags: bool) -> Instruction {
    let (rdn, rm) = (low(half, 0), low(half, 3));
    let data = |op| Instruction::Data { op, flags, rd: rdn, rn: rdn, operand: plain(rm) };
    let test = |op| Instruction::Data { op, flags: true, rd: 0, rn: rdn, operand: plain(rm) };
    let shift = |kind| Instruction::Shift { kind, flags, rd: rdn, rn: rdn, rm };
    match bits(half, 9, 6) {
        0 => data(DataOp::And),
        1 => data(DataOp::Eor),
        2 => shift(ShiftKind::Lsl),
        3 => shift(ShiftKind::Lsr),
        4 => shift(ShiftKind::Asr),
        5 => data(DataOp::Adc),
        6 => data(DataOp::Sbc),
        7 => shift(ShiftKind::Ror),
        8 => test(DataOp::Tst),
        9 => add_constant(DataOp::Rsb, flags, rdn, rm, 0),
        10 => test(DataOp::Cmp),
        11 => test(DataOp::Cmn),
        12 => data(DataOp::Orr),
        13 => Instruction::Mul { flags, rd: rdn, rn: rm, rm: rdn },
        14 => data(DataOp::Bic),
        _ => Instruction::Data { op: DataOp::Mvn, flags, rd: rdn, rn: 0, operand: plain(rm) },
    }
}

/// High registers and branches to a register; only the comparison sets flags.
fn special(half: u16) -> Instruction {
    let rdn = (bits(half, 7, 7) << 3 | bits(half, 2, 0)) as Reg;
    let rm = reg(half, 3);
    match bits(half, 9, 8) {
        0 => Instruction::Data {
            op: DataOp::Add,
            flags: false,
            rd: rdn,
            rn: rdn,
            operand: plain(rm),
        },
        1 => Instruction::Data { op: DataOp::Cmp, flags: true, rd: 0, rn: rdn, operand: plain(rm) },
        2 => {
            Instruction::Data { op: DataOp::Mov, flags: false, rd: rdn, rn: 0, operand: plain(rm) }
        }
        _ => Instruction::BranchExchange { rm, link: bits(half, 7, 7) == 1 },
    }
}

fn register_offset(half: u16) -> Instruction {
    let rt = low(half, 0);
    let offset = Offset::Register { rm: low(half, 6), lsl: 0 };
    let address = Address { base: low(half, 3), offset, index: Index::Offset };
    match bits(half, 11, 9) {
        0 => Instruction::Store { width: Width::Word, rt, address },
        1 => Instruction::Store { width: Width::Half, rt, address },
        2 => Instruction::Store { width: Width::Byte, rt, address },
        3 => Instruction::Load { width: Width::SignedByte, rt, address },
        4 => Instruction::Load { width: Width::Word, rt, address },
        5 => Instruction::Load { width: Width::Half, rt, address },
        6 => Instruction::Load { width: Width::Byte, rt, address },
        _ => Instruction::Load { width: Width::SignedHalf, rt, address },
    }
}

fn immediate_offset(half: u16) -> Instruction {
    let (width, base, rt, offset) = match bits(half, 15, 12) {
        0b0110 => (Width::Word, low(half, 3), low(half, 0), bits(half, 10, 6) << 2),
        0b0111 => (Width::Byte, low(half, 3), low(half, 0), bits(half, 10, 6)),
        0b1000 => (Width::Half, low(half, 3), low(half, 0), bits(half, 10, 6) << 1),
        _ => (Width::Word, SP, low(half, 8), bits(half, 7, 0) << 2),
    };
    let address = Address { base, offset: Offset::Immediate(offset as i32), index: Index::Offset };
    if bits(half, 11, 11) == 1 {
        Instruction::Load { width, rt, address }
    } else {
        Instruction::Store { width, rt, address }
    }
}

/// DDI 0403E section A5.2.5.
fn miscellaneous(address: u32, half: u16) -> Instruction {
    let unary = |op| Instruction::Unary { op, rd: low(half, 0), rm: low(half, 3), rotate: 0 };
    match bits(half, 11, 5) {
        0b0000000..=0b0000011 => add_constant(DataOp::Add, false, SP, SP, bits(half, 6, 0) << 2),
        0b0000100..=0b0000111 => add_constant(DataOp::Sub, false, SP, SP, bits(half, 6, 0) << 2),
        0b0001000..=0b0001111
        | 0b0011000..=0b0011111
        | 0b1001000..=0b1001111
        | 0b1011000..=0b1011111 => {
            let offset = bits(half, 9, 9) << 6 | bits(half, 7, 3) << 1;
            Instruction::CompareBranch {
                nonzero: bits(half, 11, 11) == 1,
                rn: low(half, 0),
                target: address.wrapping_add(4 + offset),
            }
        }
        0b0010000 | 0b0010001 => unary(UnaryOp::Sxth),
        0b0010010 | 0b0010011 => unary(UnaryOp::Sxtb),
        0b0010100 | 0b0010101 => unary(UnaryOp::Uxth),
        0b0010110 | 0b0010111 => unary(UnaryOp::Uxtb),
        0b0100000..=0b0101111 => {
            let list = half & 0xff | (half >> 8 & 1) << LR;
            Instruction::StoreMultiple { rn: SP, list, writeback: true, before: true }
        }
        0b0110011 => Instruction::ChangeState {
            disable: bits(half, 4, 4) == 1,
            primask: bits(half, 1, 1) == 1,
            faultmask: bits(half, 0, 0) == 1,
        },
        0b1010000 | 0b1010001 => unary(UnaryOp::Rev),
        0b1010010 | 0b1010011 => unary(UnaryOp::Rev16),
        0b1010110 | 0b1010111 => unary(UnaryOp::Revsh),
        0b1100000..=0b1101111 => {
            let list = half & 0xff | (half >> 8 & 1) << PC;
            Instruction::LoadMultiple { rn: SP, list, writeback: true, before: false }
        }
        0b1110000..=0b1110111 => Instruction::Breakpoint { number: half as u8 },
        0b1111000..=0b1111111 => if_then_or_hint(half),
        _ => Instruction::Undefined,
    }
}

fn if_then_or_hint(half: u16) -> Instruction {
    let mask = bits(half, 3, 0) as u8;
    let first = bits(half, 7, 4);
    if mask != 0 {
        // Unpredictable: condition 15, and AL with an else part.
        if first == 15 || (first == 14 && mask.count_ones() != 1) {
            return Instruction::Undefined;
        }
        return Instruction::IfThen { first: Condition(first as u8), mask };
    }
    hint(first)
}

/// Unknown hints are NOPs.
pub(super) fn hint(number: u32) -> Instruction {
    match number {
        1 => Instruction::Yield,
        2 => Instruction::WaitForEvent,
        3 => Instruction::WaitForInterrupt,
        4 => Instruction::SendEvent,
        _ => Instruction::Nop,
    }
}

fn conditional_branch(pc: u32, half: u16) -> Instruction {
    match bits(half, 11, 8) {
        14 => Instruction::Undefined,
        15 => Instruction::SupervisorCall { number: half as u8 },
        condition => Instruction::Branch {
            condition: Condition(condition as u8),
            target: pc.wrapping_add_signed(sign_extend(bits(half, 7, 0) << 1, 9)),
        },
    }
}
