// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Specialised functions for the most frequent instruction forms, selected at decoding, so that
//! [`Core::execute`] need not dispatch on each execution. Forms that name R15 or whose condition
//! may fail are left to `execute`. A test here compares the two.

use super::arithmetic::{add_with_carry, shift};
use super::{Core, Flow, Operation};
use crate::isa::{
    Address, Condition, DataOp, Index, Instruction, Offset, Operand, PC, SP, ShiftKind, Width,
};

/// The function that executes a form.
pub type Run = fn(&mut Core, &Operation) -> Flow;

/// An instruction's operands, laid out for its function.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields {
    /// Destination, or the register that is loaded or stored.
    d: u8,
    /// First operand, or base.
    n: u8,
    /// Second operand, or offset.
    m: u8,
    /// Bits by which `m` is shifted.
    amount: u8,
    /// A constant, or a branch's target.
    value: u32,
}

/// Selects the function for an instruction, with its operands.
pub fn choose(instruction: &Instruction, condition: Condition) -> (Run, Fields) {
    let operands = instruction.operands();
    let names_pc = operands.reads.with(operands.address).contains(PC);
    let branches = matches!(
        instruction,
        Instruction::Branch { .. }
            | Instruction::BranchLink { .. }
            | Instruction::CompareBranch { .. }
    );
    let plain =
        !condition.is_conditional() && !names_pc && (branches || !operands.writes.contains(PC));
    let chosen = if plain { direct(instruction) } else { None };
    chosen.unwrap_or((Core::execute, Fields::default()))
}

fn direct(instruction: &Instruction) -> Option<(Run, Fields)> {
    Some(match *instruction {
        // SP += a negative register allocates frames larger than SUB's constant.
        Instruction::Data { op: DataOp::Add | DataOp::Sub, rd: SP, .. } => {
            (move_stack, Fields::default())
        }
        Instruction::Data { op, flags, rd, rn, operand } => {
            return data_form(op, flags, rd, rn, operand);
        }
        Instruction::Load { width, rt, address } => {
            (load_form(width, address)?, place(rt, address))
        }
        Instruction::Store { width, rt, address } => {
            (store_form(width, address)?, place(rt, address))
        }
        Instruction::LoadLiteral { width: Width::Word, rt, address } => {
            (load_literal, Fields { d: rt, value: address, ..Fields::default() })
        }
        Instruction::Branch { condition, target } => {
            let fields = Fields { d: condition.0, value: target, ..Fields::default() };
            (if condition.is_conditional() { branch_if } else { branch }, fields)
        }
        Instruction::BranchLink { target } => {
            (branch_link, Fields { value: target, ..Fields::default() })
        }
        Instruction::CompareBranch { nonzero, rn, target } => {
            let fields = Fields { n: rn, value: target, ..Fields::default() };
            (if nonzero { branch_if_nonzero } else { branch_if_zero }, fields)
        }
        Instruction::Mul { flags: false, rd, rn, rm } => {
            (multiply, Fields { d: rd, n: rn, m: rm, ..Fields::default() })
        }
        _ => return None,
    })
}

/// An operation on two operands and the carry: result, carry, overflow; the last two are meaningful
/// only if `ARITHMETIC`.
trait Alu {
    const ARITHMETIC: bool;
    const TEST: bool = false;
    fn result(a: u32, b: u32, carry: bool) -> (u32, bool, bool);
}

macro_rules! alu {
    ($($name:ident $(: $test:ident)? = |$a:ident, $b:ident, $carry:ident| $sum:expr;)*) => {$(
        struct $name;
        impl Alu for $name {
            const ARITHMETIC: bool = true;
            $(const $test: bool = true;)?
            #[inline(always)]
            fn result($a: u32, $b: u32, $carry: bool) -> (u32, bool, bool) {
                let _ = $carry;
                $sum
            }
        }
    )*};
}

macro_rules! logic {
    ($($name:ident $(: $test:ident)? = |$a:ident, $b:ident| $value:expr;)*) => {$(
        struct $name;
        impl Alu for $name {
            const ARITHMETIC: bool = false;
            $(const $test: bool = true;)?
            #[inline(always)]
            fn result($a: u32, $b: u32, _carry: bool) -> (u32, bool, bool) {
                let _ = $a;
                ($value, false, false)
            }
        }
    )*};
}

