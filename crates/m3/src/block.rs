// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Basic blocks, decoded once: the cost of an instruction depends on its neighbours and is mostly
//! known before execution.

use std::collections::HashMap;

use crate::core::Operation;
use crate::isa::{self, Decoded, Instruction, PC};
use crate::memory::Memory;
use crate::timing::{Cycles, Rules};

/// The length at which a block is cut.
const MAX_INSTRUCTIONS: usize = 256;
/// Slots of the direct-mapped table in front of the hash map.
const SLOTS: usize = 1 << 15;
/// The key of an empty slot: nothing can be executed at the end of the address space.
const NOWHERE: u32 = u32::MAX;

/// Instructions that are executed in sequence.
#[derive(Debug)]
pub struct Block {
    /// At least one.
    pub operations: Box<[Operation]>,
    /// Whether EPSR.IT changes within it.
    pub has_it: bool,
    /// The last instruction, if the block was cut behind it for its length alone: the cost of the
    /// next one depends on it.
    pub cut_after: Option<Decoded>,
}

impl Block {
    /// An upper bound on its cycles for any operands; `max_wait` is that of an access.
    pub fn max_cycles(&self, max_wait: u64) -> u64 {
        // A division takes 12 cycles and an unaligned access adds 2; LDM and STM make 16 accesses
        // at most, and an instruction may be in two lines.
        let max_each = 16 + 18 * max_wait;
        let known = self.operations.last().map_or(0, |last| last.cycles_through().high);
        known + self.operations.len() as u64 * max_each
    }
}

/// Cache of decoded blocks.
#[derive(Debug)]
pub struct Blocks {
    slots: Box<[(u32, u32)]>,
    by_key: HashMap<u32, u32>,
    blocks: Vec<Block>,
}

impl Default for Blocks {
    fn default() -> Self {
        Blocks {
            slots: vec![(NOWHERE, 0); SLOTS].into_boxed_slice(),
            by_key: HashMap::new(),
            blocks: Vec::new(),
        }
    }
}

impl Blocks {
    /// The block at an address, decoded if it is new; `None` where there is no memory. `cut` is the
    /// number of the block just executed, if that was cut there ([`Block::cut_after`]): its
    /// continuation differs from the block that a branch to the same address enters.
    #[inline]
    pub fn find(
        &mut self,
        at: u32,
        cut: Option<u32>,
        memory: &mut Memory,
        rules: &Rules,
    ) -> Option<u32> {
        // Instructions are at even addresses.
        let key = at | u32::from(cut.is_some());
        let (found, block) = self.slots[slot(key)];
        if found == key { Some(block) } else { self.find_or_decode(key, cut, memory, rules) }
    }

    /// A block by its number.
    #[inline]
    pub fn get(&self, block: u32) -> &Block {
        &self.blocks[block as usize]
    }

    #[cold]
    fn find_or_decode(
        &mut self,
        key: u32,
        cut: Option<u32>,
        memory: &mut Memory,
        rules: &Rules,
    ) -> Option<u32> {
        let block = match self.by_key.get(&key) {
            Some(block) => *block,
            None => {
                let at = key & !1;
                let previous = cut.and_then(|cut| self.blocks[cut as usize].cut_after);
                let block = decode(at, previous, 0, MAX_INSTRUCTIONS, memory, rules)?;
                let last = block.operations.last()?;
                memory.note_decoded(at, last.next().wrapping_sub(at));
                self.blocks.push(block);
                let number = self.blocks.len() as u32 - 1;
                self.by_key.insert(key, number);
                number
            }
        };
        self.slots[slot(key)] = (key, block);
        Some(block)
    }

    /// Empties the cache, because code was changed.
    pub fn clear(&mut self) {
        self.slots.fill((NOWHERE, 0));
        self.by_key.clear();
        self.blocks.clear();
    }
}

fn slot(key: u32) -> usize {
    (key >> 1) as usize & (SLOTS - 1)
}

/// One instruction from memory.
pub fn fetch(at: u32, memory: &Memory, in_it_block: bool) -> Option<Decoded> {
    let first = memory.half(at)?;
    let second = if isa::is_wide(first) { memory.half(at.wrapping_add(2))? } else { 0 };
    Some(isa::decode(at, first, second, in_it_block))
}

