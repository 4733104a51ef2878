// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How far down stacks grow.

use std::collections::HashMap;

use super::functions::FunctionId;
use super::shadow::Shadow;
use crate::core::Operation;
use crate::isa::{self, DataOp, Instruction, Operand, Reg, SP};
use crate::memory::Memory;

/// R4 to R11, EXC_RETURN and what else a scheduler may put beside them, bytes.
const MOST_SAVED: u32 = 64;

/// A stack at its deepest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deepest {
    /// The stack pointer where the stack began.
    pub top: u32,
    /// The lowest that it was.
    pub lowest: u32,
    /// The functions on it then, from the first on, each with its bytes; what an exception pushes is its victim's.
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
    /// By their numbers; the main stack first.
    all: Vec<Stack>,
    /// The numbers of process stacks by where they began: threads that follow one another on a stack have one.
    process: HashMap<u32, usize>,
    /// The most bytes that any was deep since the last mark.
    pub section: u32,
}

/// One stack.
#[derive(Debug)]
struct Stack {
    /// Where it begins now, and the lowest that it was since then.
    top: u32,
    lowest: u32,
    /// The same when it was deepest: start-up code may have put it elsewhere since.
    deepest: (u32, u32),
    /// The functions on it then, each with the stack pointer where it began.
    frames: Vec<(FunctionId, u32)>,
    /// Of `frames`, how many are below the calls `of` ([`super::shadow::Calls`]), and how many of these have not
    /// changed since: only the others are written anew when it grows deeper.
    below: usize,
    of: u32,
    kept: usize,
}

impl Stack {
    fn new(top: u32) -> Self {
        let deepest = (top, top);
        Stack { top, lowest: top, deepest, frames: Vec::new(), below: 0, of: 0, kept: 0 }
    }

    /// It begins elsewhere; how deep it was before stays known.
    fn place(&mut self, top: u32) {
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

    fn deepest(&self) -> Deepest {
        let (top, lowest) = self.deepest;
        // A thread that went over to this stack has its first functions on another.
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

    /// A process stack that begins here; its number.
    pub fn begin(&mut self, stack: u32) -> usize {
        let next = self.all.len();
        let number = *self.process.entry(stack).or_insert(next);
        if number == next {
            self.all.push(Stack::new(stack));
        }
        number
    }

    /// The stack pointer of what runs now moved.
    pub fn moved(&mut self, number: usize, stack: u32, shadow: &Shadow) {
        let Some(one) = self.all.get_mut(number) else { return };
        if stack > one.top {
            // Start-up code chose another place.
            one.place(stack);
        }
        one.lowest = one.lowest.min(stack);
        let bytes = one.top - stack;
        self.section = self.section.max(bytes);
        if bytes > one.deepest.0 - one.deepest.1 {
            one.deepest = (one.top, stack);
            one.write_frames(number, shadow);
        }
    }

    /// A handler stored registers down to an address: those of the thread whose process stack pointer this is, if they
    /// lie where the thread's next frames would.
    pub fn saved(&mut self, process_stack: u32, lowest: u32) {
        if !(1..=MOST_SAVED).contains(&process_stack.wrapping_sub(lowest)) {
            return;
        }
        let threads = self.all.iter_mut().skip(1).filter(|stack| stack.top >= process_stack);
        let Some(one) = threads.min_by_key(|stack| stack.top) else { return };
        one.lowest = one.lowest.min(lowest);
        if one.top - lowest > one.deepest.0 - one.deepest.1 {
            one.deepest = (one.top, lowest);
        }
    }

    /// The first function of a stack gave the stack pointer a value that was not made from its last by adding. Whether
    /// the stack begins there now: above its beginning, where nothing was on it yet, or anywhere else outside of what
    /// was on it unless `within` says that it may also be an array of variable length, or the end of one.
    pub fn placed(&mut self, number: usize, stack: u32, within: bool) -> bool {
        let Some(one) = self.all.get_mut(number) else { return false };
        let unused = one.lowest == one.top;
        let placed = stack > one.top || unused || (!within && stack < one.lowest);
        if placed {
            one.place(stack);
        }
        placed
    }

    /// Of the calls `of`, the first `intact` frames are what they were.
    pub fn left(&mut self, number: usize, of: u32, intact: usize) {
        if let Some(one) = self.all.get_mut(number).filter(|one| one.of == of) {
            one.kept = one.kept.min(intact);
        }
    }

    /// Whether an address is between a stack's beginning and the lowest that it was.
    pub fn holds(&self, number: usize, at: u32) -> bool {
        self.all.get(number).is_some_and(|one| (one.lowest..=one.top).contains(&at))
    }

    /// How deep a stack is where its pointer is this.
    pub fn depth(&self, number: usize, stack: u32) -> u32 {
        self.all.get(number).map_or(0, |one| one.top.saturating_sub(stack))
    }

    /// All of them at their deepest, by their numbers.
    pub fn deepest(&self) -> Vec<Deepest> {
        self.all.iter().map(Stack::deepest).collect()
    }
}

/// Whether an instruction gives the stack pointer a value that may have nothing to do with its last; if so, whether it
/// may be one of those that begin and end arrays of variable length.
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

/// Whether the instruction before an address gives a register a constant, as start-up code does.
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