alu! {
    Add = |a, b, carry| add_with_carry(a, b, false);
    Adc = |a, b, carry| add_with_carry(a, b, carry);
    Sub = |a, b, carry| add_with_carry(a, !b, true);
    Sbc = |a, b, carry| add_with_carry(a, !b, carry);
    Rsb = |a, b, carry| add_with_carry(!a, b, true);
    Cmp: TEST = |a, b, carry| add_with_carry(a, !b, true);
    Cmn: TEST = |a, b, carry| add_with_carry(a, b, false);
}

logic! {
    And = |a, b| a & b;
    Bic = |a, b| a & !b;
    Orr = |a, b| a | b;
    Orn = |a, b| a | !b;
    Eor = |a, b| a ^ b;
    Mov = |a, b| b;
    Mvn = |a, b| !b;
    Tst: TEST = |a, b| a & b;
    Teq: TEST = |a, b| a ^ b;
}

/// The source of the second operand, with the shifter's carry out.
trait Second {
    fn operand(core: &Core, fields: &Fields) -> (u32, bool);
}

/// A constant whose expansion leaves the carry unchanged.
struct Constant;
/// A register without a shift.
struct Plain;
/// A register shifted left, right, arithmetically right, or rotated.
struct Shifted<const KIND: u8>;

impl Second for Constant {
    #[inline(always)]
    fn operand(core: &Core, fields: &Fields) -> (u32, bool) {
        (fields.value, core.registers.flags.carry)
    }
}

impl Second for Plain {
    #[inline(always)]
    fn operand(core: &Core, fields: &Fields) -> (u32, bool) {
        (core.registers.get(fields.m), core.registers.flags.carry)
    }
}

impl<const KIND: u8> Second for Shifted<KIND> {
    #[inline(always)]
    fn operand(core: &Core, fields: &Fields) -> (u32, bool) {
        let kind = match KIND {
            0 => ShiftKind::Lsl,
            1 => ShiftKind::Lsr,
            2 => ShiftKind::Asr,
            _ => ShiftKind::Ror,
        };
        shift(
            core.registers.get(fields.m),
            kind,
            u32::from(fields.amount),
            core.registers.flags.carry,
        )
    }
}

fn data<A: Alu, S: Second, const FLAGS: bool>(core: &mut Core, operation: &Operation) -> Flow {
    let fields = &operation.fields;
    let (b, shifter_carry) = S::operand(core, fields);
    let carry_in = core.registers.flags.carry;
    let (result, carry, overflow) = A::result(core.registers.get(fields.n), b, carry_in);
    if FLAGS {
        core.set_nz(result);
        core.registers.flags.carry = if A::ARITHMETIC { carry } else { shifter_carry };
        if A::ARITHMETIC {
            core.registers.flags.overflow = overflow;
        }
    }
    if !A::TEST {
        core.registers.set(fields.d, result);
    }
    Flow::Next
}

fn data_form(op: DataOp, flags: bool, rd: u8, rn: u8, operand: Operand) -> Option<(Run, Fields)> {
    let fields = Fields { d: rd, n: rn, ..Fields::default() };
    match operand {
        // The carry out of the expansion matters only if flags are set.
        Operand::Immediate { carry: Some(_), .. } if flags && !op.is_arithmetic() => None,
        Operand::Immediate { value, .. } => {
            Some((function::<Constant>(op, flags), Fields { value, ..fields }))
        }
        Operand::Register { rm, kind, amount } => {
            let fields = Fields { m: rm, amount, ..fields };
            let run = match kind {
                ShiftKind::Lsl if amount == 0 => function::<Plain>(op, flags),
                ShiftKind::Lsl => function::<Shifted<0>>(op, flags),
                ShiftKind::Lsr => function::<Shifted<1>>(op, flags),
                ShiftKind::Asr => function::<Shifted<2>>(op, flags),
                ShiftKind::Ror => function::<Shifted<3>>(op, flags),
                ShiftKind::Rrx => return None,
            };
            Some((run, fields))
        }
    }
}

fn function<S: Second>(op: DataOp, flags: bool) -> Run {
    macro_rules! forms {
        ($($name:ident),*) => {
            match (op, flags) {
                $(
                    (DataOp::$name, false) => data::<$name, S, false>,
                    (DataOp::$name, true) => data::<$name, S, true>,
                )*
            }
        };
    }
    forms!(And, Bic, Orr, Orn, Eor, Add, Adc, Sub, Sbc, Rsb, Mov, Mvn, Tst, Teq, Cmp, Cmn)
}

/// ADD or SUB to SP. A function may never touch the low end of its frame, so that an overflow must
/// be detected here.
fn move_stack(core: &mut Core, operation: &Operation) -> Flow {
    let before = core.registers.get(SP);
    let flow = core.execute(operation);
    let moved = core.registers.get(SP);
    if core.overflows(SP, before, moved) { core.overflow(operation) } else { flow }
}

