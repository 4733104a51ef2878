// SPDX-License-Identifier: Apache-2.0 OR MIT
//! newlib's heap, tracked by the calls of its functions: allocated bytes, and growth by `_sbrk`.

use std::collections::HashMap;

use super::functions::{FunctionId, Functions};

/// Blocks that are followed at a time (some 20 MB): more than a megabyte has, with newlib's 8 bytes
/// beside each.
pub const MAX_BLOCKS: usize = 1 << 20;

/// Heap statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    /// Bytes allocated now, as requested.
    pub live: u64,
    /// The most bytes allocated at one time.
    pub peak: u64,
    /// Allocations that succeeded.
    pub allocations: u64,
    /// Those that failed.
    pub failures: u64,
    /// Growth of the heap by `_sbrk` at its highest, including the allocator's own data.
    pub grown: u64,
}

/// A function of newlib's allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// `_malloc_r(reent, size)`.
    Malloc,
    /// `_calloc_r(reent, count, size)`.
    Calloc,
    /// `_memalign_r(reent, alignment, size)`.
    Memalign,
    /// `_realloc_r(reent, old, size)`.
    Realloc,
    /// `_free_r(reent, old)`.
    Free,
    /// `_sbrk(increment)`.
    Break,
}

/// A call in progress.
#[derive(Clone, Copy, Debug)]
struct Call {
    role: Role,
    /// The call stack on which it runs ([`super::shadow::Calls::id`]).
    of: u32,
    /// The number of frames below it on that stack.
    depth: usize,
    /// R1 and R2, or R0 of `_sbrk`.
    arguments: [u32; 2],
}

/// Tracks calls of the allocator.
#[derive(Debug)]
pub struct HeapTracker {
    roles: HashMap<FunctionId, Role>,
    /// Outermost calls of the allocator, and calls of `_sbrk` within them.
    calls: Vec<Call>,
    blocks: HashMap<u32, u32>,
    first_end: Option<u32>,
    /// The statistics so far.
    pub heap: Heap,
    /// The most bytes allocated since the last mark.
    pub section_peak: u64,
    /// Whether there were more blocks than [`MAX_BLOCKS`].
    pub overflowed: bool,
}

impl HeapTracker {
    /// Finds the allocator's functions by name.
    pub fn new(functions: &Functions) -> Self {
        let role = |name: &str| {
            Some(match name {
                "_malloc_r" => Role::Malloc,
                "_calloc_r" => Role::Calloc,
                "_memalign_r" => Role::Memalign,
                "_realloc_r" => Role::Realloc,
                "_free_r" => Role::Free,
                "_sbrk" => Role::Break,
                _ => return None,
            })
        };
        let ids = 0..functions.count() as FunctionId;
        HeapTracker {
            roles: ids.filter_map(|id| Some((id, role(&functions.get(id).name)?))).collect(),
            calls: Vec::new(),
            blocks: HashMap::new(),
            first_end: None,
            heap: Heap::default(),
            section_peak: 0,
            overflowed: false,
        }
    }

    /// Whether the program contains newlib's allocator.
    pub fn is_present(&self) -> bool {
        !self.roles.is_empty()
    }

    /// A function was entered with these R0 to R3, at `depth` of the call stack `of`.
    pub fn entered(&mut self, function: FunctionId, of: u32, depth: usize, r: [u32; 4]) {
        if self.roles.is_empty() {
            return;
        }
        let Some(&role) = self.roles.get(&function) else { return };
        let arguments = if role == Role::Break { [r[0], 0] } else { [r[1], r[2]] };
        // The allocator calls itself (realloc calls malloc and free): only the outermost call
        // counts.
        let within = self.calls.iter().any(|call| call.of == of && call.role != Role::Break);
        // Functions that tail-call one another in a loop count as one call.
        let again = self.calls.last().is_some_and(|call| (call.of, call.depth) == (of, depth));
        let counts = if role == Role::Break { !again } else { !within };
        if counts {
            self.calls.push(Call { role, of, depth, arguments });
        }
    }

    /// Frames of the call stack `of` were left down to `depth`; `result` is R0.
    pub fn left(&mut self, of: u32, depth: usize, result: u32) {
        while let Some(index) =
            self.calls.iter().rposition(|call| call.of == of && call.depth >= depth)
        {
            let call = self.calls.remove(index);
            self.returned(call, result);
        }
    }

    /// A handler ended, perhaps in a function of the allocator that it tail-called. A block that it
    /// freed counts as freed; one that it allocated does not count, since its address is unknown.
    pub fn ended(&mut self, of: u32) {
        while let Some(index) = self.calls.iter().rposition(|call| call.of == of) {
            let call = self.calls.remove(index);
            if call.role == Role::Free {
                self.returned(call, 0);
            }
        }
    }

    fn returned(&mut self, call: Call, result: u32) {
        let [first, second] = call.arguments;
        match call.role {
            Role::Malloc => self.allocated(result, first),
            Role::Calloc => self.allocated(result, first.saturating_mul(second)),
            Role::Memalign => self.allocated(result, second),
            Role::Free => self.freed(first),
            Role::Realloc if second == 0 && first != 0 => self.freed(first),
            Role::Realloc => {
                // A failed realloc keeps the old block.
                if result != 0 {
                    self.freed(first);
                }
                self.allocated(result, second);
            }
            Role::Break => {
                if result == u32::MAX {
                    return;
                }
                let first_end = *self.first_end.get_or_insert(result);
                let end = result.wrapping_add(first);
                self.heap.grown = self.heap.grown.max(u64::from(end.saturating_sub(first_end)));
            }
        }
    }

    fn allocated(&mut self, block: u32, bytes: u32) {
        if block == 0 {
            self.heap.failures += 1;
            return;
        }
        self.heap.allocations += 1;
        if self.blocks.len() >= MAX_BLOCKS && !self.blocks.contains_key(&block) {
            self.overflowed = true;
            return;
        }
        // The address may be known from a block whose release was not seen.
        let before = self.blocks.insert(block, bytes).unwrap_or(0);
        self.heap.live = self.heap.live - u64::from(before) + u64::from(bytes);
        self.heap.peak = self.heap.peak.max(self.heap.live);
        self.section_peak = self.section_peak.max(self.heap.live);
    }

    fn freed(&mut self, block: u32) {
        if let Some(bytes) = self.blocks.remove(&block) {
            self.heap.live -= u64::from(bytes);
        }
    }
}
