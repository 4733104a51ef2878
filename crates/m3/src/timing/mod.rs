// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cycle counts: rules as data ([`Rules::cortex_m3`], from `rules.toml`), and their application.
//!
//! The cost of an instruction mostly follows from itself and its neighbours ([`Rules::cost`]);
//! operands, taken branches and unaligned addresses add the rest ([`OperandCycles`]).

mod neighbours;
mod operand;

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::Deserialize;

pub use operand::OperandCycles;

/// Cycles by both readings of the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cycles {
    /// The lower end of the band.
    pub low: u64,
    /// The upper end, which comparisons use.
    pub high: u64,
}

impl Cycles {
    /// The same number by both readings.
    pub const fn both(cycles: u64) -> Self {
        Cycles { low: cycles, high: cycles }
    }
}

impl Add for Cycles {
    type Output = Cycles;
    #[inline]
    fn add(self, other: Cycles) -> Cycles {
        Cycles { low: self.low.wrapping_add(other.low), high: self.high.wrapping_add(other.high) }
    }
}

/// Wraps: a difference may be negative until it is added to a clock.
impl Sub for Cycles {
    type Output = Cycles;
    #[inline]
    fn sub(self, other: Cycles) -> Cycles {
        Cycles { low: self.low.wrapping_sub(other.low), high: self.high.wrapping_sub(other.high) }
    }
}

impl AddAssign for Cycles {
    #[inline]
    fn add_assign(&mut self, other: Cycles) {
        *self = *self + other;
    }
}

impl fmt::Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low == self.high {
            write!(f, "{}", self.high)
        } else {
            write!(f, "{} to {}", self.low, self.high)
        }
    }
}

/// Where a rule's figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// The source states it.
    Published,
    /// The source gives a range; the choice within it is our reading.
    Assumed,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What it is about.
    pub what: String,
    /// Cycles by the lower reading.
    pub low: u64,
    /// Cycles by the upper reading.
    pub high: u64,
    /// Where the figures come from.
    pub source: String,
    /// Whether the source states them.
    pub kind: RuleKind,
}

impl Rule {
    /// Both readings.
    pub fn cycles(&self) -> Cycles {
        Cycles { low: self.low, high: self.high }
    }
}

/// All rules; each field is described by the `what` of its entry in `rules.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Rules {
    pub data: Rule,
    pub special_register: Rule,
    pub data_barrier: Rule,
    pub instruction_barrier: Rule,
    pub multiply_accumulate: Rule,
    pub long_multiply_small: Rule,
    pub long_multiply_mixed: Rule,
    pub long_multiply: Rule,
    pub long_multiply_accumulate_small: Rule,
    pub long_multiply_accumulate_mixed: Rule,
    pub long_multiply_accumulate: Rule,
    pub divide_least: Rule,
    pub divide_base: Rule,
    pub load: Rule,
    pub load_pipelined: Rule,
    pub store: Rule,
    pub store_register_offset: Rule,
    pub store_indexed_after_load: Rule,
    pub store_before_load: Rule,
    pub store_same_base: Rule,
    pub address_from_data_processing: Rule,
    pub multiple_base: Rule,
    pub branch_taken: Rule,
    pub branch_register: Rule,
    pub load_to_pc: Rule,
    pub table_branch: Rule,
    pub if_then_folded: Rule,
    pub if_then: Rule,
    pub unaligned_load: Rule,
    pub unaligned_load_byte: Rule,
    pub unaligned_store: Rule,
    pub unaligned_store_byte: Rule,
    pub exception_entry: Rule,
    pub exception_return: Rule,
    pub tail_chain: Rule,
}

/// The text of the rules, as [`Rules::cortex_m3`] reads it.
pub const CORTEX_M3: &str = include_str!("rules.toml");

impl Rules {
    /// The rules of `rules.toml`.
    ///
    /// # Errors
    /// Never for the built-in text, which a test parses.
    pub fn cortex_m3() -> Result<Rules, toml::de::Error> {
        toml::from_str(CORTEX_M3)
    }
}
