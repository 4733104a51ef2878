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
/// Frames of one stack that are kept, 20 MB of them: a stack of 8 MiB where each call saves two words. What is called
/// beyond counts in the last of them.
pub const MOST_FRAMES: usize = 1 << 20;
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
    /// The first call that no frame was left for, until it returns.
    pub beyond: Option<Beyond>,
}

/// A call that is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond {
    return_to: u32,
    stack: u32,
}

impl Beyond {
    /// Whether a jump ends it: a return, or one that leaves its caller as well.
    fn ends(&self, to: u32, stack: u32) -> bool {
        stack > self.stack || (stack == self.stack && to == self.return_to)
    }
}

/// An interrupted thread or handler.
#[derive(Debug)]
struct Interrupted {
    calls: Calls,
    /// To what its interruption returns: stack pointer and address.
    stack: u32,
    at: u32,
}

/// The stacks of calls of all threads and handlers.
#[derive(Debug, Default)]
pub struct Shadow {
    /// What runs now.
    pub current: Calls,
    interrupted: Vec<Interrupted>,
    /// Threads that a scheduler has put aside, by their stack pointer.
    parked: HashMap<u32, Interrupted>,
    begun: u32,
    /// Whether calls were nested so deep that not all were followed.
    pub overflowed: bool,
}

impl Shadow {
    /// The node to which cycles belong.
    pub fn node(&self) -> NodeId {
        self.current.frames.last().map_or(ROOT, |frame| frame.node)
    }

    /// The frames that are on a stack below those of what runs now, from the first on.
    pub fn frames_below(&self, stack: usize) -> impl Iterator<Item = &Frame> {
        let others = self.interrupted.iter().map(|one| &one.calls);
        others.filter(move |calls| calls.stack == stack).flat_map(|calls| &calls.frames)
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
        if self.current.beyond.is_some() {
            return Moved::Within;
        }
        if self.current.frames.len() >= MOST_FRAMES {
            self.overflowed = true;
            self.current.beyond = Some(Beyond { return_to, stack });
            return Moved::Within;
        }
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
        if self.current.beyond.is_some_and(|beyond| !beyond.ends(to, stack)) {
            return Moved::Within;
        }
        self.current.beyond = None;
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

    /// What runs now is interrupted; the handler is to begin.
    pub fn interrupt(&mut self, at: u32, stack: u32) {
        let calls = std::mem::take(&mut self.current);
        self.interrupted.push(Interrupted { calls, stack, at });
    }

    /// An exception was left: to what it interrupted, or, where a scheduler has changed stacks, to another thread.
    /// The address at which that was interrupted; a handler may have made it go on elsewhere.
    pub fn resume(&mut self, core: &Core, functions: &mut Functions, tree: &mut Tree) -> u32 {
        let (stack, at) = (core.registers.get(SP), core.registers.pc());
        if let Some(interrupted) = self.interrupted.pop() {
            if interrupted.stack == stack {
                self.current = interrupted.calls;
                return interrupted.at;
            }
            self.parked.insert(interrupted.stack, interrupted);
        }
        match self.parked.remove(&stack) {
            // A thread that ended may have left its stack to another.
            Some(parked) if parked.at == at => self.current = parked.calls,
            _ => self.begin(at, stack, functions, tree),
        }
        at
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

    /// The node of a function that is called by the frame on top. Where there is none and none can be made, it is that
    /// of the nearest frame below that has called it before: so recursion stays within its beginning.
    fn place(&self, function: FunctionId, tree: &mut Tree) -> NodeId {
        let depth = self.current.frames.len().min(DEEPEST);
        let above = self.current.frames[..depth].iter().rev().map(|frame| frame.node);
        let found = above.into_iter().find_map(|parent| tree.child(parent, function));
        let node = found.unwrap_or_else(|| tree.beginning(function));
        tree.get_mut(node).calls += 1;
        node
    }

    /// The frame on top.
    pub fn top(&self) -> Option<&Frame> {
        self.current.frames.last()
    }
}

/// What an exception that was just entered has interrupted: address and stack pointer (DDI 0403E section B1.5.6).
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
    fn calls_beyond_the_last_frame_return_to_it() {
        let symbols = [symbol("main", 0x100), symbol("deep", 0x200), symbol("other", 0x300)];
        let mut functions = Functions::of_symbols(&symbols);
        let (mut shadow, mut tree) = (Shadow::default(), Tree::default());
        let top = 0x4000_0000;
        shadow.begin(0x100, top, &mut functions, &mut tree);
        let more = 1000;
        let calls = (MOST_FRAMES + more) as u32;
        for call in 1..=calls {
            let from = if call == 1 { 0x110 } else { 0x210 };
            shadow.call(0x200, from, top - 8 * call, &mut functions, &mut tree);
        }
        assert_eq!(shadow.current.frames.len(), MOST_FRAMES);
        // The innermost calls another by a jump: that is not followed either.
        assert_eq!(shadow.jump(0x300, top - 8 * calls, &mut functions, &mut tree), Moved::Within);
        for call in (1..=calls).rev() {
            let to = if call == 1 { 0x110 } else { 0x210 };
            let moved = shadow.jump(to, top - 8 * call, &mut functions, &mut tree);
            let followed = call < MOST_FRAMES as u32;
            assert_eq!(moved, if followed { Moved::Left(1) } else { Moved::Within }, "{call}");
        }
        assert!(shadow.overflowed);
        let names: Vec<_> = shadow.current.frames.iter().map(|frame| frame.function).collect();
        assert_eq!(names, [0]);
        assert_eq!(
            shadow.call(0x300, 0x110, top - 8, &mut functions, &mut tree),
            Moved::Entered(2)
        );
    }
}
