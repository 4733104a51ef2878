// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Instructions in unified assembly language (DDI 0403E chapter A4.2 and section A7.7), with
//! addresses instead of labels and without width qualifiers.

use std::fmt::{self, Display, Formatter};

use super::{
    Address, Condition, DataOp, Index, Instruction, Offset, Operand, PC, Reg, RegisterSet, SP,
    ShiftKind, UnaryOp, Width,
};

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.under(Condition::ALWAYS).fmt(f)
    }
}

impl Instruction {
    /// The instruction as written in an IT block under a condition.
    pub fn under(&self, condition: Condition) -> impl Display {
        Conditional(*self, condition)
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names =
            ["eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le"];
        f.write_str(names.get(usize::from(self.0)).copied().unwrap_or(""))
    }
}

struct Conditional(Instruction, Condition);

/// A register by its assembler name.
struct Name(Reg);

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            SP => f.write_str("sp"),
            14 => f.write_str("lr"),
            PC => f.write_str("pc"),
            number => write!(f, "r{number}"),
        }
    }
}

impl Display for Conditional {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Conditional(instruction, c) = self;
        match *instruction {
            Instruction::Data { op, flags, rd, rn, operand } => {
                data(f, *c, op, flags, [rd, rn], operand)
            }
            Instruction::Shift { kind, flags, rd, rn, rm } => {
                write!(
                    f,
                    "{}{}{c} {}, {}, {}",
                    shift_name(kind),
                    s(flags),
                    Name(rd),
                    Name(rn),
                    Name(rm)
                )
            }
            Instruction::MovTop { rd, value } => write!(f, "movt{c} {}, #{value}", Name(rd)),
            Instruction::Adr { rd, address } => write!(f, "adr{c} {}, {address:#x}", Name(rd)),
            Instruction::Unary { op, rd, rm, rotate } => {
                write!(f, "{}{c} {}, {}", unary_name(op), Name(rd), Name(rm))?;
                if rotate == 0 { Ok(()) } else { write!(f, ", ror #{rotate}") }
            }
            Instruction::BitFieldInsert { rd, rn, lsb, width } => {
                write!(f, "bfi{c} {}, {}, #{lsb}, #{width}", Name(rd), Name(rn))
            }
            Instruction::BitFieldClear { rd, lsb, width } => {
                write!(f, "bfc{c} {}, #{lsb}, #{width}", Name(rd))
            }
            Instruction::BitFieldExtract { signed, rd, rn, lsb, width } => {
                write!(f, "{}bfx{c} {}, {}, #{lsb}, #{width}", sign(signed), Name(rd), Name(rn))
            }
            Instruction::Saturate { signed, rd, rn, to, kind, amount } => {
                write!(f, "{}sat{c} {}, #{to}, {}", sign(signed), Name(rd), Name(rn))?;
                shifted(f, kind, amount)
            }
            Instruction::Mul { flags, rd, rn, rm } => {
                write!(f, "mul{}{c} {}, {}, {}", s(flags), Name(rd), Name(rn), Name(rm))
            }
            Instruction::Mla { rd, rn, rm, ra } => {
                write!(f, "mla{c} {}, {}, {}, {}", Name(rd), Name(rn), Name(rm), Name(ra))
            }
            Instruction::Mls { rd, rn, rm, ra } => {
                write!(f, "mls{c} {}, {}, {}, {}", Name(rd), Name(rn), Name(rm), Name(ra))
            }
            Instruction::LongMul { signed, accumulate, lo, hi, rn, rm } => {
                let name = if accumulate { "mlal" } else { "mull" };
                write!(
                    f,
                    "{}{name}{c} {}, {}, {}, {}",
                    sign(signed),
                    Name(lo),
                    Name(hi),
                    Name(rn),
                    Name(rm)
                )
            }
            Instruction::Div { signed, rd, rn, rm } => {
                write!(f, "{}div{c} {}, {}, {}", sign(signed), Name(rd), Name(rn), Name(rm))
            }
            Instruction::Branch { condition, target } => {
                write!(
                    f,
                    "b{} {target:#x}",
                    if condition.is_conditional() { condition } else { *c }
                )
            }
            Instruction::BranchLink { target } => write!(f, "bl{c} {target:#x}"),
            Instruction::BranchExchange { rm, link } => {
                write!(f, "{}{c} {}", if link { "blx" } else { "bx" }, Name(rm))
            }
            Instruction::CompareBranch { nonzero, rn, target } => {
                write!(f, "{} {}, {target:#x}", if nonzero { "cbnz" } else { "cbz" }, Name(rn))
            }
            Instruction::IfThen { first, mask } => if_then(f, first, mask),
            _ => memory_or_system(f, *c, instruction),
        }
    }
}

