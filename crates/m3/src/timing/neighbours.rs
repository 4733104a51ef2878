// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cost of an instruction between its neighbours.

use super::{Cycles, Rules};
use crate::isa::{Address, Decoded, Index, Instruction, Offset, PC, RegisterSet};

impl Rules {
    /// The cost of an instruction, including pipeline effects of the instructions before and after
    /// it in memory. Taken branches, operand-dependent cycles and wait states are not included
    /// ([`super::OperandCycles`]).
    pub fn cost(
        &self,
        previous: Option<&Decoded>,
        decoded: &Decoded,
        next: Option<&Decoded>,
    ) -> Cycles {
        let instruction = &decoded.instruction;
        let own = match instruction {
            Instruction::Mla { .. } | Instruction::Mls { .. } => self.multiply_accumulate.cycles(),
            // OperandCycles has their whole cost.
            Instruction::LongMul { .. } | Instruction::Div { .. } => Cycles::default(),
            Instruction::Load { .. }
            | Instruction::LoadLiteral { .. }
            | Instruction::LoadExclusive { .. } => self.load(instruction, next),
            Instruction::Store { address, .. } => self.store(*address, previous, next),
            Instruction::StoreExclusive { .. } => self.load(instruction, next),
            Instruction::LoadDual { .. }
            | Instruction::LoadDualLiteral { .. }
            | Instruction::StoreDual { .. } => self.multiple(2),
            Instruction::LoadMultiple { list, .. } | Instruction::StoreMultiple { list, .. } => {
                self.multiple(u64::from(list.count_ones()))
            }
            Instruction::Branch { condition, .. } if !condition.is_conditional() => {
                self.data.cycles() + self.branch_taken.cycles()
            }
            Instruction::BranchLink { .. } => self.data.cycles() + self.branch_taken.cycles(),
            Instruction::TableBranch { .. } => return self.table_branch.cycles(),
            Instruction::IfThen { .. } => return self.if_then(previous),
            Instruction::Mrs { .. } | Instruction::Msr { .. } | Instruction::ChangeState { .. } => {
                self.special_register.cycles()
            }
            Instruction::DataBarrier => self.data_barrier.cycles(),
            Instruction::InstructionBarrier => self.instruction_barrier.cycles(),
            _ => self.data.cycles(),
        };
        own + self.to_pc(instruction) + self.waits_for_address(previous, instruction)
    }

    fn load(&self, instruction: &Instruction, next: Option<&Decoded>) -> Cycles {
        let written = instruction.operands().writes;
        let pipelined = next.is_some_and(|next| follows_load(&next.instruction, written));
        if pipelined && !written.contains(PC) {
            self.load_pipelined.cycles()
        } else {
            self.load.cycles()
        }
    }

    fn store(
        &self,
        address: Address,
        previous: Option<&Decoded>,
        next: Option<&Decoded>,
    ) -> Cycles {
        let own = match (address.index, address.offset) {
            (Index::Offset, Offset::Immediate(_)) => self.store.cycles(),
            (Index::Offset, Offset::Register { .. }) => {
                let idle = next.is_some_and(|next| next.instruction == Instruction::Nop);
                if idle { self.store.cycles() } else { self.store_register_offset.cycles() }
            }
            _ if previous.is_some_and(|before| is_load(&before.instruction)) => {
                self.store_indexed_after_load.cycles()
            }
            _ => self.store.cycles(),
        };
        let load_behind = next.is_some_and(|next| {
            is_load(&next.instruction)
                || matches!(next.instruction, Instruction::LoadMultiple { .. })
        });
        let same_base = address.index != Index::Offset
            && previous.is_some_and(|before| match before.instruction {
                Instruction::Store { address: other, .. } => {
                    other.index != Index::Offset && other.base == address.base
                }
                _ => false,
            });
        own + chosen(load_behind, self.store_before_load.cycles())
            + chosen(same_base, self.store_same_base.cycles())
    }

    fn multiple(&self, registers: u64) -> Cycles {
        self.multiple_base.cycles() + Cycles::both(registers)
    }

    fn if_then(&self, previous: Option<&Decoded>) -> Cycles {
        let folded = previous
            .is_some_and(|before| before.bytes == 2 && !goes_elsewhere(&before.instruction));
        if folded { self.if_then_folded.cycles() } else { self.if_then.cycles() }
    }

    fn to_pc(&self, instruction: &Instruction) -> Cycles {
        match instruction {
            Instruction::Load { .. } | Instruction::LoadLiteral { .. }
                if writes_pc(instruction) =>
            {
                self.branch_register.cycles() + self.load_to_pc.cycles()
            }
            Instruction::BranchExchange { .. }
            | Instruction::LoadMultiple { .. }
            | Instruction::Data { .. }
                if writes_pc(instruction) =>
            {
                self.branch_register.cycles()
            }
            _ => Cycles::default(),
        }
    }

    fn waits_for_address(&self, previous: Option<&Decoded>, instruction: &Instruction) -> Cycles {
        let waits = previous.is_some_and(|before| {
            is_data_processing(&before.instruction)
                && before.instruction.operands().writes.meets(instruction.operands().address)
        });
        chosen(waits, self.address_from_data_processing.cycles())
    }
}

fn chosen(condition: bool, cycles: Cycles) -> Cycles {
    if condition { cycles } else { Cycles::default() }
}

fn writes_pc(instruction: &Instruction) -> bool {
    instruction.operands().writes.contains(PC)
}

fn is_load(instruction: &Instruction) -> bool {
    matches!(
        instruction,
        Instruction::Load { .. }
            | Instruction::LoadLiteral { .. }
            | Instruction::LoadExclusive { .. }
    )
}

/// Whether an instruction pipelines behind a load that writes these registers.
fn follows_load(instruction: &Instruction, written: RegisterSet) -> bool {
    let kind = match instruction {
        Instruction::Load { address, .. } => address.index == Index::Offset,
        Instruction::Store { address, .. } => address.index == Index::Offset,
        Instruction::LoadLiteral { .. }
        | Instruction::LoadExclusive { .. }
        | Instruction::StoreExclusive { .. }
        | Instruction::Nop => true,
        _ => false,
    };
    kind && !instruction.operands().address.meets(written)
}

fn is_data_processing(instruction: &Instruction) -> bool {
    matches!(
        instruction,
        Instruction::Data { .. }
            | Instruction::Shift { .. }
            | Instruction::MovTop { .. }
            | Instruction::Adr { .. }
            | Instruction::Unary { .. }
            | Instruction::BitFieldInsert { .. }
            | Instruction::BitFieldClear { .. }
            | Instruction::BitFieldExtract { .. }
            | Instruction::Saturate { .. }
            | Instruction::Mul { .. }
            | Instruction::Mla { .. }
            | Instruction::Mls { .. }
            | Instruction::LongMul { .. }
            | Instruction::Div { .. }
    )
}

fn goes_elsewhere(instruction: &Instruction) -> bool {
    matches!(instruction, Instruction::Branch { .. } | Instruction::CompareBranch { .. })
        || writes_pc(instruction)
}
