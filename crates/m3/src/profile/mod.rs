// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles: cycles by function, stack depth, and heap use.
//!
//! [`Profiler`] observes a run; [`Profiler::report`] gives the result.

mod address_counts;
pub mod functions;
mod heap;
pub mod report;
mod shadow;
mod stacks;
pub mod tree;

pub use heap::{Heap, MAX_BLOCKS};
pub use report::Report;
pub use shadow::MAX_FRAMES;
pub use stacks::{Deepest, MAX_STACKS};
pub use tree::MAX_NODES;

use crate::core::{Core, Operation};
use crate::isa::{Instruction, SP};
use crate::machine::{Machine, Observer};
use crate::ports::Mark;
use crate::program::Program;
use crate::timing::Cycles;
use address_counts::AddressCounts;
use functions::Functions;
use heap::HeapTracker;
use shadow::{Shadow, Transition, interrupted};
use stacks::Stacks;
use tree::Tree;

/// The part of a run from one mark to the next, or to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The mark at which it begins.
    pub mark: Mark,
    /// Instructions executed before it.
    pub instructions: u64,
    /// The deepest stack in it, bytes.
    pub stack: u32,
    /// The most bytes allocated at one time in it.
    pub heap: u64,
}

/// An observer that attributes cycles to functions.
#[derive(Debug)]
pub struct Profiler {
    places: AddressCounts,
    functions: Functions,
    tree: Tree,
    shadow: Shadow,
    stacks: Stacks,
    heap: HeapTracker,
    sections: Vec<Section>,
    /// Cycles spent asleep.
    asleep: Cycles,
    instructions: u64,
    /// The largest frame of each function, bytes, by its number.
    own_stack: Vec<u32>,
    current: Current,
}

/// The state of the run between two callbacks.
#[derive(Debug, Default)]
struct Current {
    /// The address of the next instruction unless there is a jump; `None` before the first one.
    expected: Option<u32>,
    /// Whether the last instruction was a call.
    called: bool,
    /// Whether the last instruction waits for an interrupt.
    waits: bool,
    /// Whether a handler ended and another follows by tail-chaining.
    chained: bool,
    /// The clock before the current instruction.
    start: Cycles,
    /// The clock after the last instruction.
    end: Cycles,
    stack: u32,
    /// Instructions and cycles of the top function that its node does not have yet.
    instructions: u64,
    cycles: Cycles,
    /// A copy of the top frame: start and length of the function, return address, initial SP.
    function: (u32, u32),
    return_to: u32,
    began_at: u32,
}

impl Current {
    /// Copies the top frame.
    fn copy_top(&mut self, shadow: &Shadow, functions: &Functions) {
        let Some(top) = shadow.top() else { return };
        let function = functions.get(top.function);
        // In untracked calls any jump may leave the function.
        self.function = match shadow.current.untracked {
            Some(_) => (0, 0),
            None => (function.start, function.end.wrapping_sub(function.start)),
        };
        (self.return_to, self.began_at) = (top.return_to, top.stack);
    }

    /// Whether a jump stays in its function, as most do: neither a call nor a return.
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
    /// A profiler for a program that is loaded and has not started.
    pub fn new(program: &Program, machine: &Machine) -> Self {
        let functions = Functions::of(program);
        let clock = machine.core.clock;
        Profiler {
            places: AddressCounts::default(),
            heap: HeapTracker::new(&functions),
            functions,
            tree: Tree::default(),
            shadow: Shadow::default(),
            stacks: Stacks::default(),
            sections: Vec::new(),
            asleep: Cycles::default(),
            instructions: 0,
            own_stack: Vec::new(),
            current: Current { start: clock, end: clock, ..Current::default() },
        }
    }

    fn first(&mut self, at: u32, stack: u32) {
        self.stacks.begin_main(stack);
        self.shadow.begin(at, stack, &mut self.functions, &mut self.tree);
        self.current.stack = stack;
        self.current.copy_top(&self.shadow, &self.functions);
    }

    /// Execution continues at an address, perhaps after a jump; `stack` is SP after it.
    #[inline]
    fn continue_at(&mut self, core: &Core, at: u32, stack: u32) {
        match self.current.expected {
            Some(expected) if expected == at => return,
            None => self.first(at, stack),
            Some(_) if self.current.stays(at, stack) => {}
            Some(from) => self.jumped(core, from, at, stack),
        }
        // The jump is handled once even if the instruction here faults.
        self.current.expected = Some(at);
        self.current.called = false;
    }

    /// Adds pending instructions and cycles to the node of the top function.
    fn charge_top(&mut self) {
        let node = self.tree.get_mut(self.shadow.node());
        node.instructions += std::mem::take(&mut self.current.instructions);
        node.cycles += std::mem::take(&mut self.current.cycles);
    }

