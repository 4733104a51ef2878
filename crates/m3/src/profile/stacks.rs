// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stack depth.

use std::collections::HashMap;

use super::functions::FunctionId;
use super::shadow::Shadow;
use crate::core::Operation;
use crate::isa::{self, DataOp, Instruction, Operand, Reg, SP};
use crate::memory::Memory;

/// Bytes that a scheduler saves for a thread at most: R4 to R11, EXC_RETURN and some more.
const MAX_SAVED: u32 = 64;

/// Stacks at most. An operating system has a thread for some kilobytes of RAM; whoever sets the
/// process stack pointer anew each time has one for each word.
pub const MAX_STACKS: usize = 1 << 16;
/// Functions at most that all stacks have together at their deepest (32 MB).
pub const MAX_STACK_FRAMES: usize = 1 << 22;

/// A stack at its deepest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deepest {
    /// SP at the start of the stack.
    pub top: u32,
    /// The lowest SP.
    pub lowest: u32,
    /// The functions on it, the outermost first, each with its bytes. An exception's frame counts
    /// as the interrupted function's.
    pub frames: Vec<(FunctionId, u32)>,
}

impl Deepest {
    /// Its bytes.
    pub fn bytes(&self) -> u32 {
        self.top.saturating_sub(self.lowest)
    }
}

/// The main stack, and the process stack of each thread.
#[derive(Debug, Default)]
pub struct Stacks {
    /// By number; the main stack first.
    all: Vec<Stack>,
    /// Numbers of process stacks by their top: threads that reuse a stack share its number.
    process: HashMap<u32, usize>,
    /// The deepest of all stacks since the last mark, bytes.
    pub section: u32,
    /// Whether there were more stacks than [`MAX_STACKS`].
    pub overflowed: bool,
    /// Whether there were more functions on them than [`MAX_STACK_FRAMES`].
    pub frames_overflowed: bool,
    /// The functions on all stacks.
    frames: usize,
}

/// One stack.
#[derive(Debug)]
struct Stack {
    /// Its start, and the lowest SP since then.
    top: u32,
    lowest: u32,
    /// The same when it was deepest: start-up code may have moved it since.
    deepest: (u32, u32),
    /// The functions on it when it was deepest, each with SP at its start.
    frames: Vec<(FunctionId, u32)>,
    /// The first `below` of `frames` lie below the call stack `of` ([`super::shadow::Calls::id`]);
    /// `kept` frames of that call stack are unchanged, and only later ones are written again.
    below: usize,
    of: u32,
    kept: usize,
}

impl Stack {
    fn new(top: u32) -> Self {
        let deepest = (top, top);
        Stack { top, lowest: top, deepest, frames: Vec::new(), below: 0, of: 0, kept: 0 }
    }

    /// Moves its start; the greatest depth so far is kept.
    fn rebase(&mut self, top: u32) {
        (self.top, self.lowest) = (top, top);
        self.kept = 0;
        if self.deepest.0 == self.deepest.1 {
            self.deepest = (top, top);
        }
    }

    fn write_frames(&mut self, number: usize, shadow: &Shadow) {
        let calls = &shadow.current;
        if self.of != calls.id {
            self.frames.clear();
            let below = shadow.frames_below(number).map(|frame| (frame.function, frame.stack));
            self.frames.extend(below);
            (self.of, self.below, self.kept) = (calls.id, self.frames.len(), 0);
        }
        self.frames.truncate(self.below + self.kept);
        let fresh = calls.frames[self.kept..].iter().map(|frame| (frame.function, frame.stack));
        self.frames.extend(fresh);
        self.kept = calls.frames.len();
    }

    fn forget_frames(&mut self) {
        self.frames = Vec::new();
        (self.below, self.of, self.kept) = (0, u32::MAX, 0);
    }

    fn deepest(&self) -> Deepest {
        let (top, lowest) = self.deepest;
        // The outer functions of a thread that switched to this stack are on another one.
        let first = self.frames.iter().position(|(_, began)| (lowest..=top).contains(began));
        let (elsewhere, here) = self.frames.split_at(first.unwrap_or(self.frames.len()));
        let went_over = elsewhere.last().map(|(function, _)| (*function, top));
        let frames: Vec<_> = went_over.into_iter().chain(here.iter().copied()).collect();
        let ends = frames.iter().skip(1).map(|(_, began)| *began).chain([lowest]);
        let frames = frames.iter().zip(ends);
        let frames =
            frames.map(|((function, began), end)| (*function, began.saturating_sub(end))).collect();
        Deepest { top, lowest, frames }
    }
}

impl Stacks {
    /// The main stack begins here.
    pub fn begin_main(&mut self, stack: u32) {
        self.all = vec![Stack::new(stack)];
    }

