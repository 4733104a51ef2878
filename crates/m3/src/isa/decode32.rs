// SPDX-License-Identifier: Apache-2.0 OR MIT
//! 32-bit encodings (DDI 0403E section A5.3).

use super::decode16::{hint, shift_constant};
use super::{
    Address, Condition, DataOp, Index, Instruction, LR, Offset, Operand, PC, Reg, SP, ShiftKind,
    UnaryOp, Width, bits, reg, sign_extend,
};

pub(super) fn decode(address: u32, first: u16, second: u16) -> Instruction {
    match bits(first, 12, 9) {
        0b0100 if bits(first, 6, 6) == 0 => multiple(first, second),
        0b0100 => dual_exclusive_table(address, first, second),
        0b0101 => shifted_register(first, second),
        0b0110 | 0b0111 | 0b1110 | 0b1111 => Instruction::Coprocessor,
        0b1000..=0b1011 if second >> 15 == 1 => branch_or_control(address, first, second),
        0b1000 | 0b1010 => modified_immediate(first, second),
        0b1001 | 0b1011 => plain_immediate(address, first, second),
        0b1100 => single(address, first, second),
        _ if bits(first, 8, 8) == 0 => register_operation(first, second),
        _ => multiply(first, second),
    }
}

fn multiple(first: u16, second: u16) -> Instruction {
    let rn = reg(first, 0);
    let writeback = bits(first, 5, 5) == 1;
    let load = bits(first, 4, 4) == 1;
    let list = if load { second & 0xdfff } else { second & 0x5fff };
    // Unpredictable: fewer than two registers, or PC and LR together.
    if rn == PC || list.count_ones() < 2 || (load && list >> LR == 3) {
        return Instruction::Undefined;
    }
    match (bits(first, 8, 7), load) {
        (0b01, true) => Instruction::LoadMultiple { rn, list, writeback, before: false },
        (0b10, true) => Instruction::LoadMultiple { rn, list, writeback, before: true },
        (0b01, false) => Instruction::StoreMultiple { rn, list, writeback, before: false },
        (0b10, false) => Instruction::StoreMultiple { rn, list, writeback, before: true },
        _ => Instruction::Undefined,
    }
}

fn dual_exclusive_table(address: u32, first: u16, second: u16) -> Instruction {
    let (pre, up) = (bits(first, 8, 8) == 1, bits(first, 7, 7) == 1);
    let (writeback, load) = (bits(first, 5, 5) == 1, bits(first, 4, 4) == 1);
    let rn = reg(first, 0);
    let (rt, rt2) = (reg(second, 12), reg(second, 8));
    let offset = bits(second, 7, 0) << 2;
    if pre || writeback {
        let offset = if up { offset as i32 } else { -(offset as i32) };
        let index = match (pre, writeback) {
            (true, false) => Index::Offset,
            (true, true) => Index::Pre,
            _ => Index::Post,
        };
        let place = Address { base: rn, offset: Offset::Immediate(offset), index };
        return match (load, rn) {
            (true, PC) if writeback => Instruction::Undefined,
            (true, PC) => {
                let address = (address.wrapping_add(4) & !3).wrapping_add_signed(offset);
                Instruction::LoadDualLiteral { rt, rt2, address }
            }
            (true, _) => Instruction::LoadDual { rt, rt2, address: place },
            (false, PC) => Instruction::Undefined,
            (false, _) => Instruction::StoreDual { rt, rt2, address: place },
        };
    }
    if !up {
        let offset = offset as u16;
        return if load {
            Instruction::LoadExclusive { width: Width::Word, rt, rn, offset }
        } else {
            Instruction::StoreExclusive { width: Width::Word, rd: rt2, rt, rn, offset }
        };
    }
    let rm = reg(second, 0);
    match (bits(second, 7, 4), load) {
        (0, true) => Instruction::TableBranch { half: false, rn, rm },
        (1, true) => Instruction::TableBranch { half: true, rn, rm },
        (4, true) => Instruction::LoadExclusive { width: Width::Byte, rt, rn, offset: 0 },
        (5, true) => Instruction::LoadExclusive { width: Width::Half, rt, rn, offset: 0 },
        (4, false) => Instruction::StoreExclusive { width: Width::Byte, rd: rm, rt, rn, offset: 0 },
        (5, false) => Instruction::StoreExclusive { width: Width::Half, rd: rm, rt, rn, offset: 0 },
        _ => Instruction::Undefined,
    }
}

