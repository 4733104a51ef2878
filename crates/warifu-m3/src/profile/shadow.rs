// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who called whom: a stack of frames beside the program's own, kept from its jumps alone.
//!
//! A call is BL or BLX. A return is a jump to where the frame on top returns to, with the stack where it was. Frames below
//! the stack pointer cannot be alive (longjmp). Any other jump to another function is a tail call.

use std::collections::HashMap;

use super::functions::{FunctionId, Functions};
use super::tree::{NodeId, ROOT, Tree};
use crate::core::Core;
use crate::isa::SP;

/// Deeper calls hang on the node at this depth: a run-away recursion must not make a tree of a million levels.
const DEEPEST: usize = 400;
/// No return address: they are even here.
const NOWHERE: u32 = 1;

/// A function that has not returned yet.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Which.
    pub function: FunctionId,
    /// Its place in the tree.
    pub node: NodeId,
    /// The stack pointer where it began.
    pub stack: u32,
    /// The lowest that it made it itself.
    pub lowest: u32,
    /// Where it returns to; odd where nobody called it.
    pub return_to: u32,
}

/// What became of the stack of calls by a jump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The jump stayed in its function.
    Within,
    /// A function was entered, by a call or by a tail call.
    Entered(FunctionId),
    /// So many frames were left.
    Left(usize),
}

/// Calls that follow one another on one stack: a thread's, or a handler's.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// From the first on.
    pub frames: Vec<Frame>,
    /// Its stack, by its number in [`super::stacks::Stacks`]; 0 is the main one.
    pub stack: usize,
    /// Tells it from the others.
    pub id: u32,
}

/// An interrupted thread or handler.
#[derive(Debug)]
struct Interrupted {
    calls: Calls,
    /// The stack pointer to which its interruption returns.
    stack: u32,
}

/// The stacks of calls of all threads and handlers.
#[derive(Debug, Default)]
pub struct Shadow {
    /// What runs now.
    pub current: Calls,
    interrupted: Vec<Interrupted>,
    /// Threads that a scheduler has put aside, by their stack pointer.
    parked: HashMap<u32, Calls>,
    begun: u32,
}

impl Shadow {
    /// The node to which cycles belong.
    pub fn node(&self) -> NodeId {
        self.current.frames.last().map_or(ROOT, |frame| frame.node)
    }

    /// All frames that are on a stack now, from the first on.
    pub fn frames_on(&self, stack: usize) -> Vec<Frame> {
        let all = self.interrupted.iter().map(|one| &one.calls).chain([&self.current]);
        all.filter(|calls| calls.stack == stack)
            .flat_map(|calls| calls.frames.iter().cloned())
            .collect()
    }

    /// Every frame that has not returned.
    pub fn alive(&self) -> impl Iterator<Item = &Frame> {
        let others = self.interrupted.iter().map(|one| &one.calls).chain(self.parked.values());
        others.chain([&self.current]).flat_map(|calls| calls.frames.iter())
    }

    /// A thread begins, or what runs at first.
    pub fn begin(&mut self, at: u32, stack: u32, functions: &mut Functions, tree: &mut Tree) {
        self.begun += 1;
        self.current = Calls { id: self.begun, ..Calls::default() };
        self.push(at, NOWHERE, stack, functions, tree);
    }

    /// A jump by a call.
    pub fn call(
        &mut self,
        to: u32,
        return_to: u32,
        stack: u32,
        functions: &mut Functions,
        tree: &mut Tree,
    ) -> Moved {
        Moved::Entered(self.push(to, return_to, stack, functions, tree))
    }

    /// Any other jump.
    pub fn jump(
        &mut self,
        to: u32,
        stack: u32,
        functions: &mut Functions,
        tree: &mut Tree,
    ) -> Moved {
        let before = self.current.frames.len();
        // What began below the stack pointer is left, however that came.
        while self.current.frames.len() > 1 && self.top().is_some_and(|top| top.stack < stack) {
            self.current.frames.pop();
        }
        let Some(top) = self.top().cloned() else { return Moved::Within };
        let left = |shadow: &Shadow| Moved::Left(before - shadow.current.frames.len());
        if before > 1 && top.return_to == to && stack >= top.stack {
            self.current.frames.pop();
            return left(self);
        }
        if functions.get(top.function).holds(to) {
            return if self.current.frames.len() == before { Moved::Within } else { left(self) };
        }
        if self.returns_beside(to, stack, functions) {
            self.current.frames.pop();
            return left(self);
        }
        self.current.frames.pop();
        let function = functions.at(to);
        let node = self.place(function, tree);
        self.current.frames.push(Frame { function, node, lowest: stack, ..top });
        Moved::Entered(function)
    }

    /// A function that returns to another place of its caller than behind the call, as some helpers of compilers do.
    fn returns_beside(&self, to: u32, stack: u32, functions: &Functions) -> bool {
        let [.., caller, top] = self.current.frames.as_slice() else { return false };
        let caller = functions.get(caller.function);
        stack >= top.stack && caller.holds(to) && caller.start != to
    }

    /// An exception was entered.
    pub fn interrupt(&mut self, core: &Core, functions: &mut Functions, tree: &mut Tree) {
        let stack = stack_before(core);
        let calls = std::mem::take(&mut self.current);
        self.interrupted.push(Interrupted { calls, stack });
        self.begin(core.registers.pc(), core.registers.get(SP), functions, tree);
    }

    /// An exception was left: to what it interrupted, or, where a scheduler has changed stacks, to another thread.
    pub fn resume(&mut self, core: &Core, functions: &mut Functions, tree: &mut Tree) {
        let stack = core.registers.get(SP);
        match self.interrupted.pop() {
            Some(interrupted) if interrupted.stack == stack => self.current = interrupted.calls,
            other => {
                if let Some(interrupted) = other {
                    self.parked.insert(interrupted.stack, interrupted.calls);
                }
                match self.parked.remove(&stack) {
                    Some(calls) => self.current = calls,
                    None => self.begin(core.registers.pc(), stack, functions, tree),
                }
            }
        }
    }

    fn push(
        &mut self,
        to: u32,
        return_to: u32,
        stack: u32,
        functions: &mut Functions,
        tree: &mut Tree,
    ) -> FunctionId {
        let function = functions.at(to);
        let node = self.place(function, tree);
        self.current.frames.push(Frame { function, node, stack, lowest: stack, return_to });
        function
    }

    /// The node of a function that is called by the frame on top.
    fn place(&self, function: FunctionId, tree: &mut Tree) -> NodeId {
        let depth = self.current.frames.len().min(DEEPEST);
        let parent = depth.checked_sub(1).map_or(ROOT, |index| self.current.frames[index].node);
        let node = tree.child(parent, function);
        tree.get_mut(node).calls += 1;
        node
    }

    /// The frame on top.
    pub fn top(&self) -> Option<&Frame> {
        self.current.frames.last()
    }
}

/// The stack pointer of what an exception that was just entered has interrupted (DDI 0403E section B1.5.6).
fn stack_before(core: &Core) -> u32 {
    let registers = &core.registers;
    let frame =
        if registers.r[14] & 4 != 0 { registers.process_stack() } else { registers.main_stack() };
    let status = core.memory.peek(frame.wrapping_add(28)).unwrap_or(0);
    frame.wrapping_add(32 + (status >> 9 & 1) * 4)
}
