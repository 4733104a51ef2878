// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effect of each instruction, other than loads and stores.

use super::arithmetic::{add_with_carry, divide, saturate, shift, unary};
use super::{Core, Fault, Flow, Operation, Trap};
use crate::isa::{DataOp, Instruction, LR, Operand, PC, Reg, ShiftKind};
use crate::timing::Cycles;

impl Core {
    /// Executes one instruction. R15 is meaningless afterwards unless the instruction jumped.
    #[inline]
    pub fn execute(&mut self, operation: &Operation) -> Flow {
        self.registers.r[15] = operation.address.wrapping_add(4);
        if operation.condition.is_conditional()
            && !self.registers.flags.satisfy(operation.condition)
        {
            return self.skip(operation);
        }
        self.execute_always(operation)
    }

    #[inline]
    fn execute_always(&mut self, operation: &Operation) -> Flow {
        match operation.instruction {
            Instruction::Data { op, flags, rd, rn, operand } => {
                self.data(op, flags, rd, rn, operand)
            }
            Instruction::Load { width, rt, address } => self.load(operation, width, rt, address),
            Instruction::LoadLiteral { width, rt, address } => {
                self.load_at(operation, width, rt, address)
            }
            Instruction::Store { width, rt, address } => self.store(operation, width, rt, address),
            Instruction::Branch { condition, target } => {
                if !condition.is_conditional() {
                    return self.jump(target);
                }
                if !self.registers.flags.satisfy(condition) {
                    return Flow::Next;
                }
                self.clock += self.costs.taken;
                self.jump(target)
            }
            Instruction::CompareBranch { nonzero, rn, target } => {
                if (self.registers.get(rn) != 0) != nonzero {
                    return Flow::Next;
                }
                self.clock += self.costs.taken;
                self.jump(target)
            }
            Instruction::BranchLink { target } => {
                self.registers.r[14] = operation.next() | 1;
                self.jump(target)
            }
            Instruction::BranchExchange { rm, link } => {
                let target = self.registers.get(rm);
                if link {
                    self.registers.r[14] = operation.next() | 1;
                }
                self.branch_exchange(target)
            }
            Instruction::Shift { kind, flags, rd, rn, rm } => {
                let amount = self.registers.get(rm) & 0xff;
                let carry = self.registers.flags.carry;
                let (result, carry) = shift(self.registers.get(rn), kind, amount, carry);
                self.registers.set(rd, result);
                if flags {
                    self.set_nz(result);
                    self.registers.flags.carry = carry;
                }
                Flow::Next
            }
            Instruction::LoadMultiple { rn, list, writeback, before } => {
                self.load_multiple(operation, rn, list, writeback, before)
            }
            Instruction::StoreMultiple { rn, list, writeback, before } => {
                self.store_multiple(operation, rn, list, writeback, before)
            }
            // The operations that follow carry its conditions.
            Instruction::IfThen { .. } => Flow::Next,
            _ => self.execute_uncommon(operation),
        }
    }

    /// Less frequent instructions, out of line to keep the common path short.
    fn execute_uncommon(&mut self, operation: &Operation) -> Flow {
        match operation.instruction {
            Instruction::MovTop { rd, value } => {
                let low = self.registers.get(rd) & 0xffff;
                self.write(rd, low | u32::from(value) << 16)
            }
            Instruction::Adr { rd, address } => self.write(rd, address),
            Instruction::Unary { op, rd, rm, rotate } => {
                let value = unary(op, self.registers.get(rm), rotate);
                self.write(rd, value)
            }
            Instruction::BitFieldInsert { rd, rn, lsb, width } => {
                let mask = field(lsb, width);
                let value = self.registers.get(rd) & !mask | self.registers.get(rn) << lsb & mask;
                self.write(rd, value)
            }
            Instruction::BitFieldClear { rd, lsb, width } => {
                let value = self.registers.get(rd) & !field(lsb, width);
                self.write(rd, value)
            }
            Instruction::BitFieldExtract { signed, rd, rn, lsb, width } => {
                let up = self.registers.get(rn) << (32 - lsb - width);
                let down = 32 - width;
                self.write(rd, if signed { ((up as i32) >> down) as u32 } else { up >> down })
            }
            Instruction::Saturate { signed, rd, rn, to, kind, amount } => {
                let (value, _) = shift(self.registers.get(rn), kind, u32::from(amount), false);
                let (result, saturated) = saturate(value, signed, to);
                self.registers.saturated |= saturated;
                self.write(rd, result)
            }
            Instruction::Mul { flags, rd, rn, rm } => {
                let result = self.registers.get(rn).wrapping_mul(self.registers.get(rm));
                if flags {
                    self.set_nz(result);
                }
                self.write(rd, result)
            }
            Instruction::Mla { rd, rn, rm, ra } => {
                let product = self.registers.get(rn).wrapping_mul(self.registers.get(rm));
                let result = self.registers.get(ra).wrapping_add(product);
                self.write(rd, result)
            }
            Instruction::Mls { rd, rn, rm, ra } => {
                let product = self.registers.get(rn).wrapping_mul(self.registers.get(rm));
                let result = self.registers.get(ra).wrapping_sub(product);
                self.write(rd, result)
            }
            Instruction::LongMul { signed, accumulate, lo, hi, rn, rm } => {
                self.long_multiply(signed, accumulate, [lo, hi], [rn, rm])
            }
            Instruction::Div { signed, rd, rn, rm } => {
                let (n, m) = (self.registers.get(rn), self.registers.get(rm));
                if m == 0 && self.system.traps_division_by_zero() {
                    return self.fault(Fault::DivideByZero);
                }
                self.clock += self.costs.divide(signed, n, m);
                self.write(rd, divide(n, m, signed))
            }
            Instruction::Nop | Instruction::Yield | Instruction::Preload => Flow::Next,
            Instruction::DataBarrier | Instruction::InstructionBarrier => {
                self.trap_after(operation, Trap::Resynchronise)
            }
            Instruction::Undefined => self.fault(Fault::Undefined),
            Instruction::Coprocessor => self.fault(Fault::Coprocessor),
            Instruction::SupervisorCall { number } => {
                self.trap_after(operation, Trap::SupervisorCall(number))
            }
            Instruction::Breakpoint { number } => self.trapped(Trap::Breakpoint(number)),
            Instruction::WaitForInterrupt => self.trap_after(operation, Trap::Sleep),
            Instruction::WaitForEvent => {
                // A pending event is consumed, without sleep.
                if std::mem::take(&mut self.system.event) {
                    return Flow::Next;
                }
                self.trap_after(operation, Trap::Sleep)
            }
            Instruction::SendEvent => {
                self.system.event = true;
                Flow::Next
            }
            Instruction::Mrs { .. } | Instruction::Msr { .. } | Instruction::ChangeState { .. } => {
                self.special(operation)
            }
            _ => self.load_store_uncommon(operation),
        }
    }

