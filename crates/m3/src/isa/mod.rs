// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ARMv7-M integer instruction set: instructions and their decoding.
//!
//! Source: Arm DDI 0403E (ARMv7-M Architecture Reference Manual), chapters A5 to A7. The DSP and
//! floating-point extensions are not in a Cortex-M3 (Arm DDI 0337I section 1.1) and decode as
//! undefined.

mod decode16;
mod decode32;
mod display;
mod operands;

pub use operands::{Operands, RegisterSet};

/// A register's number, 0 to 15.
pub type Reg = u8;

/// Stack pointer.
pub const SP: Reg = 13;
/// Link register.
pub const LR: Reg = 14;
/// Program counter.
pub const PC: Reg = 15;

/// A condition, by its number in the encoding (DDI 0403E section A7.3); 14 is always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition(pub u8);

impl Condition {
    /// Executed whatever the flags are.
    pub const ALWAYS: Condition = Condition(14);

    /// Whether it depends on the flags.
    pub fn is_conditional(self) -> bool {
        self.0 < 14
    }
}

/// Arithmetic and logical operations on two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the mnemonics
pub enum DataOp {
    And,
    Bic,
    Orr,
    Orn,
    Eor,
    Add,
    Adc,
    Sub,
    Sbc,
    Rsb,
    /// `rn` is not used.
    Mov,
    /// `rn` is not used.
    Mvn,
    /// `rd` is not used.
    Tst,
    /// `rd` is not used.
    Teq,
    /// `rd` is not used.
    Cmp,
    /// `rd` is not used.
    Cmn,
}

impl DataOp {
    /// Whether the only result is the flags.
    pub fn is_test(self) -> bool {
        matches!(self, DataOp::Tst | DataOp::Teq | DataOp::Cmp | DataOp::Cmn)
    }

    /// Whether `rn` is an operand.
    pub fn reads_rn(self) -> bool {
        !matches!(self, DataOp::Mov | DataOp::Mvn)
    }

    /// Whether it adds or subtracts, so that C and V come from the adder.
    pub fn is_arithmetic(self) -> bool {
        use DataOp::*;
        matches!(self, Add | Adc | Sub | Sbc | Rsb | Cmp | Cmn)
    }

    /// Whether the carry is an operand.
    pub fn reads_carry(self) -> bool {
        matches!(self, DataOp::Adc | DataOp::Sbc)
    }
}

/// How a register is shifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the mnemonics
pub enum ShiftKind {
    Lsl,
    Lsr,
    Asr,
    Ror,
    /// By one bit, through the carry.
    Rrx,
}

/// The second operand of a data-processing instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A constant.
    Immediate {
        /// The constant, expanded.
        value: u32,
        /// Carry out of the expansion (ThumbExpandImm_C), `None` if the carry is unchanged.
        carry: Option<bool>,
    },
    /// A register, shifted by a constant of 0 to 32.
    Register {
        /// The register.
        rm: Reg,
        /// How it is shifted.
        kind: ShiftKind,
        /// By how many bits; 0 leaves the register and the carry unchanged.
        amount: u8,
    },
}

/// Width and extension of what is loaded or stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Width {
    Byte,
    Half,
    Word,
    SignedByte,
    SignedHalf,
}

impl Width {
    /// Bytes in memory.
    pub fn bytes(self) -> u32 {
        match self {
            Width::Byte | Width::SignedByte => 1,
            Width::Half | Width::SignedHalf => 2,
            Width::Word => 4,
        }
    }
}

/// What is added to a base register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    /// A constant.
    Immediate(i32),
    /// A register, shifted left by 0 to 3.
    Register {
        /// The register.
        rm: Reg,
        /// Bits.
        lsl: u8,
    },
}

/// When the base register is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// Not at all.
    Offset,
    /// Before the access, which is at the new address.
    Pre,
    /// After the access, which is at the old address.
    Post,
}

/// An addressing mode: base, offset, and write-back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Address {
    pub base: Reg,
    pub offset: Offset,
    pub index: Index,
}

/// Operations on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the mnemonics
pub enum UnaryOp {
    Sxtb,
    Sxth,
    Uxtb,
    Uxth,
    Rev,
    Rev16,
    Revsh,
    Rbit,
    Clz,
}

/// Special registers by their number in MRS and MSR (DDI 0403E section B5.1.1).
pub type SysM = u8;