/// The operation in bits 8 to 5 of both data-processing forms; PC as destination with S set means a
/// comparison.
fn data(number: u32, flags: bool, rd: Reg, rn: Reg, operand: Operand) -> Instruction {
    let with = |op| Instruction::Data { op, flags, rd, rn, operand };
    let or_test = |op, test| {
        if rd == PC && flags {
            Instruction::Data { op: test, flags, rd: 0, rn, operand }
        } else {
            with(op)
        }
    };
    let or_move = |op, plain| {
        if rn == PC { Instruction::Data { op: plain, flags, rd, rn: 0, operand } } else { with(op) }
    };
    match number {
        0b0000 => or_test(DataOp::And, DataOp::Tst),
        0b0001 => with(DataOp::Bic),
        0b0010 => or_move(DataOp::Orr, DataOp::Mov),
        0b0011 => or_move(DataOp::Orn, DataOp::Mvn),
        0b0100 => or_test(DataOp::Eor, DataOp::Teq),
        0b1000 => or_test(DataOp::Add, DataOp::Cmn),
        0b1010 => with(DataOp::Adc),
        0b1011 => with(DataOp::Sbc),
        0b1101 => or_test(DataOp::Sub, DataOp::Cmp),
        0b1110 => with(DataOp::Rsb),
        _ => Instruction::Undefined,
    }
}

fn shifted_register(first: u16, second: u16) -> Instruction {
    let (kind, amount) =
        shift_constant(bits(second, 5, 4), bits(second, 14, 12) << 2 | bits(second, 7, 6));
    let operand = Operand::Register { rm: reg(second, 0), kind, amount };
    data(bits(first, 8, 5), bits(first, 4, 4) == 1, reg(second, 8), reg(first, 0), operand)
}

fn modified_immediate(first: u16, second: u16) -> Instruction {
    let imm12 = bits(first, 10, 10) << 11 | bits(second, 14, 12) << 8 | bits(second, 7, 0);
    let (value, carry) = expand(imm12);
    let operand = Operand::Immediate { value, carry };
    data(bits(first, 8, 5), bits(first, 4, 4) == 1, reg(second, 8), reg(first, 0), operand)
}

/// ThumbExpandImm_C (DDI 0403E section A5.3.2).
fn expand(imm12: u32) -> (u32, Option<bool>) {
    let byte = imm12 & 0xff;
    match imm12 >> 8 {
        0 => (byte, None),
        1 => (byte << 16 | byte, None),
        2 => (byte << 24 | byte << 8, None),
        3 => (byte * 0x0101_0101, None),
        _ => {
            let value = (0x80 | (imm12 & 0x7f)).rotate_right(imm12 >> 7);
            (value, Some(value >> 31 == 1))
        }
    }
}

fn plain_immediate(address: u32, first: u16, second: u16) -> Instruction {
    let (rn, rd) = (reg(first, 0), reg(second, 8));
    let imm12 = bits(first, 10, 10) << 11 | bits(second, 14, 12) << 8 | bits(second, 7, 0);
    let imm16 = bits(first, 3, 0) << 12 | imm12;
    let lsb = (bits(second, 14, 12) << 2 | bits(second, 7, 6)) as u8;
    let low5 = bits(second, 4, 0) as u8;
    let base = address.wrapping_add(4) & !3;
    let add = |op| {
        let operand = Operand::Immediate { value: imm12, carry: None };
        Instruction::Data { op, flags: false, rd, rn, operand }
    };
    let saturate = |signed| {
        let (kind, amount) =
            if bits(first, 5, 5) == 0 { (ShiftKind::Lsl, lsb) } else { (ShiftKind::Asr, lsb) };
        let to = if signed { low5 + 1 } else { low5 };
        Instruction::Saturate { signed, rd, rn, to, kind, amount }
    };
    match bits(first, 8, 4) {
        0b00000 if rn == PC => Instruction::Adr { rd, address: base.wrapping_add(imm12) },
        0b00000 => add(DataOp::Add),
        0b01010 if rn == PC => Instruction::Adr { rd, address: base.wrapping_sub(imm12) },
        0b01010 => add(DataOp::Sub),
        0b00100 => Instruction::Data {
            op: DataOp::Mov,
            flags: false,
            rd,
            rn: 0,
            operand: Operand::Immediate { value: imm16, carry: None },
        },
        0b01100 => Instruction::MovTop { rd, value: imm16 as u16 },
        // An arithmetic shift by zero is SSAT16 or USAT16, of the DSP extension.
        0b10010 | 0b11010 if lsb == 0 => Instruction::Undefined,
        0b10000 | 0b10010 => saturate(true),
        0b11000 | 0b11010 => saturate(false),
        0b10100 | 0b11100 => {
            let signed = bits(first, 7, 7) == 0;
            if lsb + low5 >= 32 {
                return Instruction::Undefined;
            }
            Instruction::BitFieldExtract { signed, rd, rn, lsb, width: low5 + 1 }
        }
        0b10110 => {
            if low5 < lsb {
                return Instruction::Undefined;
            }
            let width = low5 - lsb + 1;
            if rn == PC {
                Instruction::BitFieldClear { rd, lsb, width }
            } else {
                Instruction::BitFieldInsert { rd, rn, lsb, width }
            }
        }
        _ => Instruction::Undefined,
    }
}

