// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counters by address.

use crate::timing::Cycles;

/// Addresses of one page share an allocation.
const PAGE_BITS: u32 = 12;
const HALVES: usize = 1 << (PAGE_BITS - 1);
const NO_PAGE: u32 = u32::MAX;

/// Executions of an instruction, and their cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Executions.
    pub instructions: u64,
    /// Cycles of all executions.
    pub cycles: Cycles,
}

/// A counter for each halfword that was executed.
#[derive(Debug)]
pub struct AddressCounts {
    /// Index into `pages` by page number.
    table: Box<[u32]>,
    pages: Vec<(u32, Box<[Count]>)>,
}

impl Default for AddressCounts {
    fn default() -> Self {
        let table = vec![NO_PAGE; 1 << (32 - PAGE_BITS)].into_boxed_slice();
        AddressCounts { table, pages: Vec::new() }
    }
}

impl AddressCounts {
    /// Counts one instruction.
    #[inline]
    pub fn count(&mut self, address: u32, cycles: Cycles) {
        let page = self.table[(address >> PAGE_BITS) as usize];
        let page = if page == NO_PAGE { self.add(address) } else { page };
        let half = (address >> 1) as usize & (HALVES - 1);
        let count = &mut self.pages[page as usize].1[half];
        count.instructions += 1;
        count.cycles += cycles;
    }

    #[cold]
    fn add(&mut self, address: u32) -> u32 {
        let page = self.pages.len() as u32;
        let base = address >> PAGE_BITS << PAGE_BITS;
        self.pages.push((base, vec![Count::default(); HALVES].into_boxed_slice()));
        self.table[(address >> PAGE_BITS) as usize] = page;
        page
    }

    /// All executed addresses, ascending.
    pub fn all(&self) -> Vec<(u32, Count)> {
        let mut all: Vec<(u32, Count)> = Vec::new();
        for (base, counts) in &self.pages {
            let met = counts.iter().enumerate().filter(|(_, count)| count.instructions > 0);
            all.extend(met.map(|(half, count)| (base + 2 * half as u32, *count)));
        }
        all.sort_by_key(|(address, _)| *address);
        all
    }
}