    fn skip(&mut self, operation: &Operation) -> Flow {
        // BKPT is unconditional (DDI 0403E section A7.7.17).
        if matches!(operation.instruction, Instruction::Breakpoint { .. }) {
            return self.execute_always(operation);
        }
        // One cycle if the condition fails (DDI 0337I table 3-1), plus the wait for its fetch.
        self.clock += Cycles::both(1 + u64::from(operation.fetch_wait)) - operation.cycles;
        Flow::Next
    }

    #[inline]
    fn data(&mut self, op: DataOp, flags: bool, rd: Reg, rn: Reg, operand: Operand) -> Flow {
        let carry_in = self.registers.flags.carry;
        let (b, shifter_carry) = match operand {
            Operand::Immediate { value, carry } => (value, carry.unwrap_or(carry_in)),
            Operand::Register { rm, kind: ShiftKind::Lsl, amount: 0 } => {
                (self.registers.get(rm), carry_in)
            }
            Operand::Register { rm, kind, amount } => {
                shift(self.registers.get(rm), kind, u32::from(amount), carry_in)
            }
        };
        let a = self.registers.get(rn);
        let logical = |value: u32| (value, shifter_carry, self.registers.flags.overflow);
        let (result, carry, overflow) = match op {
            DataOp::And | DataOp::Tst => logical(a & b),
            DataOp::Bic => logical(a & !b),
            DataOp::Orr => logical(a | b),
            DataOp::Orn => logical(a | !b),
            DataOp::Eor | DataOp::Teq => logical(a ^ b),
            DataOp::Mov => logical(b),
            DataOp::Mvn => logical(!b),
            DataOp::Add | DataOp::Cmn => add_with_carry(a, b, false),
            DataOp::Adc => add_with_carry(a, b, carry_in),
            DataOp::Sub | DataOp::Cmp => add_with_carry(a, !b, true),
            DataOp::Sbc => add_with_carry(a, !b, carry_in),
            DataOp::Rsb => add_with_carry(!a, b, true),
        };
        if flags {
            self.set_nz(result);
            self.registers.flags.carry = carry;
            self.registers.flags.overflow = overflow;
        }
        if op.is_test() { Flow::Next } else { self.write(rd, result) }
    }

    fn long_multiply(
        &mut self,
        signed: bool,
        accumulate: bool,
        [lo, hi]: [Reg; 2],
        [rn, rm]: [Reg; 2],
    ) -> Flow {
        let (n, m) = (self.registers.get(rn), self.registers.get(rm));
        let mut result = if signed {
            (i64::from(n as i32) * i64::from(m as i32)) as u64
        } else {
            u64::from(n) * u64::from(m)
        };
        if accumulate {
            let before =
                u64::from(self.registers.get(hi)) << 32 | u64::from(self.registers.get(lo));
            result = result.wrapping_add(before);
        }
        self.clock += self.costs.long_multiply(signed, accumulate, n, m);
        self.registers.set(lo, result as u32);
        self.registers.set(hi, (result >> 32) as u32);
        Flow::Next
    }

    /// Writes a result; a result to PC is a branch (ALUWritePC).
    #[inline]
    pub(super) fn write(&mut self, rd: Reg, value: u32) -> Flow {
        if rd == PC {
            return self.jump(value & !1);
        }
        self.registers.set(rd, value);
        Flow::Next
    }

    #[inline]
    pub(super) fn set_nz(&mut self, result: u32) {
        self.registers.flags.negative = result;
        self.registers.flags.zero = result;
    }

    #[inline]
    fn jump(&mut self, target: u32) -> Flow {
        self.registers.r[15] = target;
        Flow::Jumped
    }

    /// BXWritePC and LoadWritePC: bit 0 must be set (Thumb); in Handler mode an EXC_RETURN value
    /// ends the exception.
    #[inline]
    pub(super) fn branch_exchange(&mut self, target: u32) -> Flow {
        if target >> 28 == 0xf && self.registers.in_handler() {
            return self.trapped(Trap::ExceptionReturn(target));
        }
        if target & 1 == 0 {
            // The fault belongs to the next instruction: this one is complete.
            return self.fault(Fault::InvalidState { target });
        }
        self.jump(target & !1)
    }

    /// Traps after this instruction is complete.
    fn trap_after(&mut self, operation: &Operation, trap: Trap) -> Flow {
        self.registers.r[15] = operation.next();
        self.trapped(trap)
    }
}

fn field(lsb: u8, width: u8) -> u32 {
    (u32::MAX >> (32 - width)) << lsb
}

// BL writes LR by number.
const _: () = assert!(LR == 14);
