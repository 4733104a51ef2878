// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The result of a profile.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::address_counts::Count;
use super::functions::FunctionId;
use super::heap::MAX_BLOCKS;
use super::shadow::MAX_FRAMES;
use super::stacks::{MAX_STACK_FRAMES, MAX_STACKS};
use super::tree::{Edge, MAX_NODES, Sum};
use super::{Deepest, Heap, Profiler, Section};
use crate::core::Core;
use crate::printable::is_obeyed;
use crate::timing::Cycles;

/// One function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRow {
    /// Its symbol, or its address.
    pub name: String,
    /// Its first address.
    pub address: u32,
    /// Its calls, instructions and cycles.
    pub sum: Sum,
    /// Its largest frame, bytes.
    pub stack: u32,
}

/// One line of source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineRow {
    /// File and line; empty and 0 if unknown.
    pub place: (String, u32),
    /// The function of its first instruction.
    pub function: String,
    /// Its first address.
    pub address: u32,
    /// Its instructions and cycles.
    pub count: Count,
}

/// The profile of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// All functions that were executed, the most expensive first.
    pub functions: Vec<FunctionRow>,
    /// Caller and callee of each call.
    pub edges: Vec<EdgeRow>,
    /// Exclusive cycles by call path, such as `main;f;g`.
    pub stacks: Vec<(String, Cycles)>,
    /// Executed addresses, ascending.
    pub addresses: Vec<(u32, Count)>,
    /// The main stack, then process stacks, at their deepest.
    pub deepest: Vec<(Deepest, Vec<(String, u32)>)>,
    /// The heap; `None` if the program does not contain newlib's allocator.
    pub heap: Option<Heap>,
    /// Sections between marks.
    pub sections: Vec<Section>,
    /// Cycles spent asleep.
    pub asleep: Cycles,
    /// Limitations of the figures, one sentence each.
    pub notes: Vec<String>,
}

/// Calls from one function to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeRow {
    /// The caller; empty at the start of a call stack: reset handler, thread, exception.
    pub caller: String,
    /// The function called.
    pub callee: String,
    /// The number of calls.
    pub calls: u64,
    /// Cycles of these calls including nested calls.
    pub inclusive: Cycles,
}