fn multiply(core: &mut Core, operation: &Operation) -> Flow {
    let fields = &operation.fields;
    let product = core.registers.get(fields.n).wrapping_mul(core.registers.get(fields.m));
    core.registers.set(fields.d, product);
    Flow::Next
}

fn place(rt: u8, address: Address) -> Fields {
    let fields = Fields { d: rt, n: address.base, ..Fields::default() };
    match address.offset {
        Offset::Immediate(offset) => Fields { value: offset as u32, ..fields },
        Offset::Register { rm, lsl } => Fields { m: rm, amount: lsl, ..fields },
    }
}

/// Address forms without write-back.
fn load_form(width: Width, address: Address) -> Option<Run> {
    if address.index != Index::Offset {
        return None;
    }
    let constant = matches!(address.offset, Offset::Immediate(_));
    Some(match (width, constant) {
        (Width::Word, true) => load::<4, false, true>,
        (Width::Word, false) => load::<4, false, false>,
        (Width::Half, true) => load::<2, false, true>,
        (Width::Half, false) => load::<2, false, false>,
        (Width::Byte, true) => load::<1, false, true>,
        (Width::Byte, false) => load::<1, false, false>,
        (Width::SignedHalf, true) => load::<2, true, true>,
        (Width::SignedHalf, false) => load::<2, true, false>,
        (Width::SignedByte, true) => load::<1, true, true>,
        (Width::SignedByte, false) => load::<1, true, false>,
    })
}

fn store_form(width: Width, address: Address) -> Option<Run> {
    if address.index != Index::Offset {
        return None;
    }
    let constant = matches!(address.offset, Offset::Immediate(_));
    Some(match (width.bytes(), constant) {
        (4, true) => store::<4, true>,
        (4, false) => store::<4, false>,
        (2, true) => store::<2, true>,
        (2, false) => store::<2, false>,
        (_, true) => store::<1, true>,
        (_, false) => store::<1, false>,
    })
}

#[inline(always)]
fn address<const CONSTANT: bool>(core: &Core, fields: &Fields) -> u32 {
    let base = core.registers.get(fields.n);
    let offset =
        if CONSTANT { fields.value } else { core.registers.get(fields.m) << fields.amount };
    base.wrapping_add(offset)
}

const fn width<const BYTES: u8, const SIGNED: bool>() -> Width {
    match (BYTES, SIGNED) {
        (4, _) => Width::Word,
        (2, false) => Width::Half,
        (2, true) => Width::SignedHalf,
        (_, false) => Width::Byte,
        (_, true) => Width::SignedByte,
    }
}

fn load<const BYTES: u8, const SIGNED: bool, const CONSTANT: bool>(
    core: &mut Core,
    operation: &Operation,
) -> Flow {
    let at = address::<CONSTANT>(core, &operation.fields);
    let Some(value) = core.read(operation, const { width::<BYTES, SIGNED>() }, at) else {
        return Flow::Trapped;
    };
    core.registers.set(operation.fields.d, value);
    Flow::Next
}

fn load_literal(core: &mut Core, operation: &Operation) -> Flow {
    let Some(value) = core.read(operation, Width::Word, operation.fields.value) else {
        return Flow::Trapped;
    };
    core.registers.set(operation.fields.d, value);
    Flow::Next
}

fn store<const BYTES: u8, const CONSTANT: bool>(core: &mut Core, operation: &Operation) -> Flow {
    let at = address::<CONSTANT>(core, &operation.fields);
    let value = core.registers.get(operation.fields.d);
    if !core.write_memory(operation, const { width::<BYTES, false>() }, at, value) {
        return Flow::Trapped;
    }
    core.stored(operation, at)
}

fn branch(core: &mut Core, operation: &Operation) -> Flow {
    core.registers.r[15] = operation.fields.value;
    Flow::Jumped
}

fn branch_if(core: &mut Core, operation: &Operation) -> Flow {
    if !core.registers.flags.satisfy(Condition(operation.fields.d)) {
        return Flow::Next;
    }
    core.clock += core.costs.taken;
    branch(core, operation)
}

fn branch_if_zero(core: &mut Core, operation: &Operation) -> Flow {
    if core.registers.get(operation.fields.n) != 0 {
        return Flow::Next;
    }
    core.clock += core.costs.taken;
    branch(core, operation)
}

