// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which memory an instruction loads or stores: always one range.

use crate::core::{Core, Operation};
use crate::isa::{Condition, Instruction, PC, Reg};
use crate::memory::Space;

/// What an instruction loads or stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Its first byte.
    pub address: u32,
    /// How many bytes.
    pub bytes: u32,
    /// Whether it stores.
    pub is_store: bool,
}

impl Access {
    /// The access that an instruction is about to make, before it is executed; none if its
    /// condition fails.
    pub fn before(core: &Core, operation: &Operation) -> Option<Access> {
        if !is_executed(core, operation.condition) {
            return None;
        }
        let load = |address, bytes| Some(Access { address, bytes, is_store: false });
        let store = |address, bytes| Some(Access { address, bytes, is_store: true });
        match operation.instruction {
            Instruction::Load { width, address, .. } => {
                load(core.effective_address(address).0, width.bytes())
            }
            Instruction::Store { width, address, .. } => {
                store(core.effective_address(address).0, width.bytes())
            }
            Instruction::LoadLiteral { width, address, .. } => load(address, width.bytes()),
            Instruction::LoadDual { address, .. } => load(core.effective_address(address).0, 8),
            Instruction::StoreDual { address, .. } => store(core.effective_address(address).0, 8),
            Instruction::LoadDualLiteral { address, .. } => load(address, 8),
            Instruction::LoadMultiple { rn, list, before, .. } => {
                load(lowest(core, rn, list, before), 4 * list.count_ones())
            }
            Instruction::StoreMultiple { rn, list, before, .. } => {
                store(lowest(core, rn, list, before), 4 * list.count_ones())
            }
            Instruction::LoadExclusive { width, rn, offset, .. } => {
                load(core.registers.get(rn).wrapping_add(u32::from(offset)), width.bytes())
            }
            Instruction::StoreExclusive { width, rn, offset, .. } => {
                store(core.registers.get(rn).wrapping_add(u32::from(offset)), width.bytes())
            }
            Instruction::TableBranch { half, rn, rm } => {
                let table = match rn {
                    PC => operation.address.wrapping_add(4),
                    _ => core.registers.get(rn),
                };
                let offset = core.registers.get(rm) << u32::from(half);
                load(table.wrapping_add(offset), 1 + u32::from(half))
            }
            _ => None,
        }
    }

    /// Whether it was made, after the instruction: an exclusive store may be refused.
    pub fn was_made(&self, core: &Core, operation: &Operation) -> bool {
        match operation.instruction {
            Instruction::StoreExclusive { rd, .. } => core.registers.get(rd) == 0,
            _ => true,
        }
    }

    /// The bytes behind it: those of a bit-band alias are elsewhere.
    pub fn behind_alias(self, core: &Core) -> Access {
        match core.memory.space(self.address) {
            Space::BitBand { byte, .. } => Access { address: byte, bytes: 1, ..self },
            _ => self,
        }
    }
}

/// Whether an instruction under a condition is executed.
pub fn is_executed(core: &Core, condition: Condition) -> bool {
    !condition.is_conditional() || core.registers.flags.satisfy(condition)
}

/// The lowest address of a register block; `before` means descending.
fn lowest(core: &Core, rn: Reg, list: u16, before: bool) -> u32 {
    let base = core.registers.get(rn);
    if before { base.wrapping_sub(4 * list.count_ones()) } else { base }
}