fn data(
    f: &mut Formatter<'_>,
    c: Condition,
    op: DataOp,
    flags: bool,
    [rd, rn]: [Reg; 2],
    operand: Operand,
) -> fmt::Result {
    // MOV of a shifted register is written as the shift.
    if let (DataOp::Mov, Operand::Register { rm, kind, amount: amount @ 1.. }) = (op, operand) {
        write!(f, "{}{}{c} {}, {}", shift_name(kind), s(flags), Name(rd), Name(rm))?;
        return if kind == ShiftKind::Rrx { Ok(()) } else { write!(f, ", #{amount}") };
    }
    let name = format!("{op:?}").to_lowercase();
    write!(f, "{name}{}{c} ", s(flags && !op.is_test()))?;
    if !op.is_test() {
        write!(f, "{}, ", Name(rd))?;
    }
    if op.reads_rn() {
        write!(f, "{}, ", Name(rn))?;
    }
    match operand {
        Operand::Immediate { value, .. } if value < 0x1_0000 => write!(f, "#{value}"),
        Operand::Immediate { value, .. } => write!(f, "#{value:#x}"),
        Operand::Register { rm, kind, amount } => {
            write!(f, "{}", Name(rm))?;
            shifted(f, kind, amount)
        }
    }
}

fn shifted(f: &mut Formatter<'_>, kind: ShiftKind, amount: u8) -> fmt::Result {
    match (kind, amount) {
        (_, 0) => Ok(()),
        (ShiftKind::Rrx, _) => write!(f, ", rrx"),
        _ => write!(f, ", {} #{amount}", shift_name(kind)),
    }
}

fn memory_or_system(f: &mut Formatter<'_>, c: Condition, instruction: &Instruction) -> fmt::Result {
    match *instruction {
        Instruction::Load { width, rt, address } => {
            write!(f, "ldr{}{c} {}, {address}", suffix(width), Name(rt))
        }
        Instruction::LoadLiteral { width, rt, address } => {
            write!(f, "ldr{}{c} {}, {address:#x}", suffix(width), Name(rt))
        }
        Instruction::Store { width, rt, address } => {
            write!(f, "str{}{c} {}, {address}", suffix(width), Name(rt))
        }
        Instruction::LoadDual { rt, rt2, address } => {
            write!(f, "ldrd{c} {}, {}, {address}", Name(rt), Name(rt2))
        }
        Instruction::LoadDualLiteral { rt, rt2, address } => {
            write!(f, "ldrd{c} {}, {}, {address:#x}", Name(rt), Name(rt2))
        }
        Instruction::StoreDual { rt, rt2, address } => {
            write!(f, "strd{c} {}, {}, {address}", Name(rt), Name(rt2))
        }
        Instruction::LoadMultiple { rn: SP, list, writeback: true, before: false } => {
            write!(f, "pop{c} {}", List(list))
        }
        Instruction::StoreMultiple { rn: SP, list, writeback: true, before: true } => {
            write!(f, "push{c} {}", List(list))
        }
        Instruction::LoadMultiple { rn, list, writeback, before } => {
            write!(f, "ldm{}{c} {}{}, {}", mode(before), Name(rn), mark(writeback), List(list))
        }
        Instruction::StoreMultiple { rn, list, writeback, before } => {
            write!(f, "stm{}{c} {}{}, {}", mode(before), Name(rn), mark(writeback), List(list))
        }
        Instruction::LoadExclusive { width, rt, rn, offset } => {
            write!(f, "ldrex{}{c} {}, {}", suffix(width), Name(rt), exclusive(rn, offset))
        }
        Instruction::StoreExclusive { width, rd, rt, rn, offset } => {
            write!(
                f,
                "strex{}{c} {}, {}, {}",
                suffix(width),
                Name(rd),
                Name(rt),
                exclusive(rn, offset)
            )
        }
        Instruction::ClearExclusive => write!(f, "clrex{c}"),
        Instruction::TableBranch { half: false, rn, rm } => {
            write!(f, "tbb{c} [{}, {}]", Name(rn), Name(rm))
        }
        Instruction::TableBranch { half: true, rn, rm } => {
            write!(f, "tbh{c} [{}, {}, lsl #1]", Name(rn), Name(rm))
        }
        Instruction::Nop => write!(f, "nop{c}"),
        Instruction::Yield => write!(f, "yield{c}"),
        Instruction::WaitForEvent => write!(f, "wfe{c}"),
        Instruction::WaitForInterrupt => write!(f, "wfi{c}"),
        Instruction::SendEvent => write!(f, "sev{c}"),
        Instruction::DataBarrier => write!(f, "dmb{c}"),
        Instruction::InstructionBarrier => write!(f, "isb{c}"),
        Instruction::ChangeState { disable, primask, faultmask } => {
            let masks = [if primask { "i" } else { "" }, if faultmask { "f" } else { "" }].concat();
            write!(f, "cps{} {masks}", if disable { "id" } else { "ie" })
        }
        Instruction::Mrs { rd, sysm } => write!(f, "mrs{c} {}, {}", Name(rd), special(sysm)),
        Instruction::Msr { rn, sysm } => write!(f, "msr{c} {}, {}", special(sysm), Name(rn)),
        Instruction::SupervisorCall { number } => write!(f, "svc{c} {number}"),
        Instruction::Breakpoint { number } => write!(f, "bkpt {number:#04x}"),
        Instruction::Preload => write!(f, "pld{c}"),
        Instruction::Coprocessor => write!(f, "a coprocessor instruction"),
        _ => write!(f, "an undefined instruction"),
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let base = Name(self.base);
        match (self.offset, self.index) {
            (Offset::Immediate(0), Index::Offset) => write!(f, "[{base}]"),
            (Offset::Immediate(offset), Index::Offset) => write!(f, "[{base}, #{offset}]"),
            (Offset::Immediate(offset), Index::Pre) => write!(f, "[{base}, #{offset}]!"),
            (Offset::Immediate(offset), Index::Post) => write!(f, "[{base}], #{offset}"),
            (Offset::Register { rm, lsl: 0 }, _) => write!(f, "[{base}, {}]", Name(rm)),
            (Offset::Register { rm, lsl }, _) => write!(f, "[{base}, {}, lsl #{lsl}]", Name(rm)),
        }
    }
}

