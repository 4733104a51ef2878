// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a program's cycles go, how deep its stacks are, and how much of the heap it takes.
//!
//! [`Profiler`] looks on while a program runs; [`Profiler::report`] tells what it saw.

pub mod functions;
mod heap;
mod places;
pub mod report;
mod shadow;
mod stacks;
pub mod tree;

pub use heap::Heap;
pub use report::Report;
pub use shadow::MOST_FRAMES;
pub use stacks::Deepest;
pub use tree::MOST_NODES;

use crate::core::{Core, Operation};
use crate::isa::{Instruction, SP};
use crate::machine::{Machine, Observer};
use crate::ports::Mark;
use crate::program::Program;
use crate::timing::Cycles;
use functions::Functions;
use heap::HeapWatch;
use places::Places;
use shadow::{Moved, Shadow, interrupted};
use stacks::Stacks;
use tree::Tree;

/// What was seen between a mark and the next, or the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The mark at which it begins.
    pub mark: Mark,
    /// Instructions before it.
    pub instructions: u64,
    /// The deepest that the stack was in it, bytes.
    pub stack: u32,
    /// The most bytes that were allocated at one time in it.
    pub heap: u64,
}

/// Looks on and counts.
#[derive(Debug)]
pub struct Profiler {
    places: Places,
    functions: Functions,
    tree: Tree,
    shadow: Shadow,
    stacks: Stacks,
    heap: HeapWatch,
    sections: Vec<Section>,
    /// Cycles that the processor slept.
    asleep: Cycles,
    instructions: u64,
    /// The bytes of stack that each function took by itself at most, by its number.
    own_stack: Vec<u32>,
    now: Now,
}

/// Where the program is.
#[derive(Debug, Default)]
struct Now {
    /// The address of the next instruction unless there is a jump; `None` before the first one.
    expected: Option<u32>,
    /// What was executed last was a call.
    called: bool,
    /// What was executed last waits for an interrupt.
    waits: bool,
    /// A handler ended, and another goes on in its place without what it interrupted being resumed.
    chained: bool,
    /// When the present instruction began.
    start: Cycles,
    /// When the last one ended.
    end: Cycles,
    stack: u32,
    /// What the function on top has done since it became that.
    instructions: u64,
    cycles: Cycles,
    /// The function on top: its start and length, where it returns to, and the stack pointer where it began.
    function: (u32, u32),
    return_to: u32,
    began_at: u32,
}

impl Now {
    /// Looks at the frame on top.
    fn look(&mut self, shadow: &Shadow, functions: &Functions) {
        let Some(top) = shadow.top() else { return };
        let function = functions.get(top.function);
        // Of calls that are not followed no jump is known to stay in its function.
        self.function = match shadow.current.beyond {
            Some(_) => (0, 0),
            None => (function.start, function.end.wrapping_sub(function.start)),
        };
        (self.return_to, self.began_at) = (top.return_to, top.stack);
    }

    /// Whether a jump stays in its function, as nearly all do: neither a call nor a return.
    #[inline]
    fn stays(&self, to: u32, stack: u32) -> bool {
        let (start, length) = self.function;
        !self.called
            && to.wrapping_sub(start) < length
            && to != self.return_to
            && stack <= self.began_at
    }
}

impl Profiler {
    /// A profiler for a program that is loaded and has not run yet.
    pub fn new(program: &Program, machine: &Machine) -> Self {
        let functions = Functions::of(program);
        let clock = machine.core.clock;
        Profiler {
            places: Places::default(),
            heap: HeapWatch::new(&functions),
            functions,
            tree: Tree::default(),
            shadow: Shadow::default(),
            stacks: Stacks::default(),
            sections: Vec::new(),
            asleep: Cycles::default(),
            instructions: 0,
            own_stack: Vec::new(),
            now: Now { start: clock, end: clock, ..Now::default() },
        }
    }