    fn jumped(&mut self, core: &Core, from: u32, to: u32, stack: u32) {
        self.charge_top();
        let (before, of) = (self.shadow.current.frames.len(), self.shadow.current.id);
        let (functions, tree) = (&mut self.functions, &mut self.tree);
        let moved = if self.current.called {
            self.shadow.call(to, from, stack, functions, tree)
        } else {
            self.shadow.jump(to, stack, functions, tree)
        };
        let after = self.shadow.current.frames.len();
        let tail_call = !self.current.called && matches!(moved, Transition::Entered(_));
        let number = self.shadow.current.stack;
        self.stacks.left(number, of, after - usize::from(tail_call));
        match moved {
            Transition::Within => {}
            Transition::Left(_) => self.heap.left(of, after, core.registers.r[0]),
            Transition::Entered(function) => {
                let r = core.registers.r;
                if after < before {
                    self.heap.left(of, after, r[0]);
                }
                self.heap.entered(function, of, after - 1, [r[0], r[1], r[2], r[3]]);
            }
        }
        self.current.copy_top(&self.shadow, &self.functions);
    }

    fn stack_moved(&mut self, core: &Core, operation: &Operation, stack: u32) {
        self.current.stack = stack;
        let depth = self.shadow.current.frames.len();
        let number = self.shadow.current.stack;
        let process = core.registers.process_stack;
        let changed = process != (number != 0);
        // A function that switched stacks has no frame on the new one.
        if let Some(top) = self.shadow.current.frames.last_mut()
            && !changed
            && self.stacks.holds(number, top.stack)
        {
            top.lowest = top.lowest.min(stack);
            // Recorded here and not at its return: longjmp leaves several frames at once.
            let number = top.function as usize;
            if number >= self.own_stack.len() {
                self.own_stack.resize(self.functions.count(), 0);
            }
            let bytes = top.stack.saturating_sub(top.lowest);
            self.own_stack[number] = self.own_stack[number].max(bytes);
        }
        if changed {
            // The thread switched to its process stack, or back.
            self.shadow.current.stack = if process { self.stacks.begin(stack) } else { 0 };
        } else if depth == 1
            && !core.registers.in_handler()
            && let Some(within) = stacks::sets_stack(operation, &core.memory)
            && self.stacks.assigned(number, stack, within)
            && let Some(top) = self.shadow.current.frames.last_mut()
        {
            (top.stack, top.lowest) = (stack, stack);
        }
        self.stacks.moved(self.shadow.current.stack, stack, &self.shadow);
        self.current.copy_top(&self.shadow, &self.functions);
    }

    fn entered(&mut self, core: &Core, gap: Cycles) {
        if !std::mem::take(&mut self.current.chained) {
            let (at, stack) = interrupted(core);
            self.continue_at(core, at, stack);
            self.charge_top();
            // The exception's frame counts.
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
        if self.current.waits {
            self.asleep += gap - entry;
            self.current.cycles += entry;
        } else {
            self.current.cycles += gap;
        }
        self.charge_top();
        self.current.expected = Some(at);
    }

    fn left(&mut self, core: &Core, gap: Cycles) {
        self.current.cycles += gap;
        self.charge_top();
        self.heap.ended(self.shadow.current.id);
        // Tail-chaining keeps the frame on the stack (DDI 0403E section B1.5.12).
        let stack = core.registers.r[13];
        self.current.chained = core.registers.in_handler() && stack == self.current.stack;
        if self.current.chained {
            return;
        }
        let at = self.shadow.resume(core, &mut self.functions, &mut self.tree);
        if core.registers.process_stack && self.shadow.current.stack == 0 {
            self.shadow.current.stack = self.stacks.begin(stack);
        }
        self.current.expected = Some(at);
    }

    fn marked(&mut self, core: &Core) {
        for mark in &core.memory.ports.marks[self.sections.len()..] {
            self.close_section();
            let depth = self.stacks.depth(self.shadow.current.stack, self.current.stack);
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
        let start = core.clock + operation.cycles_before;
        self.current.start = start;
        self.continue_at(core, operation.address, core.registers.r[13]);
    }

    #[inline]
    fn after(&mut self, core: &mut Core, operation: &Operation, now: Cycles) {
        let cycles = now - self.current.start;
        self.places.count(operation.address, cycles);
        self.instructions += 1;
        self.current.instructions += 1;
        self.current.cycles += cycles;
        if self.current.waits {
            self.asleep += self.current.start - self.current.end;
        }
        self.current.end = now;
        self.current.expected = Some(operation.next());
        let instruction = &operation.instruction;
        self.current.called = matches!(
            instruction,
            Instruction::BranchLink { .. } | Instruction::BranchExchange { link: true, .. }
        );
        self.current.waits =
            matches!(instruction, Instruction::WaitForInterrupt | Instruction::WaitForEvent);
        let stack = core.registers.r[13];
        if stack != self.current.stack {
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
        let gap = core.clock - self.current.end;
        self.current.end = core.clock;
        if entered {
            self.entered(core, gap);
        } else {
            self.left(core, gap);
        }
        self.current.called = false;
        self.current.waits = !entered && !self.current.chained && core.sleeps_after_return();
        self.current.stack = core.registers.r[13];
        self.current.copy_top(&self.shadow, &self.functions);
    }
}
