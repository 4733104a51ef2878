// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shadow call stacks, reconstructed from jumps alone.
//!
//! A call is BL or BLX. A return is a jump to the return address of the top frame with the same
//! stack pointer. Frames below the stack pointer are dead (longjmp). Any other jump to another
//! function is a tail call.

use std::collections::HashMap;

use super::functions::{FunctionId, Functions};
use super::stacks::{MAX_STACK_FRAMES, MAX_STACKS};
use super::tree::{NodeId, ROOT, Tree};
use crate::core::Core;
use crate::isa::SP;

/// Deeper calls become children of the node at this depth, which bounds the tree under recursion.
const MAX_DEPTH: usize = 400;
/// Frames of one call stack at most (20 MB): enough for a stack of 8 MiB with two words a call.
/// Deeper calls count in the last frame.
pub const MAX_FRAMES: usize = 1 << 20;
/// The return address of a function without a caller: odd, unlike real ones here.
const NO_CALLER: u32 = 1;

/// A function that has not returned yet.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The function.
    pub function: FunctionId,
    /// Its node in the call tree.
    pub node: NodeId,
    /// SP at its start.
    pub stack: u32,
    /// The lowest SP that it set itself.
    pub lowest: u32,
    /// Its return address; odd if it has no caller.
    pub return_to: u32,
}

/// The effect of a jump on the call stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// The jump stayed in its function.
    Within,
    /// A function was entered, by a call or by a tail call.
    Entered(FunctionId),
    /// This number of frames were left.
    Left(usize),
}

/// The call stack of a thread or a handler.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// The outermost first.
    pub frames: Vec<Frame>,
    /// Its stack, by its number in [`super::stacks::Stacks`]; 0 is the main one.
    pub stack: usize,
    /// A unique number.
    pub id: u32,
    /// The first call beyond [`MAX_FRAMES`], until it returns.
    pub untracked: Option<Untracked>,
}

/// A call without a frame here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untracked {
    return_to: u32,
    stack: u32,
}

impl Untracked {
    /// Whether a jump returns from it, or from its caller as well.
    fn ends(&self, to: u32, stack: u32) -> bool {
        stack > self.stack || (stack == self.stack && to == self.return_to)
    }
}

/// An interrupted thread or handler.
#[derive(Debug)]
struct Interrupted {
    calls: Calls,
    /// SP and address at which it resumes.
    stack: u32,
    at: u32,
}

/// The call stacks of all threads and handlers.
#[derive(Debug, Default)]
pub struct Shadow {
    /// The running one.
    pub current: Calls,
    interrupted: Vec<Interrupted>,
    /// Threads that a scheduler switched out, by their stack pointer.
    parked: HashMap<u32, Interrupted>,
    /// Their frames.
    parked_frames: usize,
    begun: u32,
    /// Whether calls were nested deeper than [`MAX_FRAMES`].
    pub overflowed: bool,
    /// Whether there were more threads than [`MAX_STACKS`], or than [`MAX_STACK_FRAMES`] calls in
    /// them.
    pub threads_overflowed: bool,
}

impl Shadow {
    /// The node of the running function.
    pub fn node(&self) -> NodeId {
        self.current.frames.last().map_or(ROOT, |frame| frame.node)
    }

    /// The frames on a stack below those of the running call stack, the outermost first.
    pub fn frames_below(&self, stack: usize) -> impl Iterator<Item = &Frame> {
        let others = self.interrupted.iter().map(|one| &one.calls);
        others.filter(move |calls| calls.stack == stack).flat_map(|calls| &calls.frames)
    }

    /// A new call stack begins: of a thread, a handler, or the reset handler.
    pub fn begin(&mut self, at: u32, stack: u32, functions: &mut Functions, tree: &mut Tree) {
        self.begun += 1;
        self.current = Calls { id: self.begun, ..Calls::default() };
        self.push(at, NO_CALLER, stack, functions, tree);
    }

    /// A jump by a call.
    pub fn call(
        &mut self,
        to: u32,
        return_to: u32,
        stack: u32,
        functions: &mut Functions,
        tree: &mut Tree,
    ) -> Transition {
        if self.current.untracked.is_some() {
            return Transition::Within;
        }
        if self.current.frames.len() >= MAX_FRAMES {
            self.overflowed = true;
            self.current.untracked = Some(Untracked { return_to, stack });
            return Transition::Within;
        }
        Transition::Entered(self.push(to, return_to, stack, functions, tree))
    }

    /// Any other jump.
    pub fn jump(
        &mut self,
        to: u32,
        stack: u32,
        functions: &mut Functions,
        tree: &mut Tree,
    ) -> Transition {
        if self.current.untracked.is_some_and(|untracked| !untracked.ends(to, stack)) {
            return Transition::Within;
        }
        self.current.untracked = None;
        let before = self.current.frames.len();
        // Frames below the stack pointer are dead.
        while self.current.frames.len() > 1 && self.top().is_some_and(|top| top.stack < stack) {
            self.current.frames.pop();
        }
        let Some(top) = self.top().cloned() else { return Transition::Within };
        let left = |shadow: &Shadow| Transition::Left(before - shadow.current.frames.len());
        if before > 1 && top.return_to == to && stack >= top.stack {
            self.current.frames.pop();
            return left(self);
        }
        if functions.get(top.function).holds(to) {
            return if self.current.frames.len() == before {
                Transition::Within
            } else {
                left(self)
            };
        }
        if self.returns_beside(to, stack, functions) {
            self.current.frames.pop();
            return left(self);
        }
        self.current.frames.pop();
        let function = functions.at(to);
        let node = self.place(function, tree);
        self.current.frames.push(Frame { function, node, lowest: stack, ..top });
        Transition::Entered(function)
    }