    fn first(&mut self, at: u32, stack: u32) {
        self.stacks.begin_main(stack);
        self.shadow.begin(at, stack, &mut self.functions, &mut self.tree);
        self.now.stack = stack;
        self.now.look(&self.shadow, &self.functions);
    }

    /// What goes on at an address may have come there by a jump; the stack pointer as the jump left it.
    #[inline]
    fn arrive(&mut self, core: &Core, at: u32, stack: u32) {
        match self.now.expected {
            Some(expected) if expected == at => return,
            None => self.first(at, stack),
            Some(_) if self.now.stays(at, stack) => {}
            Some(from) => self.jumped(core, from, at, stack),
        }
        // It is not looked at again where the instruction there faults.
        self.now.expected = Some(at);
        self.now.called = false;
    }

    /// Gives the function on top what it has done.
    fn settle(&mut self) {
        let node = self.tree.get_mut(self.shadow.node());
        node.instructions += std::mem::take(&mut self.now.instructions);
        node.cycles += std::mem::take(&mut self.now.cycles);
    }

    fn jumped(&mut self, core: &Core, from: u32, to: u32, stack: u32) {
        self.settle();
        let (before, of) = (self.shadow.current.frames.len(), self.shadow.current.id);
        let (functions, tree) = (&mut self.functions, &mut self.tree);
        let moved = if self.now.called {
            self.shadow.call(to, from, stack, functions, tree)
        } else {
            self.shadow.jump(to, stack, functions, tree)
        };
        let after = self.shadow.current.frames.len();
        let tail_call = !self.now.called && matches!(moved, Moved::Entered(_));
        let number = self.shadow.current.stack;
        self.stacks.left(number, of, after - usize::from(tail_call));
        match moved {
            Moved::Within => {}
            Moved::Left(_) => self.heap.left(of, after, core.registers.r[0]),
            Moved::Entered(function) => {
                let r = core.registers.r;
                if after < before {
                    self.heap.left(of, after, r[0]);
                }
                self.heap.entered(function, of, after - 1, [r[0], r[1], r[2], r[3]]);
            }
        }
        self.now.look(&self.shadow, &self.functions);
    }

    fn stack_moved(&mut self, core: &Core, operation: &Operation, stack: u32) {
        self.now.stack = stack;
        let depth = self.shadow.current.frames.len();
        let number = self.shadow.current.stack;
        let process = core.registers.process_stack;
        let changed = process != (number != 0);
        // What a function pushes onto a stack that it went over to is not beside what it has on the first.
        if let Some(top) = self.shadow.current.frames.last_mut()
            && !changed
            && self.stacks.holds(number, top.stack)
        {
            top.lowest = top.lowest.min(stack);
            // Not when it is left: longjmp leaves several at once.
            let number = top.function as usize;
            if number >= self.own_stack.len() {
                self.own_stack.resize(self.functions.count(), 0);
            }
            let bytes = top.stack.saturating_sub(top.lowest);
            self.own_stack[number] = self.own_stack[number].max(bytes);
        }
        if changed {
            // The thread has gone over to its own stack, or back.
            self.shadow.current.stack = if process { self.stacks.begin(stack) } else { 0 };
        } else if depth == 1
            && !core.registers.in_handler()
            && let Some(within) = stacks::sets_stack(operation, &core.memory)
            && self.stacks.placed(number, stack, within)
            && let Some(top) = self.shadow.current.frames.last_mut()
        {
            (top.stack, top.lowest) = (stack, stack);
        }
        self.stacks.moved(self.shadow.current.stack, stack, &self.shadow);
        self.now.look(&self.shadow, &self.functions);
    }

