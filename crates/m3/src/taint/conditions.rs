// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Instructions of IT blocks: a secret condition is a leak, and results depend on it.

use super::{
    BASEPRI, C, CONTROL, FAULTMASK, LeakKind, MONITOR, N, OTHER_STACK, PRIMASK, Q, Taint, V, Z,
    read_by,
};
use crate::block;
use crate::core::{Core, Operation};
use crate::isa::{Instruction, PC, SP};

impl Taint {
    /// Before an instruction of an IT block.
    #[inline(never)]
    pub(super) fn before_conditional(&mut self, core: &Core, operation: &Operation) {
        self.current.skipped = !core.registers.flags.satisfy(operation.condition);
        self.current.control = self.first(read_by(operation.condition));
        if self.current.control.is_secret() {
            let jumps = operation.instruction.operands().writes.contains(PC);
            let kind = if jumps { LeakKind::Branch } else { LeakKind::Condition };
            self.leak(kind, operation, self.current.control);
        }
    }

    /// After one.
    #[inline(never)]
    pub(super) fn after_conditional(&mut self, core: &mut Core, operation: &Operation) {
        if !self.current.skipped {
            self.effect(core, operation);
        }
        // Instructions outside IT blocks do not set it.
        self.current.skipped = false;
        if self.current.control.is_secret() && !leads_to_jump(core, operation) {
            self.taint_conditional_results(core, operation);
        }
    }

    /// A secret condition: everything that the instruction writes depends on it, executed or not.
    #[cold]
    fn taint_conditional_results(&mut self, core: &Core, operation: &Operation) {
        let label = self.current.control;
        let written = operation.instruction.operands();
        let mut places = u32::from(written.writes.0);
        for (sets, flags) in [(written.sets_nz, N | Z), (written.sets_c, C), (written.sets_v, V)] {
            places |= if sets { flags } else { 0 };
        }
        places |= match operation.instruction {
            Instruction::Saturate { .. } | Instruction::Msr { sysm: 0..=3, .. } => Q,
            Instruction::LoadExclusive { .. }
            | Instruction::StoreExclusive { .. }
            | Instruction::ClearExclusive => MONITOR,
            Instruction::ChangeState { .. } => PRIMASK | FAULTMASK,
            Instruction::Msr { .. } => {
                PRIMASK | FAULTMASK | BASEPRI | CONTROL | 1 << OTHER_STACK | 1 << SP
            }
            _ => 0,
        };
        self.add(places, label);
        self.taint_conditional_store(core, operation, label);
    }
}

/// Whether an instruction of an IT block is a jump or precedes one under the same condition. A
/// secret condition is then a branch, after which it is known which instructions were executed.
fn leads_to_jump(core: &Core, operation: &Operation) -> bool {
    let mut one = operation.clone();
    loop {
        let operands = one.instruction.operands();
        if one.condition == operation.condition {
            if operands.writes.contains(PC) {
                return true;
            }
            if operands.sets_nz || operands.sets_c || operands.sets_v {
                return false;
            }
        }
        let (at, it_state) = (one.next(), one.it_after());
        let next = if it_state == 0 { None } else { block::fetch(at, &core.memory, true) };
        let Some(next) = next else { return false };
        one = Operation::new(&next, at, it_state);
    }
}