fn branch_if_nonzero(core: &mut Core, operation: &Operation) -> Flow {
    if core.registers.get(operation.fields.n) == 0 {
        return Flow::Next;
    }
    core.clock += core.costs.taken;
    branch(core, operation)
}

fn branch_link(core: &mut Core, operation: &Operation) -> Flow {
    core.registers.r[14] = operation.next() | 1;
    branch(core, operation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{Registers, Trap};
    use crate::isa;
    use crate::memory::{Memory, Region};
    use crate::timing::{Cycles, OperandCycles, Rules};
    use proptest::prelude::*;

    const BASE: u32 = 0x2000_0000;
    const BYTES: u32 = 256;

    fn core(registers: &[u32; 16], flags: u8, memory: &[u8]) -> Core {
        let region = Region {
            name: "sram".into(),
            base: BASE,
            bytes: BYTES,
            writable: true,
            wait_states: 3,
            lines: None,
        };
        let rules = Rules::cortex_m3().expect("rules");
        let memory_map = Memory::new(&[region]).expect("one region");
        let mut core = Core::new(memory_map, OperandCycles::new(&rules));
        assert!(core.memory.program(BASE, memory));
        core.registers = core_registers(registers, flags);
        core.stack_limit = BASE + BYTES / 2;
        core
    }

    fn core_registers(values: &[u32; 16], flags: u8) -> Registers {
        let mut registers = Registers { r: *values, ..Registers::default() };
        registers.set_xpsr(u32::from(flags) << 27);
        registers
    }

    /// Everything that an instruction may change, except memory.
    fn state(
        core: &Core,
        flow: Flow,
        address: u32,
    ) -> (Flow, Option<Trap>, [u32; 17], bool, Cycles) {
        let trap = (flow == Flow::Trapped).then_some(core.trap);
        let mut registers = core.registers;
        if flow == Flow::Next || matches!(trap, Some(Trap::Fault(_))) {
            // R15 is not maintained within a block or after a fault.
            registers.r[15] = address;
        }
        let mut seen = [registers.xpsr(); 17];
        seen[..16].copy_from_slice(&registers.r);
        (flow, trap, seen, registers.saturated, core.clock)
    }

    fn memory_of(core: &Core) -> Vec<Option<u32>> {
        (BASE..BASE + BYTES).step_by(4).map(|at| core.memory.peek(at)).collect()
    }

    /// Any word, or an address near the ends of the memory, or a small number.
    fn word() -> impl Strategy<Value = u32> {
        prop_oneof![any::<u32>(), (BASE - 8..BASE + BYTES + 8), (0u32..40)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn specialised_functions_match_execute(
            encodings in prop::collection::vec((any::<u16>(), any::<u16>()), 100),
            registers in prop::array::uniform16(word()),
            flags in 0u8..32,
            memory in prop::collection::vec(any::<u8>(), BYTES as usize),
        ) {
            let at = 0x1000;
            let mut one = core(&registers, flags, &memory);
            let mut other = core(&registers, flags, &memory);
            for (first, second) in encodings {
                let operation = Operation::new(&isa::decode(at, first, second, false), at, 0);
                one.registers = core_registers(&registers, flags);
                other.registers = one.registers;
                let flow = (operation.run)(&mut one, &operation);
                let expected = other.execute(&operation);
                // Only the specialised function checks the stack limit.
                let overflow = flow == Flow::Trapped && one.trap == Trap::StackOverflow;
                if overflow && expected == Flow::Next {
                    prop_assert!(one.registers.r[13] < one.stack_limit);
                    continue;
                }
                let (ours, theirs) = (state(&one, flow, at), state(&other, expected, at));
                prop_assert_eq!(ours, theirs, "{:?}", operation.instruction);
            }
            prop_assert_eq!(memory_of(&one), memory_of(&other));
        }
    }

    #[test]
    fn common_instructions_are_specialised() {
        // movs, adds, ldr, str, cmp, beq, bl, add.w, ldr.w, lsls, mul.
        for (first, second) in [
            (0x2001, 0),
            (0x1888, 0),
            (0x6808, 0),
            (0x6008, 0),
            (0x2800, 0),
            (0xd0fe, 0),
            (0xf000, 0xf800),
            (0xeb00, 0x0001),
            (0xf8d1, 0x0004),
            (0x0048, 0),
            (0xfb00, 0xf001),
        ] {
            let operation = Operation::new(&isa::decode(0x1000, first, second, false), 0x1000, 0);
            let slow: Run = Core::execute;
            assert!(!std::ptr::fn_addr_eq(operation.run, slow), "{:?}", operation.instruction);
        }
    }
}
