// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Leaks, one entry for each instruction and kind, with a count.

use std::collections::HashMap;

use serde::Serialize;

use super::labels::Label;
use crate::core::Operation;

/// How a secret leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeakKind {
    /// Whether a branch is taken depends on it.
    Branch,
    /// The target of a jump or a return depends on it.
    Target,
    /// The address of a load depends on it.
    LoadAddress,
    /// The address of a store depends on it.
    StoreAddress,
    /// Whether an instruction in an IT block is executed depends on it.
    Condition,
    /// UMULL, UMLAL, SMULL and SMLAL end early for small operands.
    Multiply,
    /// SDIV and UDIV take as long as their quotient.
    Divide,
    /// Secret bytes are sent: to the console, a UART, ITM or the pipe. Not a leak by itself: a
    /// ciphertext comes from secrets as well.
    Output,
}

impl LeakKind {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            LeakKind::Branch => "branch",
            LeakKind::Target => "target",
            LeakKind::LoadAddress => "load-address",
            LeakKind::StoreAddress => "store-address",
            LeakKind::Condition => "condition",
            LeakKind::Multiply => "multiply",
            LeakKind::Divide => "divide",
            LeakKind::Output => "output",
        }
    }
}

/// A leaking instruction.
#[derive(Clone, Debug)]
pub struct Leak {
    /// How it leaks.
    pub kind: LeakKind,
    /// The instruction.
    pub operation: Operation,
    /// Executions with a secret.
    pub count: u64,
    /// The label of the secret at the first occurrence.
    pub label: Label,
}

/// Slots of the direct-mapped table in front of the hash map.
const SLOTS: usize = 256;

/// The leaks found so far.
#[derive(Debug)]
pub struct Leaks {
    found: Vec<Leak>,
    numbers: HashMap<(u32, LeakKind), usize>,
    recent: Box<[usize; SLOTS]>,
}

impl Default for Leaks {
    fn default() -> Self {
        Leaks { found: Vec::new(), numbers: HashMap::new(), recent: Box::new([usize::MAX; SLOTS]) }
    }
}

impl Leaks {
    /// Counts an occurrence.
    #[inline]
    pub fn note(&mut self, kind: LeakKind, operation: &Operation, label: Label) {
        let slot = ((operation.address >> 1) as usize ^ (kind as usize) << 5) % SLOTS;
        match self.found.get_mut(self.recent[slot]) {
            Some(leak) if leak.kind == kind && leak.operation.address == operation.address => {
                leak.count += 1
            }
            _ => self.recent[slot] = self.find_or_add(kind, operation, label),
        }
    }

    #[cold]
    fn find_or_add(&mut self, kind: LeakKind, operation: &Operation, label: Label) -> usize {
        let next = self.found.len();
        let number = *self.numbers.entry((operation.address, kind)).or_insert(next);
        match self.found.get_mut(number) {
            Some(leak) => leak.count += 1,
            None => self.found.push(Leak { kind, operation: operation.clone(), count: 1, label }),
        }
        number
    }

    /// All leaks in the order of their first occurrence.
    pub fn found(&self) -> &[Leak] {
        &self.found
    }
}
