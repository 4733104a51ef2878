// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Straight pieces of code, decoded once: what an instruction costs depends on its neighbours, and most of that is known
//! before anything is executed.

use std::collections::HashMap;

use crate::core::{Operation, choose};
use crate::isa::{self, Condition, Decoded, Instruction, PC};
use crate::memory::Memory;
use crate::timing::{Cycles, Rules};

/// No block has more instructions; no rule reaches further back than one.
pub const LONGEST: usize = 256;
/// Slots of the table that is looked at first.
const SLOTS: usize = 1 << 15;

/// Instructions that are executed one after the other.
#[derive(Debug)]
pub struct Block {
    /// At least one.
    pub operations: Box<[Operation]>,
    /// Whether EPSR.IT changes within it.
    pub has_it: bool,
}

/// The blocks that were met so far.
#[derive(Debug)]
pub struct Blocks {
    slots: Box<[(u32, u32)]>,
    by_address: HashMap<u32, u32>,
    blocks: Vec<Block>,
}

impl Default for Blocks {
    fn default() -> Self {
        Blocks {
            slots: vec![(1, 0); SLOTS].into_boxed_slice(),
            by_address: HashMap::new(),
            blocks: Vec::new(),
        }
    }
}

impl Blocks {
    /// The block at an address, decoded if it is not there; `None` where no instruction can be.
    #[inline]
    pub fn find(&mut self, at: u32, memory: &mut Memory, rules: &Rules) -> Option<u32> {
        let (address, block) = self.slots[slot(at)];
        if address == at { Some(block) } else { self.find_slowly(at, memory, rules) }
    }

    /// A block by its number.
    #[inline]
    pub fn get(&self, block: u32) -> &Block {
        &self.blocks[block as usize]
    }

    #[cold]
    fn find_slowly(&mut self, at: u32, memory: &mut Memory, rules: &Rules) -> Option<u32> {
        let block = match self.by_address.get(&at) {
            Some(block) => *block,
            None => {
                let block = decode(at, 0, LONGEST, memory, rules)?;
                let last = block.operations.last()?;
                memory.note_decoded(at, last.next().wrapping_sub(at));
                self.blocks.push(block);
                let number = self.blocks.len() as u32 - 1;
                self.by_address.insert(at, number);
                number
            }
        };
        self.slots[slot(at)] = (at, block);
        Some(block)
    }

    /// Forgets every block, because code was changed.
    pub fn clear(&mut self) {
        // No block begins at an odd address.
        self.slots.fill((1, 0));
        self.by_address.clear();
        self.blocks.clear();
    }
}

fn slot(at: u32) -> usize {
    (at >> 1) as usize & (SLOTS - 1)
}

/// One instruction from memory.
pub fn fetch(at: u32, memory: &Memory, in_it_block: bool) -> Option<Decoded> {
    let first = memory.half(at)?;
    let second = if isa::is_wide(first) { memory.half(at.wrapping_add(2))? } else { 0 };
    Some(isa::decode(at, first, second, in_it_block))
}

/// Decodes from `start` to the first instruction that may go elsewhere, `it_state` being EPSR.IT before it.
pub fn decode(
    start: u32,
    it_state: u8,
    longest: usize,
    memory: &Memory,
    rules: &Rules,
) -> Option<Block> {
    let mut operations: Vec<Operation> = Vec::new();
    let (mut at, mut it_state) = (start, it_state);
    let mut before = Cycles::default();
    let mut previous: Option<Decoded> = None;
    let mut current = fetch(at, memory, it_state != 0)?;
    loop {
        let condition = if it_state == 0 { Condition::ALWAYS } else { Condition(it_state >> 4) };
        let (run, fields) = choose(&current.instruction, condition);
        let mut operation = Operation {
            instruction: current.instruction,
            address: at,
            bytes: current.bytes,
            condition,
            it_state,
            cycles: Cycles::default(),
            before,
            run,
            fields,
        };
        it_state = operation.it_after();
        at = operation.next();
        let next = fetch(at, memory, it_state != 0);
        operation.cycles = rules.cost(previous.as_ref(), &current, next.as_ref());
        before += operation.cycles;
        operations.push(operation);
        let full = operations.len() + 4 >= longest && it_state == 0;
        match next {
            Some(next) if !full && !ends(&current.instruction) => {
                previous = Some(current);
                current = next;
            }
            _ => break,
        }
        if longest == 1 {
            break;
        }
    }
    let has_it = operations.iter().any(|operation| operation.it_state != 0)
        || operations
            .last()
            .is_some_and(|last| matches!(last.instruction, Instruction::IfThen { .. }));
    Some(Block { operations: operations.into_boxed_slice(), has_it })
}

/// Whether what comes after an instruction may be elsewhere, or may have to wait for the processor.
fn ends(instruction: &Instruction) -> bool {
    match instruction {
        Instruction::Branch { .. }
        | Instruction::CompareBranch { .. }
        | Instruction::SupervisorCall { .. }
        | Instruction::Breakpoint { .. }
        | Instruction::WaitForEvent
        | Instruction::WaitForInterrupt
        | Instruction::DataBarrier
        | Instruction::InstructionBarrier
        | Instruction::ChangeState { .. }
        | Instruction::Msr { .. }
        | Instruction::Undefined
        | Instruction::Coprocessor => true,
        _ => instruction.operands().writes.contains(PC),
    }
}