    /// Whether a function returns to its caller at another address than after the call, as some
    /// compiler helpers do.
    fn returns_beside(&self, to: u32, stack: u32, functions: &Functions) -> bool {
        let [.., caller, top] = self.current.frames.as_slice() else { return false };
        let caller = functions.get(caller.function);
        stack >= top.stack && caller.holds(to) && caller.start != to
    }

    /// The running call stack is interrupted; the handler's follows.
    pub fn interrupt(&mut self, at: u32, stack: u32) {
        let calls = std::mem::take(&mut self.current);
        self.interrupted.push(Interrupted { calls, stack, at });
    }

    /// Exception return: to the interrupted call stack or, if a scheduler switched stacks, to
    /// another thread. Returns the address of the interruption; a handler may have changed the
    /// return address.
    pub fn resume(&mut self, core: &Core, functions: &mut Functions, tree: &mut Tree) -> u32 {
        let (stack, at) = (core.registers.get(SP), core.registers.pc());
        if let Some(interrupted) = self.interrupted.pop() {
            if interrupted.stack == stack {
                self.current = interrupted.calls;
                return interrupted.at;
            }
            self.park(interrupted);
        }
        match self.unpark(stack) {
            // A new thread may reuse the stack of one that ended.
            Some(parked) if parked.at == at => self.current = parked.calls,
            _ => self.begin(at, stack, functions, tree),
        }
        at
    }

    /// A thread is switched out. One that has no place begins anew when it goes on.
    fn park(&mut self, thread: Interrupted) {
        self.unpark(thread.stack);
        let frames = self.parked_frames + thread.calls.frames.len();
        if self.parked.len() >= MAX_STACKS || frames > MAX_STACK_FRAMES {
            self.threads_overflowed = true;
            return;
        }
        self.parked_frames = frames;
        self.parked.insert(thread.stack, thread);
    }

    fn unpark(&mut self, stack: u32) -> Option<Interrupted> {
        let thread = self.parked.remove(&stack)?;
        self.parked_frames -= thread.calls.frames.len();
        Some(thread)
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

    /// The node of a function called by the top frame. If there are too many nodes, that of the
    /// nearest outer frame that called it before, so that recursion stays within known paths.
    fn place(&self, function: FunctionId, tree: &mut Tree) -> NodeId {
        let depth = self.current.frames.len().min(MAX_DEPTH);
        let above = self.current.frames[..depth].iter().rev().map(|frame| frame.node);
        let found = above.into_iter().find_map(|parent| tree.child(parent, function));
        let node = found.unwrap_or_else(|| tree.outermost(function));
        tree.get_mut(node).calls += 1;
        node
    }

    /// The top frame.
    pub fn top(&self) -> Option<&Frame> {
        self.current.frames.last()
    }
}

/// Address and SP at which the exception just entered interrupted (DDI 0403E section B1.5.6).
pub fn interrupted(core: &Core) -> (u32, u32) {
    let registers = &core.registers;
    let frame =
        if registers.r[14] & 4 != 0 { registers.process_stack() } else { registers.main_stack() };
    let word = |offset| core.memory.peek(frame.wrapping_add(offset)).unwrap_or(0);
    (word(24) & !1, frame.wrapping_add(32 + (word(28) >> 9 & 1) * 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Symbol;

    fn symbol(name: &str, address: u32) -> Symbol {
        Symbol { name: name.to_owned(), address, bytes: 0x100, is_function: true }
    }

    #[test]
    fn calls_beyond_max_frames_return_to_last_frame() {
        let symbols = [symbol("main", 0x100), symbol("deep", 0x200), symbol("other", 0x300)];
        let mut functions = Functions::of_routines(&symbols);
        let (mut shadow, mut tree) = (Shadow::default(), Tree::default());
        let top = 0x4000_0000;
        shadow.begin(0x100, top, &mut functions, &mut tree);
        let more = 1000;
        let calls = (MAX_FRAMES + more) as u32;
        for call in 1..=calls {
            let from = if call == 1 { 0x110 } else { 0x210 };
            shadow.call(0x200, from, top - 8 * call, &mut functions, &mut tree);
        }
        assert_eq!(shadow.current.frames.len(), MAX_FRAMES);
        // A tail call of the innermost function is not tracked either.
        assert_eq!(
            shadow.jump(0x300, top - 8 * calls, &mut functions, &mut tree),
            Transition::Within
        );
        for call in (1..=calls).rev() {
            let to = if call == 1 { 0x110 } else { 0x210 };
            let moved = shadow.jump(to, top - 8 * call, &mut functions, &mut tree);
            let followed = call < MAX_FRAMES as u32;
            assert_eq!(
                moved,
                if followed { Transition::Left(1) } else { Transition::Within },
                "{call}"
            );
        }
        assert!(shadow.overflowed);
        let names: Vec<_> = shadow.current.frames.iter().map(|frame| frame.function).collect();
        assert_eq!(names, [0]);
        assert_eq!(
            shadow.call(0x300, 0x110, top - 8, &mut functions, &mut tree),
            Transition::Entered(2)
        );
    }
}