impl Profiler {
    /// The profile up to now, of the core that was observed.
    pub fn report(mut self, core: &Core) -> Report {
        // A failed exception entry or return takes cycles without a callback.
        self.current.cycles += core.clock - self.current.end;
        self.charge_top();
        self.close_section();
        let sums = self.tree.sums(self.functions.count());
        let mut functions: Vec<FunctionRow> = Vec::new();
        for (id, sum) in sums.into_iter().enumerate() {
            if sum.calls == 0 {
                continue;
            }
            let function = self.functions.get(id as FunctionId);
            let stack = self.own_stack.get(id).copied().unwrap_or(0);
            functions.push(FunctionRow {
                name: function.name.clone(),
                address: function.start,
                sum,
                stack,
            });
        }
        functions.sort_by(|a, b| {
            (b.sum.exclusive.high, a.address).cmp(&(a.sum.exclusive.high, b.address))
        });
        let edges = self.tree.edges().into_iter().map(|edge| self.edge(edge)).collect();
        let deepest = self.stacks.deepest().into_iter();
        let deepest = deepest.map(|one| (one.clone(), self.named(&one))).collect();
        Report {
            functions,
            edges,
            stacks: self.stacks_of_calls(),
            addresses: self.places.all(),
            deepest,
            heap: self.heap.is_present().then(|| self.heap.heap.clone()),
            sections: self.sections.clone(),
            asleep: self.asleep,
            notes: self.notes(),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.shadow.overflowed {
            notes.push(format!(
                "calls were nested deeper than {MAX_FRAMES}: deeper calls count in the last \
                 tracked function; look for an endless recursion"
            ));
        }
        if self.tree.overflowed {
            notes.push(format!(
                "there are more than {MAX_NODES} call paths: further ones are merged into shorter \
                 ones, so inclusive cycles may be too low; exclusive cycles are exact"
            ));
        }
        if self.stacks.overflowed || self.shadow.threads_overflowed {
            notes.push(format!(
                "there are more than {MAX_STACKS} process stacks, or too many calls on them: the \
                 depth of further ones is not counted, and their calls begin anew after each \
                 switch; look for a thread that begins at another address each time"
            ));
        }
        if self.stacks.frames_overflowed {
            notes.push(format!(
                "the stacks have more than {MAX_STACK_FRAMES} functions together at their \
                 deepest: those of further ones are not listed"
            ));
        }
        if self.heap.overflowed {
            notes.push(format!(
                "there are more than {MAX_BLOCKS} blocks on the heap: further ones are not \
                 counted in its bytes"
            ));
        }
        notes
    }

    fn edge(&self, edge: Edge) -> EdgeRow {
        EdgeRow {
            caller: edge.caller.map_or_else(String::new, |id| self.name(id).to_owned()),
            callee: self.name(edge.callee).to_owned(),
            calls: edge.calls,
            inclusive: edge.inclusive,
        }
    }

    fn name(&self, id: FunctionId) -> &str {
        &self.functions.get(id).name
    }

    fn named(&self, deepest: &Deepest) -> Vec<(String, u32)> {
        deepest.frames.iter().map(|(id, bytes)| (self.name(*id).to_owned(), *bytes)).collect()
    }

    fn stacks_of_calls(&self) -> Vec<(String, Cycles)> {
        let mut stacks = BTreeMap::new();
        for (id, node) in self.tree.nodes() {
            if node.cycles != Cycles::default() {
                let path = self.tree.path(id);
                let names: Vec<String> = path.into_iter().map(|id| plain(self.name(id))).collect();
                *stacks.entry(names.join(";")).or_insert_with(Cycles::default) += node.cycles;
            }
        }
        stacks.into_iter().collect()
    }
}

/// A name without separators of folded stacks; symbol names may contain any character.
fn plain(name: &str) -> String {
    name.replace(|letter: char| letter == ';' || is_obeyed(letter), "_")
}

impl Report {
    /// Source lines, the most expensive first. `line` gives the file and line of an address,
    /// `function` its function. Code without lines has one row for each function.
    pub fn lines(
        &self,
        mut line: impl FnMut(u32) -> Option<(String, u32)>,
        function: impl Fn(u32) -> String,
    ) -> Vec<LineRow> {
        let mut rows: BTreeMap<((String, u32), String), LineRow> = BTreeMap::new();
        for (address, count) in &self.addresses {
            let place = line(*address).unwrap_or_default();
            // A line of an inlined function has one row, whatever it is inlined into.
            let function = function(*address);
            let of = if place.1 == 0 { function.clone() } else { String::new() };
            let row = rows.entry((place.clone(), of)).or_insert_with(|| LineRow {
                place,
                function,
                address: *address,
                count: Count::default(),
            });
            row.count.instructions += count.instructions;
            row.count.cycles += count.cycles;
        }
        let mut rows: Vec<LineRow> = rows.into_values().collect();
        rows.sort_by(|a, b| {
            (b.count.cycles.high, a.address).cmp(&(a.count.cycles.high, b.address))
        });
        rows
    }

    /// Folded stacks for flame graphs: one call path a line with its cycles, high reading.
    pub fn folded(&self) -> String {
        let mut text = String::new();
        for (stack, cycles) in &self.stacks {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{stack} {}", cycles.high);
        }
        text
    }

    /// The flame graph as SVG.
    ///
    /// # Errors
    /// If there is no data.
    pub fn flame_graph(&self, title: &str) -> Result<String, String> {
        let mut options = inferno::flamegraph::Options::default();
        options.title = title.to_owned();
        options.count_name = "cycles".to_owned();
        // Reproducible colours by function name.
        options.hash = true;
        let mut picture = Vec::new();
        inferno::flamegraph::from_lines(&mut options, self.folded().lines(), &mut picture)
            .map_err(|error| error.to_string())?;
        String::from_utf8(picture).map_err(|error| error.to_string())
    }
}