/// Registers between braces.
struct List(u16);

impl Display for List {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, register) in RegisterSet(self.0).iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "{" } else { ", " }, Name(register))?;
        }
        f.write_str("}")
    }
}

fn exclusive(rn: Reg, offset: u16) -> Address {
    Address { base: rn, offset: Offset::Immediate(i32::from(offset)), index: Index::Offset }
}

/// IT with a T or an E for each mask bit above the lowest 1.
fn if_then(f: &mut Formatter<'_>, first: Condition, mask: u8) -> fmt::Result {
    f.write_str("it")?;
    for position in (mask.trailing_zeros() + 1..4).rev() {
        f.write_str(if mask >> position & 1 == first.0 & 1 { "t" } else { "e" })?;
    }
    if first.is_conditional() { write!(f, " {first}") } else { f.write_str(" al") }
}

fn special(sysm: u8) -> String {
    let names = [
        (0, "apsr"),
        (1, "iapsr"),
        (2, "eapsr"),
        (3, "xpsr"),
        (5, "ipsr"),
        (6, "epsr"),
        (7, "iepsr"),
        (8, "msp"),
        (9, "psp"),
        (16, "primask"),
        (17, "basepri"),
        (18, "basepri_max"),
        (19, "faultmask"),
        (20, "control"),
    ];
    let name = names.iter().find(|(number, _)| *number == sysm).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| format!("special register {sysm}"))
}

fn shift_name(kind: ShiftKind) -> &'static str {
    match kind {
        ShiftKind::Lsl => "lsl",
        ShiftKind::Lsr => "lsr",
        ShiftKind::Asr => "asr",
        ShiftKind::Ror => "ror",
        ShiftKind::Rrx => "rrx",
    }
}

fn unary_name(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Sxtb => "sxtb",
        UnaryOp::Sxth => "sxth",
        UnaryOp::Uxtb => "uxtb",
        UnaryOp::Uxth => "uxth",
        UnaryOp::Rev => "rev",
        UnaryOp::Rev16 => "rev16",
        UnaryOp::Revsh => "revsh",
        UnaryOp::Rbit => "rbit",
        UnaryOp::Clz => "clz",
    }
}

fn suffix(width: Width) -> &'static str {
    match width {
        Width::Byte => "b",
        Width::Half => "h",
        Width::Word => "",
        Width::SignedByte => "sb",
        Width::SignedHalf => "sh",
    }
}

fn s(flags: bool) -> &'static str {
    if flags { "s" } else { "" }
}

fn sign(signed: bool) -> &'static str {
    if signed { "s" } else { "u" }
}

fn mode(before: bool) -> &'static str {
    if before { "db" } else { "ia" }
}

fn mark(writeback: bool) -> &'static str {
    if writeback { "!" } else { "" }
}
