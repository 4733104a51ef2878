// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a profile says, for people and programs.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::functions::FunctionId;
use super::places::Count;
use super::shadow::MOST_FRAMES;
use super::tree::{Edge, MOST_NODES, Sum};
use super::{Deepest, Heap, Profiler, Section};
use crate::core::Core;
use crate::timing::Cycles;

/// One function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRow {
    /// Its symbol, or its address.
    pub name: String,
    /// Its first address.
    pub address: u32,
    /// What it took.
    pub sum: Sum,
    /// The bytes of stack that it took by itself at most.
    pub stack: u32,
}

/// One line of source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineRow {
    /// File and line; empty and 0 where they are not known.
    pub place: (String, u32),
    /// The function that its first instruction is in.
    pub function: String,
    /// Its first address.
    pub address: u32,
    /// What it took.
    pub count: Count,
}

/// All that was seen.
#[derive(Clone, Debug)]
pub struct Report {
    /// All functions that were executed, the most expensive first.
    pub functions: Vec<FunctionRow>,
    /// Who called whom.
    pub edges: Vec<EdgeRow>,
    /// Cycles by the way that a function was reached: `main;f;g`, and what it took by itself.
    pub stacks: Vec<(String, Cycles)>,
    /// Addresses that were executed, ascending.
    pub addresses: Vec<(u32, Count)>,
    /// The main stack, then process stacks, at their deepest.
    pub deepest: Vec<(Deepest, Vec<(String, u32)>)>,
    /// The heap; `None` where the program has no newlib allocator.
    pub heap: Option<Heap>,
    /// What is between marks.
    pub sections: Vec<Section>,
    /// Cycles that the processor slept.
    pub asleep: Cycles,
    /// What to know of the figures, a sentence each.
    pub notes: Vec<String>,
}

/// One function calling another, by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeRow {
    /// Empty where a stack of calls begins: the reset handler, a thread, an exception.
    pub caller: String,
    /// Who is called.
    pub callee: String,
    /// How often.
    pub calls: u64,
    /// Cycles of these calls with all that they called.
    pub inclusive: Cycles,
}

impl Profiler {
    /// What was seen until now, on the core that was looked at.
    pub fn report(mut self, core: &Core) -> Report {
        // An exception that could not be entered or left took time, and nobody told of it.
        self.now.cycles += core.clock - self.now.end;
        self.settle();
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
            heap: self.heap.is_there().then(|| self.heap.heap.clone()),
            sections: self.sections.clone(),
            asleep: self.asleep,
            notes: self.notes(),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.shadow.overflowed {
            notes.push(format!(
                "calls were nested deeper than {MOST_FRAMES}: what was called beyond counts in the last function \
                 that was followed; look for a recursion without an end"
            ));
        }
        if self.tree.overflowed {
            notes.push(format!(
                "functions were reached by more than {MOST_NODES} ways: further ways count at shorter ones, so cycles \
                 with what was called may be too low; go by the cycles in functions themselves"
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

/// A name without what parts a stack of calls; symbols may hold anything.
fn plain(name: &str) -> String {
    name.replace(|letter: char| letter == ';' || letter.is_control(), "_")
}

impl Report {
    /// Cycles of lines of source, the most expensive first; `line` gives file and line of an address, and `function` its
    /// function. What has no line is one row for each function.
    pub fn lines(
        &self,
        mut line: impl FnMut(u32) -> Option<(String, u32)>,
        function: impl Fn(u32) -> String,
    ) -> Vec<LineRow> {
        let mut rows: BTreeMap<((String, u32), String), LineRow> = BTreeMap::new();
        for (address, count) in &self.addresses {
            let place = line(*address).unwrap_or_default();
            // An inlined line is where it was written, whoever it is inlined into.
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

    /// Stacks of calls as flame graphs take them, one a line with its cycles by the high reading.
    pub fn folded(&self) -> String {
        let mut text = String::new();
        for (stack, cycles) in &self.stacks {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{stack} {}", cycles.high);
        }
        text
    }

    /// The same as a picture (SVG).
    ///
    /// # Errors
    /// Why there is none, such as that nothing was executed.
    pub fn flame_graph(&self, title: &str) -> Result<String, String> {
        let mut options = inferno::flamegraph::Options::default();
        options.title = title.to_owned();
        options.count_name = "cycles".to_owned();
        // The same colour for the same function, each time.
        options.hash = true;
        let mut picture = Vec::new();
        inferno::flamegraph::from_lines(&mut options, self.folded().lines(), &mut picture)
            .map_err(|error| error.to_string())?;
        String::from_utf8(picture).map_err(|error| error.to_string())
    }
}