/// One instruction. PC-relative addresses (literals, branch targets) are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // fields are named as in DDI 0403E
pub enum Instruction {
    Data {
        op: DataOp,
        flags: bool,
        rd: Reg,
        rn: Reg,
        operand: Operand,
    },
    /// Shift by the lowest byte of a register.
    Shift {
        kind: ShiftKind,
        flags: bool,
        rd: Reg,
        rn: Reg,
        rm: Reg,
    },
    MovTop {
        rd: Reg,
        value: u16,
    },
    /// ADR: the address is resolved.
    Adr {
        rd: Reg,
        address: u32,
    },
    Unary {
        op: UnaryOp,
        rd: Reg,
        rm: Reg,
        rotate: u8,
    },
    BitFieldInsert {
        rd: Reg,
        rn: Reg,
        lsb: u8,
        width: u8,
    },
    BitFieldClear {
        rd: Reg,
        lsb: u8,
        width: u8,
    },
    BitFieldExtract {
        signed: bool,
        rd: Reg,
        rn: Reg,
        lsb: u8,
        width: u8,
    },
    Saturate {
        signed: bool,
        rd: Reg,
        rn: Reg,
        to: u8,
        kind: ShiftKind,
        amount: u8,
    },
    Mul {
        flags: bool,
        rd: Reg,
        rn: Reg,
        rm: Reg,
    },
    Mla {
        rd: Reg,
        rn: Reg,
        rm: Reg,
        ra: Reg,
    },
    Mls {
        rd: Reg,
        rn: Reg,
        rm: Reg,
        ra: Reg,
    },
    LongMul {
        signed: bool,
        accumulate: bool,
        lo: Reg,
        hi: Reg,
        rn: Reg,
        rm: Reg,
    },
    Div {
        signed: bool,
        rd: Reg,
        rn: Reg,
        rm: Reg,
    },
    Load {
        width: Width,
        rt: Reg,
        address: Address,
    },
    LoadLiteral {
        width: Width,
        rt: Reg,
        address: u32,
    },
    Store {
        width: Width,
        rt: Reg,
        address: Address,
    },
    LoadDual {
        rt: Reg,
        rt2: Reg,
        address: Address,
    },
    LoadDualLiteral {
        rt: Reg,
        rt2: Reg,
        address: u32,
    },
    StoreDual {
        rt: Reg,
        rt2: Reg,
        address: Address,
    },
    LoadMultiple {
        rn: Reg,
        list: u16,
        writeback: bool,
        before: bool,
    },
    StoreMultiple {
        rn: Reg,
        list: u16,
        writeback: bool,
        before: bool,
    },
    LoadExclusive {
        width: Width,
        rt: Reg,
        rn: Reg,
        offset: u16,
    },
    StoreExclusive {
        width: Width,
        rd: Reg,
        rt: Reg,
        rn: Reg,
        offset: u16,
    },
    ClearExclusive,
    Branch {
        condition: Condition,
        target: u32,
    },
    BranchLink {
        target: u32,
    },
    /// BX, or BLX if `link`.
    BranchExchange {
        rm: Reg,
        link: bool,
    },
    /// CBZ, or CBNZ if `nonzero`.
    CompareBranch {
        nonzero: bool,
        rn: Reg,
        target: u32,
    },
    TableBranch {
        half: bool,
        rn: Reg,
        rm: Reg,
    },
    /// The first condition and the mask, as in EPSR.IT.
    IfThen {
        first: Condition,
        mask: u8,
    },
    Nop,
    Yield,
    WaitForEvent,
    WaitForInterrupt,
    SendEvent,
    DataBarrier,
    InstructionBarrier,
    /// CPSIE, or CPSID if `disable`.
    ChangeState {
        disable: bool,
        primask: bool,
        faultmask: bool,
    },
    Mrs {
        rd: Reg,
        sysm: SysM,
    },
    Msr {
        rn: Reg,
        sysm: SysM,
    },
    SupervisorCall {
        number: u8,
    },
    Breakpoint {
        number: u8,
    },
    /// A preload hint, without effect.
    Preload,
    /// A coprocessor instruction: UsageFault NOCP.
    Coprocessor,
    /// Undefined on this core: UsageFault UNDEFINSTR.
    Undefined,
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The instruction.
    pub instruction: Instruction,
    /// Its length in memory, 2 or 4 bytes.
    pub bytes: u8,
}

/// Whether a halfword begins a 32-bit instruction (DDI 0403E section A5.1).
pub fn is_wide(first: u16) -> bool {
    first >> 11 >= 0b11101
}

/// Decodes the instruction at `address` from its first halfword and, if [`is_wide`], its second.
/// In an IT block 16-bit arithmetic does not set flags.
pub fn decode(address: u32, first: u16, second: u16, in_it_block: bool) -> Decoded {
    if is_wide(first) {
        Decoded { instruction: decode32::decode(address, first, second), bytes: 4 }
    } else {
        Decoded { instruction: decode16::decode(address, first, in_it_block), bytes: 2 }
    }
}

/// The bits `high` to `low` of a halfword.
fn bits(value: u16, high: u32, low: u32) -> u32 {
    (u32::from(value) >> low) & ((1 << (high - low + 1)) - 1)
}

/// The register whose number is in the bits `low` to `low + 3`.
fn reg(value: u16, low: u32) -> Reg {
    bits(value, low + 3, low) as Reg
}

/// `value` of `width` bits with its sign extended.
fn sign_extend(value: u32, width: u32) -> i32 {
    ((value << (32 - width)) as i32) >> (32 - width)
}