/// DDI 0403E section A5.3.4.
fn branch_or_control(address: u32, first: u16, second: u16) -> Instruction {
    let pc = address.wrapping_add(4);
    match (bits(second, 14, 14), bits(second, 12, 12)) {
        (0, 0) if bits(first, 9, 7) != 0b111 => {
            let offset = bits(first, 10, 10) << 20
                | bits(second, 11, 11) << 19
                | bits(second, 13, 13) << 18
                | bits(first, 5, 0) << 12
                | bits(second, 10, 0) << 1;
            let target = pc.wrapping_add_signed(sign_extend(offset, 21));
            Instruction::Branch { condition: Condition(bits(first, 9, 6) as u8), target }
        }
        (0, 0) => control(first, second),
        (0, 1) => Instruction::Branch {
            condition: Condition::ALWAYS,
            target: pc.wrapping_add_signed(long_offset(first, second)),
        },
        (1, 1) => {
            Instruction::BranchLink { target: pc.wrapping_add_signed(long_offset(first, second)) }
        }
        // UDF, and BLX to A32 code, which this core does not execute.
        _ => Instruction::Undefined,
    }
}

fn long_offset(first: u16, second: u16) -> i32 {
    let sign = bits(first, 10, 10);
    let i1 = 1 ^ (bits(second, 13, 13) ^ sign);
    let i2 = 1 ^ (bits(second, 11, 11) ^ sign);
    let offset =
        sign << 24 | i1 << 23 | i2 << 22 | bits(first, 9, 0) << 12 | bits(second, 10, 0) << 1;
    sign_extend(offset, 25)
}

fn control(first: u16, second: u16) -> Instruction {
    match bits(first, 10, 4) {
        0b0111000 | 0b0111001 => Instruction::Msr { rn: reg(first, 0), sysm: second as u8 },
        0b0111010 if bits(second, 10, 8) == 0 => hint(bits(second, 7, 0)),
        0b0111011 => match bits(second, 7, 4) {
            2 => Instruction::ClearExclusive,
            4 | 5 => Instruction::DataBarrier,
            6 => Instruction::InstructionBarrier,
            _ => Instruction::Undefined,
        },
        0b0111110 | 0b0111111 => Instruction::Mrs { rd: reg(second, 8), sysm: second as u8 },
        _ => Instruction::Undefined,
    }
}

/// Loads and stores of one register (DDI 0403E sections A5.3.7 to A5.3.10).
fn single(address: u32, first: u16, second: u16) -> Instruction {
    let (signed, load) = (bits(first, 8, 8) == 1, bits(first, 4, 4) == 1);
    let (rn, rt) = (reg(first, 0), reg(second, 12));
    let width = match (bits(first, 6, 5), signed) {
        (0, false) => Width::Byte,
        (0, true) => Width::SignedByte,
        (1, false) => Width::Half,
        (1, true) => Width::SignedHalf,
        (2, false) => Width::Word,
        _ => return Instruction::Undefined,
    };
    if !load && (signed || rn == PC) {
        return Instruction::Undefined;
    }
    let imm12 = bits(second, 11, 0);
    let up = bits(first, 7, 7) == 1;
    if load && rn == PC {
        if rt == PC && width != Width::Word {
            return Instruction::Preload;
        }
        let base = address.wrapping_add(4) & !3;
        let address = if up { base.wrapping_add(imm12) } else { base.wrapping_sub(imm12) };
        return Instruction::LoadLiteral { width, rt, address };
    }
    let Some(place) = single_address(rn, up, second) else { return Instruction::Undefined };
    if load && rt == PC && width != Width::Word && place.index == Index::Offset {
        return Instruction::Preload;
    }
    if load {
        Instruction::Load { width, rt, address: place }
    } else {
        Instruction::Store { width, rt, address: place }
    }
}