/// Decodes from `start` to the first instruction that may branch; `previous` is the instruction
/// executed before it if the processor did not jump there, `it_state` is EPSR.IT before it.
pub fn decode(
    start: u32,
    previous: Option<Decoded>,
    it_state: u8,
    max_instructions: usize,
    memory: &Memory,
    rules: &Rules,
) -> Option<Block> {
    let mut operations: Vec<Operation> = Vec::new();
    let (mut at, mut it_state) = (start, it_state);
    let mut before = Cycles::default();
    let mut previous = previous;
    let mut cut_after = None;
    let mut current = fetch(at, memory, it_state != 0)?;
    loop {
        let mut operation = Operation::new(&current, at, it_state);
        operation.cycles_before = before;
        it_state = operation.it_after();
        at = operation.next();
        let next = fetch(at, memory, it_state != 0);
        operation.cycles = rules.cost(previous.as_ref(), &current, next.as_ref());
        operation.fetch_wait = fetch_wait(&operation, previous.is_none(), memory);
        operation.cycles += Cycles::both(u64::from(operation.fetch_wait));
        before += operation.cycles;
        operations.push(operation);
        let full = operations.len() + 4 >= max_instructions && it_state == 0;
        match next {
            Some(next) if !full && !ends_block(&current.instruction) => {
                previous = Some(current);
                current = next;
            }
            _ => {
                cut_after = Some(current).filter(|current| !ends_block(&current.instruction));
                break;
            }
        }
        if max_instructions == 1 {
            break;
        }
    }
    let has_it = operations.iter().any(|operation| operation.it_state != 0)
        || operations
            .last()
            .is_some_and(|last| matches!(last.instruction, Instruction::IfThen { .. }));
    Some(Block { operations: operations.into_boxed_slice(), has_it, cut_after })
}

/// Wait states of the code words that an instruction is the first to need: in straight-line code
/// each word is fetched once, and nothing is prefetched. Memories that are read by lines have none
/// ([`Memory::fetch`]). No board has confirmed either, which is why these figures are assumed.
fn fetch_wait(operation: &Operation, first: bool, memory: &Memory) -> u32 {
    if !memory.has_wait_states() {
        return 0;
    }
    let begun = if first { operation.address } else { operation.address.wrapping_add(3) };
    let words = (operation.next().wrapping_add(3) >> 2).wrapping_sub(begun >> 2);
    let wait = u32::try_from(memory.word_wait_states(operation.address)).unwrap_or(u32::MAX);
    words.saturating_mul(wait)
}

/// Whether an instruction may branch, or may need attention before the next one.
fn ends_block(instruction: &Instruction) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Region;

    fn memory(wait_states: u64) -> Memory {
        let name = "flash".into();
        let region = Region { name, base: 0, bytes: 64, writable: false, wait_states, lines: None };
        let mut memory = Memory::new(&[region]).expect("one region");
        // movs r0, #0; add.w r1, r1, #1; movs r0, #0; movs r0, #0; bx lr
        let code: [u16; 6] = [0x2000, 0xf101, 0x0101, 0x2000, 0x2000, 0x4770];
        for (index, half) in code.into_iter().enumerate() {
            assert!(memory.program(2 * index as u32, &half.to_le_bytes()));
        }
        memory
    }

    fn cycles(start: u32, wait_states: u64) -> u64 {
        let rules = Rules::cortex_m3().expect("rules");
        let block =
            decode(start, None, 0, MAX_INSTRUCTIONS, &memory(wait_states), &rules).expect("code");
        block.operations.last().map_or(0, |last| last.cycles_through().high)
    }

    #[test]
    fn fetch_wait_states_count_once_for_each_word() {
        let without = cycles(0, 0);
        assert_eq!(cycles(0, 3), without + 3 * 3, "three words from the start");
        let without = cycles(6, 0);
        assert_eq!(cycles(6, 3), without + 2 * 3, "two words from the middle of the second");
    }
}