    fn entered(&mut self, core: &Core, gap: Cycles) {
        if !std::mem::take(&mut self.now.chained) {
            let (at, stack) = interrupted(core);
            self.arrive(core, at, stack);
            self.settle();
            // What the exception pushed.
            let number = self.shadow.current.stack;
            let process = core.registers.r[14] & 4 != 0;
            if process == (number != 0) {
                let registers = &core.registers;
                let pushed = if process { registers.process_stack() } else { registers.r[13] };
                self.stacks.moved(number, pushed, &self.shadow);
            }
            self.shadow.interrupt(at, stack);
        }
        let (at, stack) = (core.registers.pc(), core.registers.r[13]);
        self.shadow.begin(at, stack, &mut self.functions, &mut self.tree);
        let entry = core.costs.exception_entry;
        if self.now.waits {
            self.asleep += gap - entry;
            self.now.cycles += entry;
        } else {
            self.now.cycles += gap;
        }
        self.settle();
        self.now.expected = Some(at);
    }

    fn left(&mut self, core: &Core, gap: Cycles) {
        self.now.cycles += gap;
        self.settle();
        self.heap.ended(self.shadow.current.id);
        // Tail-chaining leaves the frame where it is (DDI 0403E section B1.5.12).
        let stack = core.registers.r[13];
        self.now.chained = core.registers.in_handler() && stack == self.now.stack;
        if self.now.chained {
            return;
        }
        let at = self.shadow.resume(core, &mut self.functions, &mut self.tree);
        if core.registers.process_stack && self.shadow.current.stack == 0 {
            self.shadow.current.stack = self.stacks.begin(stack);
        }
        self.now.expected = Some(at);
    }

    fn marked(&mut self, core: &Core) {
        for mark in &core.memory.ports.marks[self.sections.len()..] {
            self.close_section();
            let depth = self.stacks.depth(self.shadow.current.stack, self.now.stack);
            self.stacks.section = depth;
            self.heap.section_peak = self.heap.heap.live;
            let instructions = self.instructions;
            self.sections.push(Section {
                mark: *mark,
                instructions,
                stack: depth,
                heap: self.heap.heap.live,
            });
        }
    }

    fn close_section(&mut self) {
        if let Some(section) = self.sections.last_mut() {
            section.stack = self.stacks.section;
            section.heap = self.heap.section_peak;
        }
    }
}

impl Observer for Profiler {
    #[inline]
    fn before(&mut self, core: &Core, operation: &Operation) {
        let start = core.clock + operation.before;
        self.now.start = start;
        self.arrive(core, operation.address, core.registers.r[13]);
    }

    #[inline]
    fn after(&mut self, core: &mut Core, operation: &Operation, now: Cycles) {
        let cycles = now - self.now.start;
        self.places.count(operation.address, cycles);
        self.instructions += 1;
        self.now.instructions += 1;
        self.now.cycles += cycles;
        if self.now.waits {
            self.asleep += self.now.start - self.now.end;
        }
        self.now.end = now;
        self.now.expected = Some(operation.next());
        let instruction = &operation.instruction;
        self.now.called = matches!(
            instruction,
            Instruction::BranchLink { .. } | Instruction::BranchExchange { link: true, .. }
        );
        self.now.waits =
            matches!(instruction, Instruction::WaitForInterrupt | Instruction::WaitForEvent);
        let stack = core.registers.r[13];
        if stack != self.now.stack {
            self.stack_moved(core, operation, stack);
        }
        if let Instruction::StoreMultiple { rn, list, writeback, before } = *instruction
            && rn != SP
            && core.registers.in_handler()
        {
            let bytes = 4 * list.count_ones();
            let base = core.registers.get(rn);
            let lowest = if before == writeback { base } else { base.wrapping_sub(bytes) };
            self.stacks.saved(core.registers.process_stack(), lowest);
        }
        if core.memory.ports.marks.len() != self.sections.len() {
            self.marked(core);
        }
    }

    fn exception(&mut self, core: &Core, entered: bool) {
        let gap = core.clock - self.now.end;
        self.now.end = core.clock;
        if entered {
            self.entered(core, gap);
        } else {
            self.left(core, gap);
        }
        self.now.called = false;
        self.now.waits = !entered && !self.now.chained && core.sleeps_after_return();
        self.now.stack = core.registers.r[13];
        self.now.look(&self.shadow, &self.functions);
    }
}
