// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How far down stacks grow.

use super::functions::FunctionId;
use super::shadow::Frame;

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
    pub all: Vec<Deepest>,
    /// The most bytes that any was deep since the last mark.
    pub section: u32,
}

impl Stacks {
    /// A stack that begins here; its number.
    pub fn begin(&mut self, stack: u32) -> usize {
        self.all.push(Deepest { top: stack, lowest: stack, frames: Vec::new() });
        self.all.len() - 1
    }

    /// The stack pointer moved; `frames` gives who is on the stack, if that is needed.
    pub fn moved(&mut self, number: usize, stack: u32, frames: impl FnOnce() -> Vec<Frame>) {
        let Some(deepest) = self.all.get_mut(number) else { return };
        if stack > deepest.top {
            // Start-up code chose another place.
            *deepest = Deepest { top: stack, lowest: stack, frames: Vec::new() };
        }
        self.section = self.section.max(deepest.top - stack);
        if stack < deepest.lowest {
            deepest.lowest = stack;
            deepest.frames = sizes(&frames(), stack);
        }
    }

    /// The stack was put elsewhere, by a function that nobody called.
    pub fn placed(&mut self, number: usize, stack: u32) {
        if let Some(deepest) = self.all.get_mut(number) {
            *deepest = Deepest { top: stack, lowest: stack, frames: Vec::new() };
        }
    }

    /// How deep a stack is where its pointer is this.
    pub fn depth(&self, number: usize, stack: u32) -> u32 {
        self.all.get(number).map_or(0, |deepest| deepest.top.saturating_sub(stack))
    }
}

fn sizes(frames: &[Frame], lowest: u32) -> Vec<(FunctionId, u32)> {
    let ends = frames.iter().skip(1).map(|frame| frame.stack).chain([lowest]);
    frames
        .iter()
        .zip(ends)
        .map(|(frame, end)| (frame.function, frame.stack.saturating_sub(end)))
        .collect()
}