fn single_address(base: Reg, up: bool, second: u16) -> Option<Address> {
    if up {
        let offset = Offset::Immediate(bits(second, 11, 0) as i32);
        return Some(Address { base, offset, index: Index::Offset });
    }
    if bits(second, 11, 6) == 0 {
        let offset = Offset::Register { rm: reg(second, 0), lsl: bits(second, 5, 4) as u8 };
        return Some(Address { base, offset, index: Index::Offset });
    }
    if bits(second, 11, 11) == 0 {
        return None;
    }
    let constant = bits(second, 7, 0) as i32;
    let offset = Offset::Immediate(if bits(second, 9, 9) == 1 { constant } else { -constant });
    let index = match (bits(second, 10, 10), bits(second, 9, 9), bits(second, 8, 8)) {
        (1, 0, 0) => Index::Offset,
        // LDRT and STRT: without a memory protection unit they act as LDR and STR.
        (1, 1, 0) => Index::Offset,
        (1, _, 1) => Index::Pre,
        (0, _, 1) => Index::Post,
        _ => return None,
    };
    Some(Address { base, offset, index })
}

/// DDI 0403E section A5.3.12.
fn register_operation(first: u16, second: u16) -> Instruction {
    let (rn, rd, rm) = (reg(first, 0), reg(second, 8), reg(second, 0));
    if bits(second, 15, 12) != 0b1111 {
        return Instruction::Undefined;
    }
    let (kind, op2) = (bits(first, 7, 4), bits(second, 7, 4));
    let extend = |op| Instruction::Unary { op, rd, rm, rotate: ((op2 & 3) * 8) as u8 };
    let unary = |op| Instruction::Unary { op, rd, rm, rotate: 0 };
    match (kind, op2) {
        (0..=7, 0) => {
            let shift = match kind >> 1 {
                0 => ShiftKind::Lsl,
                1 => ShiftKind::Lsr,
                2 => ShiftKind::Asr,
                _ => ShiftKind::Ror,
            };
            Instruction::Shift { kind: shift, flags: kind & 1 == 1, rd, rn, rm }
        }
        // With a register other than PC these are SXTAH and so on, of the DSP extension.
        (0, 8..=11) if rn == PC => extend(UnaryOp::Sxth),
        (1, 8..=11) if rn == PC => extend(UnaryOp::Uxth),
        (4, 8..=11) if rn == PC => extend(UnaryOp::Sxtb),
        (5, 8..=11) if rn == PC => extend(UnaryOp::Uxtb),
        (9, 8) => unary(UnaryOp::Rev),
        (9, 9) => unary(UnaryOp::Rev16),
        (9, 10) => unary(UnaryOp::Rbit),
        (9, 11) => unary(UnaryOp::Revsh),
        (11, 8) => unary(UnaryOp::Clz),
        _ => Instruction::Undefined,
    }
}

fn multiply(first: u16, second: u16) -> Instruction {
    let (rn, ra, rd, rm) = (reg(first, 0), reg(second, 12), reg(second, 8), reg(second, 0));
    let long =
        |signed, accumulate| Instruction::LongMul { signed, accumulate, lo: ra, hi: rd, rn, rm };
    match (bits(first, 7, 4), bits(second, 7, 4)) {
        (0b0000, 0) if ra == PC => Instruction::Mul { flags: false, rd, rn, rm },
        (0b0000, 0) => Instruction::Mla { rd, rn, rm, ra },
        (0b0000, 1) => Instruction::Mls { rd, rn, rm, ra },
        (0b1000, 0) => long(true, false),
        (0b1010, 0) => long(false, false),
        (0b1100, 0) => long(true, true),
        (0b1110, 0) => long(false, true),
        (0b1001, 15) => Instruction::Div { signed: true, rd, rn, rm },
        (0b1011, 15) => Instruction::Div { signed: false, rd, rn, rm },
        _ => Instruction::Undefined,
    }
}

// SP as an operand of most of these is unpredictable and is not rejected.
const _: Reg = SP;
