// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of a program, by address.

use std::collections::HashMap;

use crate::program::{Program, Symbol};

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
        let mut symbols = program.symbols.clone();
        // Hand-written assembly may give its routines neither type nor size. A label inside a
        // function that has a size, or at the address of one, is a part of it.
        let labels = program.code_labels.iter().filter(|label| {
            let found = program.symbol_at(label.address);
            !found.is_some_and(|symbol| symbol.is_function)
        });
        symbols.extend(labels.cloned());
        symbols.sort_by(|a, b| (a.address, a.bytes, &a.name).cmp(&(b.address, b.bytes, &b.name)));
        Functions::of_symbols(&symbols)
    }

    /// The functions among symbols, which are sorted by address.
    pub(super) fn of_symbols(symbols: &[Symbol]) -> Self {
        let symbols: Vec<_> = symbols.iter().filter(|symbol| symbol.is_function).collect();
        let mut places = symbols.chunk_by(|a, b| a.address == b.address).peekable();
        let mut all: Vec<Function> = Vec::new();
        while let Some(place) = places.next() {
            // Of several aliases the last one, as in `Program::symbol_at`.
            let Some(symbol) = place.last() else { continue };
            let next = places.peek().and_then(|next| next.first());
            // Assembly often omits sizes: such a function extends to the next one.
            let most = next
                .map_or(symbol.address.saturating_add(MAX_UNSIZED_BYTES), |other| other.address);
            let end = match symbol.bytes {
                0 => most,
                bytes => symbol.address.saturating_add(bytes).min(most),
            };
            all.push(Function { name: symbol.name.clone(), start: symbol.address, end });
        }
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

/// The longest extent of a function without a size, so that distant code is not attributed to it.
const MAX_UNSIZED_BYTES: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: String, address: u32, bytes: u32) -> Symbol {
        Symbol { name, address, bytes, is_function: true }
    }

    /// A linear search for the next address from each symbol would take hours.
    #[test]
    fn million_aliases_form_one_function() {
        let names = (0..1_000_000).map(|number| symbol(format!("name{number}"), 0x100, 8));
        let others = [symbol("open".into(), 0x200, 0), symbol("after".into(), 0x300, 0x10)];
        let functions = Functions::of_symbols(&names.chain(others).collect::<Vec<_>>());
        let seen: Vec<_> = (functions.all.iter())
            .map(|function| (function.name.as_str(), function.start, function.end))
            .collect();
        assert_eq!(
            seen,
            [("name999999", 0x100, 0x108), ("open", 0x200, 0x300), ("after", 0x300, 0x310)]
        );
    }
}
