// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which function an address is in.

use std::collections::HashMap;

use crate::program::Program;

/// A function by its number in [`Functions`].
pub type FunctionId = u32;

/// A piece of code with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its symbol, or its address where it has none.
    pub name: String,
    /// Its first address.
    pub start: u32,
    /// The address behind it.
    pub end: u32,
}

impl Function {
    /// Whether an address is in it.
    #[inline]
    pub fn holds(&self, address: u32) -> bool {
        address.wrapping_sub(self.start) < self.end.wrapping_sub(self.start)
    }
}

/// The functions of a program, and those that were met without a symbol.
#[derive(Debug)]
pub struct Functions {
    all: Vec<Function>,
    /// Those with a symbol come first, by address.
    named: usize,
    unnamed: HashMap<u32, FunctionId>,
}

impl Functions {
    /// The functions that a program has symbols for.
    pub fn of(program: &Program) -> Self {
        let mut all: Vec<Function> = Vec::new();
        let symbols: Vec<_> = program.symbols.iter().filter(|symbol| symbol.is_function).collect();
        for (index, symbol) in symbols.iter().enumerate() {
            let next = symbols[index..].iter().find(|other| other.address > symbol.address);
            // Assembly often does not say how long its functions are: they go on to the next.
            let most = next.map_or(symbol.address.saturating_add(FARTHEST), |other| other.address);
            let end = match symbol.bytes {
                0 => most,
                bytes => symbol.address.saturating_add(bytes).min(most),
            };
            let function = Function { name: symbol.name.clone(), start: symbol.address, end };
            match all.last_mut() {
                // Of several names the last in the order of the symbols, as errors have it.
                Some(last) if last.start == function.start => *last = function,
                _ => all.push(function),
            }
        }
        Functions { named: all.len(), all, unnamed: HashMap::new() }
    }

    /// A function by its number.
    pub fn get(&self, id: FunctionId) -> &Function {
        &self.all[id as usize]
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The function with a symbol that an address is in.
    pub fn named(&self, address: u32) -> Option<FunctionId> {
        let after = self.all[..self.named].partition_point(|function| function.start <= address);
        let index = after.checked_sub(1)?;
        self.all[index].holds(address).then_some(index as FunctionId)
    }

    /// The function that begins, or goes on, at an address: one without a symbol gets a number.
    pub fn at(&mut self, address: u32) -> FunctionId {
        if let Some(id) = self.named(address) {
            return id;
        }
        let next = self.all.len() as FunctionId;
        let id = *self.unnamed.entry(address).or_insert(next);
        if id == next {
            let end = address.saturating_add(FARTHEST).min(self.after(address));
            self.all.push(Function { name: format!("{address:#010x}"), start: address, end });
        }
        id
    }

    /// Where the next function with a symbol begins.
    fn after(&self, address: u32) -> u32 {
        let after = self.all[..self.named].partition_point(|function| function.start <= address);
        self.all[..self.named].get(after).map_or(u32::MAX, |function| function.start)
    }
}

/// No function without a length is longer, so that code elsewhere is not taken for its end.
const FARTHEST: u32 = 1 << 16;