    /// The number of the process stack that begins here; that of none if there are too many.
    pub fn begin(&mut self, stack: u32) -> usize {
        let next = self.all.len();
        if next >= MAX_STACKS && !self.process.contains_key(&stack) {
            self.overflowed = true;
            return MAX_STACKS;
        }
        let number = *self.process.entry(stack).or_insert(next);
        if number == next {
            self.all.push(Stack::new(stack));
        }
        number
    }

    /// The stack pointer of the running code changed.
    pub fn moved(&mut self, number: usize, stack: u32, shadow: &Shadow) {
        let Some(one) = self.all.get_mut(number) else { return };
        if stack > one.top {
            // Start-up code moved the stack.
            one.rebase(stack);
        }
        one.lowest = one.lowest.min(stack);
        let bytes = one.top - stack;
        self.section = self.section.max(bytes);
        if bytes > one.deepest.0 - one.deepest.1 {
            one.deepest = (one.top, stack);
            self.frames -= one.frames.len();
            if !self.frames_overflowed {
                one.write_frames(number, shadow);
            }
            if self.frames_overflowed || self.frames + one.frames.len() > MAX_STACK_FRAMES {
                self.frames_overflowed = true;
                one.forget_frames();
            }
            self.frames += one.frames.len();
        }
    }

    /// A handler stored registers down to an address. They count for the thread with this process
    /// stack pointer if they lie directly below it.
    pub fn saved(&mut self, process_stack: u32, lowest: u32) {
        if !(1..=MAX_SAVED).contains(&process_stack.wrapping_sub(lowest)) {
            return;
        }
        let threads = self.all.iter_mut().skip(1).filter(|stack| stack.top >= process_stack);
        let Some(one) = threads.min_by_key(|stack| stack.top) else { return };
        one.lowest = one.lowest.min(lowest);
        if one.top - lowest > one.deepest.0 - one.deepest.1 {
            one.deepest = (one.top, lowest);
        }
    }

    /// The outermost function of a stack assigned the stack pointer. Returns whether this moves the
    /// start of the stack: if the new value is above the old start, if the stack was empty, or if
    /// the value is below all that was used. The last does not apply if `within` says that the
    /// assignment may allocate or release a variable-length array.
    pub fn assigned(&mut self, number: usize, stack: u32, within: bool) -> bool {
        let Some(one) = self.all.get_mut(number) else { return false };
        let unused = one.lowest == one.top;
        let moves = stack > one.top || unused || (!within && stack < one.lowest);
        if moves {
            one.rebase(stack);
        }
        moves
    }

    /// Frames of the call stack `of` were left or replaced; the first `intact` are unchanged.
    pub fn left(&mut self, number: usize, of: u32, intact: usize) {
        if let Some(one) = self.all.get_mut(number).filter(|one| one.of == of) {
            one.kept = one.kept.min(intact);
        }
    }

    /// Whether an address lies in the used part of a stack.
    pub fn holds(&self, number: usize, at: u32) -> bool {
        self.all.get(number).is_some_and(|one| (one.lowest..=one.top).contains(&at))
    }

    /// The depth of a stack at a stack pointer, bytes.
    pub fn depth(&self, number: usize, stack: u32) -> u32 {
        self.all.get(number).map_or(0, |one| one.top.saturating_sub(stack))
    }

    /// All stacks at their deepest, by number.
    pub fn deepest(&self) -> Vec<Deepest> {
        self.all.iter().map(Stack::deepest).collect()
    }
}

/// `Some` if an instruction assigns SP a value unrelated to the old one; true if it may allocate or
/// release a variable-length array.
pub fn sets_stack(operation: &Operation, memory: &Memory) -> Option<bool> {
    match operation.instruction {
        Instruction::Data { op: DataOp::Mov, rd: SP, operand, .. } => Some(match operand {
            Operand::Register { rm, .. } => !is_constant(rm, operation.address, memory),
            Operand::Immediate { .. } => false,
        }),
        Instruction::Msr { .. }
        | Instruction::Load { rt: SP, .. }
        | Instruction::LoadLiteral { rt: SP, .. } => Some(false),
        _ => None,
    }
}

/// Whether the instruction before an address sets a register to a constant, as start-up code does.
fn is_constant(register: Reg, address: u32, memory: &Memory) -> bool {
    [2, 4].into_iter().any(|bytes| {
        let at = address.wrapping_sub(bytes);
        let (Some(first), Some(second)) = (memory.half(at), memory.half(at.wrapping_add(2))) else {
            return false;
        };
        let before = isa::decode(at, first, second, false);
        u32::from(before.bytes) == bytes
            && match before.instruction {
                Instruction::LoadLiteral { rt, .. } => rt == register,
                Instruction::MovTop { rd, .. }
                | Instruction::Data {
                    op: DataOp::Mov,
                    rd,
                    operand: Operand::Immediate { .. },
                    ..
                } => rd == register,
                _ => false,
            }
    })
}
