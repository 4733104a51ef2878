// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The call tree: one node for each call path.

use std::collections::HashMap;

use super::functions::FunctionId;
use crate::timing::Cycles;

/// The number of a node; 0 is the root, which is not a function.
pub type NodeId = u32;

/// The root of all call stacks.
pub const ROOT: NodeId = 0;
/// Nodes at most (6 MB, more than a flame graph shows), not counting outermost functions.
pub const MAX_NODES: usize = 1 << 16;

/// A function, reached by one call path.
#[derive(Clone, Debug)]
pub struct Node {
    /// The function; meaningless for the root.
    pub function: FunctionId,
    /// The caller's node.
    pub parent: NodeId,
    /// Calls by this path.
    pub calls: u64,
    /// Instructions in the function itself.
    pub instructions: u64,
    /// Cycles in the function itself.
    pub cycles: Cycles,
}

/// Totals of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Calls, including tail calls.
    pub calls: u64,
    /// Instructions in the function itself.
    pub instructions: u64,
    /// Cycles in the function itself.
    pub exclusive: Cycles,
    /// Cycles including nested calls; recursion counts once.
    pub inclusive: Cycles,
}

/// Calls from one function to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The caller; `None` at the start of a call stack.
    pub caller: Option<FunctionId>,
    /// The function called.
    pub callee: FunctionId,
    /// The number of calls.
    pub calls: u64,
    /// Cycles of these calls including nested calls; recursion counts once.
    pub inclusive: Cycles,
}

/// All nodes; a parent comes before its children.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    children: HashMap<(NodeId, FunctionId), NodeId>,
    /// Whether there were more call paths than nodes.
    pub overflowed: bool,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node {
            function: FunctionId::MAX,
            parent: ROOT,
            calls: 0,
            instructions: 0,
            cycles: Cycles::default(),
        };
        Tree { nodes: vec![root], children: HashMap::new(), overflowed: false }
    }
}

impl Tree {
    /// The node of a function below another, created if it is new; `None` if there are too many.
    pub fn child(&mut self, parent: NodeId, function: FunctionId) -> Option<NodeId> {
        if let Some(node) = self.children.get(&(parent, function)) {
            return Some(*node);
        }
        if self.nodes.len() >= MAX_NODES {
            self.overflowed = true;
            return None;
        }
        Some(self.add(parent, function))
    }

    /// The node of an outermost function.
    pub fn outermost(&mut self, function: FunctionId) -> NodeId {
        match self.children.get(&(ROOT, function)) {
            Some(node) => *node,
            None => self.add(ROOT, function),
        }
    }

    fn add(&mut self, parent: NodeId, function: FunctionId) -> NodeId {
        let node = self.nodes.len() as NodeId;
        let (instructions, cycles) = (0, Cycles::default());
        self.nodes.push(Node { function, parent, calls: 0, instructions, cycles });
        self.children.insert((parent, function), node);
        node
    }

    /// A node.
    pub fn get(&self, node: NodeId) -> &Node {
        &self.nodes[node as usize]
    }

    /// A node, to add to its counts.
    #[inline]
    pub fn get_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// The call path to a node, the outermost function first.
    pub fn path(&self, mut node: NodeId) -> Vec<FunctionId> {
        let mut path = Vec::new();
        while node != ROOT {
            path.push(self.get(node).function);
            node = self.get(node).parent;
        }
        path.reverse();
        path
    }

