// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of a program, by address.

use std::collections::HashMap;

use crate::program::{MAX_UNSIZED_BYTES, Program, Symbol};

/// A function by its number in [`Functions`].
pub type FunctionId = u32;

/// A named range of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its symbol, or its address if it has none.
    pub name: String,
    /// Its first address.
    pub start: u32,
    /// The address after its last byte.
    pub end: u32,
}

impl Function {
    /// Whether an address is in it.
    #[inline]
    pub fn holds(&self, address: u32) -> bool {
        address.wrapping_sub(self.start) < self.end.wrapping_sub(self.start)
    }
}

/// The functions with symbols, and those without that were executed.
#[derive(Debug)]
pub struct Functions {
    all: Vec<Function>,
    /// How many have symbols; these come first, by address.
    named: usize,
    unnamed: HashMap<u32, FunctionId>,
}

impl Functions {
    /// The functions that a program has symbols for.
    pub fn of(program: &Program) -> Self {
        Functions::of_routines(&program.routines)
    }

    /// The same of [`Program::routines`].
    pub(super) fn of_routines(routines: &[Symbol]) -> Self {
        let all: Vec<Function> = (routines.iter())
            .map(|routine| Function {
                name: routine.name.clone(),
                start: routine.address,
                end: routine.address.saturating_add(routine.bytes),
            })
            .collect();
        Functions { named: all.len(), all, unnamed: HashMap::new() }
    }

    /// A function by its number.
    pub fn get(&self, id: FunctionId) -> &Function {
        &self.all[id as usize]
    }

    /// The number of functions.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The function with a symbol that contains an address.
    pub fn named(&self, address: u32) -> Option<FunctionId> {
        let after = self.all[..self.named].partition_point(|function| function.start <= address);
        let index = after.checked_sub(1)?;
        self.all[index].holds(address).then_some(index as FunctionId)
    }

    /// The function at an address; code without a symbol becomes a new function.
    pub fn at(&mut self, address: u32) -> FunctionId {
        if let Some(id) = self.named(address) {
            return id;
        }
        let next = self.all.len() as FunctionId;
        let id = *self.unnamed.entry(address).or_insert(next);
        if id == next {
            let end = address.saturating_add(MAX_UNSIZED_BYTES).min(self.after(address));
            self.all.push(Function { name: format!("{address:#010x}"), start: address, end });
        }
        id
    }

    /// The start of the next function with a symbol.
    fn after(&self, address: u32) -> u32 {
        let after = self.all[..self.named].partition_point(|function| function.start <= address);
        self.all[..self.named].get(after).map_or(u32::MAX, |function| function.start)
    }
}