    /// All nodes but the root, parents first.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().skip(1).map(|(index, node)| (index as NodeId, node))
    }

    /// Inclusive cycles of each node, by number.
    fn inclusive(&self) -> Vec<Cycles> {
        let mut sums: Vec<Cycles> = self.nodes.iter().map(|node| node.cycles).collect();
        for index in (1..self.nodes.len()).rev() {
            let below = sums[index];
            sums[self.nodes[index].parent as usize] += below;
        }
        sums
    }

    /// Totals of each function, by number.
    pub fn sums(&self, functions: usize) -> Vec<Sum> {
        let inclusive = self.inclusive();
        let mut sums = vec![Sum::default(); functions];
        for (id, node) in self.nodes() {
            let sum = &mut sums[node.function as usize];
            sum.calls += node.calls;
            sum.instructions += node.instructions;
            sum.exclusive += node.cycles;
            if !self.is_above(node.parent, |above| above.function == node.function) {
                sum.inclusive += inclusive[id as usize];
            }
        }
        sums
    }

    /// All calls, by caller and callee.
    pub fn edges(&self) -> Vec<Edge> {
        let inclusive = self.inclusive();
        let mut edges: HashMap<(Option<FunctionId>, FunctionId), Edge> = HashMap::new();
        for (id, node) in self.nodes() {
            let caller = (node.parent != ROOT).then(|| self.get(node.parent).function);
            let edge = edges.entry((caller, node.function)).or_insert(Edge {
                caller,
                callee: node.function,
                calls: 0,
                inclusive: Cycles::default(),
            });
            edge.calls += node.calls;
            let same = |above: &Node| {
                above.function == node.function
                    && above.parent != ROOT
                    && Some(self.get(above.parent).function) == caller
            };
            if !self.is_above(node.parent, same) {
                edge.inclusive += inclusive[id as usize];
            }
        }
        let mut edges: Vec<Edge> = edges.into_values().collect();
        edges.sort_by_key(|edge| (edge.caller, edge.callee));
        edges
    }

    fn is_above(&self, mut node: NodeId, what: impl Fn(&Node) -> bool) -> bool {
        while node != ROOT {
            if what(self.get(node)) {
                return true;
            }
            node = self.get(node).parent;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(tree: &mut Tree, parent: NodeId, function: FunctionId) -> NodeId {
        tree.child(parent, function).expect("there is room")
    }

    /// main -> f -> f -> g, and main -> g.
    fn recursive() -> Tree {
        let mut tree = Tree::default();
        let main = tree.outermost(0);
        let f = made(&mut tree, main, 1);
        let again = made(&mut tree, f, 1);
        let deep = made(&mut tree, again, 2);
        let direct = made(&mut tree, main, 2);
        for (node, cycles) in [(main, 1), (f, 10), (again, 100), (deep, 1000), (direct, 10_000)] {
            let node = tree.get_mut(node);
            node.calls += 1;
            node.instructions += 1;
            node.cycles += Cycles::both(cycles);
        }
        tree
    }

    #[test]
    fn recursion_counts_once_in_inclusive_cycles() {
        let sums = recursive().sums(3);
        let figures = sums.iter().map(|sum| (sum.calls, sum.exclusive.high, sum.inclusive.high));
        assert_eq!(
            figures.collect::<Vec<_>>(),
            [(1, 1, 11_111), (2, 110, 1110), (2, 11_000, 11_000)]
        );
    }

    #[test]
    fn edges_count_calls_and_inclusive_cycles() {
        let edges = recursive().edges();
        let of = |caller, callee| {
            let edge = edges.iter().find(|edge| edge.caller == caller && edge.callee == callee);
            edge.map(|edge| (edge.calls, edge.inclusive.high))
        };
        assert_eq!(of(None, 0), Some((1, 11_111)));
        assert_eq!(of(Some(0), 1), Some((1, 1110)));
        assert_eq!(of(Some(1), 1), Some((1, 1100)));
        assert_eq!(of(Some(1), 2), Some((1, 1000)));
        assert_eq!(of(Some(0), 2), Some((1, 10_000)));
        assert_eq!(of(Some(2), 0), None);
    }

    #[test]
    fn path_starts_at_outermost_function() {
        let mut tree = recursive();
        let main = tree.outermost(0);
        let f = made(&mut tree, main, 1);
        assert_eq!(tree.path(f), [0, 1]);
        assert_eq!(tree.path(ROOT), []);
    }
}
