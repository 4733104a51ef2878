// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cycles that depend on operands and outcomes.

use super::{Cycles, Rules};

/// Costs that are known only at execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandCycles {
    /// Added by a taken conditional branch.
    pub taken: Cycles,
    /// Added by an unaligned load in two and in three parts; then the same for a store.
    unaligned: [[Cycles; 2]; 2],
    /// Of exception entry.
    pub exception_entry: Cycles,
    /// Of exception return.
    pub exception_return: Cycles,
    /// Of tail-chaining from one handler to the next.
    pub tail_chain: Cycles,
    /// Of UMULL and SMULL, by the number of large operands; then of UMLAL and SMLAL.
    long_multiply: [[Cycles; 3]; 2],
    divide_least: Cycles,
    divide_base: Cycles,
}

impl OperandCycles {
    /// The operand-dependent part of the rules.
    pub fn new(rules: &Rules) -> Self {
        OperandCycles {
            taken: rules.branch_taken.cycles(),
            unaligned: [
                [&rules.unaligned_load, &rules.unaligned_load_byte],
                [&rules.unaligned_store, &rules.unaligned_store_byte],
            ]
            .map(|form| form.map(super::Rule::cycles)),
            exception_entry: rules.exception_entry.cycles(),
            exception_return: rules.exception_return.cycles(),
            tail_chain: rules.tail_chain.cycles(),
            long_multiply: [
                [&rules.long_multiply_small, &rules.long_multiply_mixed, &rules.long_multiply],
                [
                    &rules.long_multiply_accumulate_small,
                    &rules.long_multiply_accumulate_mixed,
                    &rules.long_multiply_accumulate,
                ],
            ]
            .map(|form| form.map(super::Rule::cycles)),
            divide_least: rules.divide_least.cycles(),
            divide_base: rules.divide_base.cycles(),
        }
    }

    /// Cycles that an unaligned access adds, `parts` being 2 or 3.
    #[inline]
    pub fn unaligned(&self, store: bool, parts: u32) -> Cycles {
        self.unaligned[usize::from(store)][usize::from(parts > 2)]
    }

    /// Cycles of a multiplication with a 64-bit result.
    #[inline]
    pub fn long_multiply(&self, signed: bool, accumulate: bool, n: u32, m: u32) -> Cycles {
        let large = usize::from(is_large(signed, n)) + usize::from(is_large(signed, m));
        self.long_multiply[usize::from(accumulate)][large]
    }

    /// Cycles of a division.
    #[inline]
    pub fn divide(&self, signed: bool, n: u32, m: u32) -> Cycles {
        let magnitude = |value: u32| if signed { (value as i32).unsigned_abs() } else { value };
        let (n, m) = (magnitude(n), magnitude(m));
        if m == 0 || n < m {
            return self.divide_least;
        }
        // From 1 to 32 bits; the lower reading rounds the groups of four down, the upper one up.
        let bits = u64::from(m.leading_zeros() - n.leading_zeros()) + 1;
        self.divide_base + Cycles { low: bits / 4, high: bits.div_ceil(4) }
    }
}

fn is_large(signed: bool, value: u32) -> bool {
    let magnitude = if signed { (value as i32).unsigned_abs() } else { value };
    magnitude >= 1 << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> OperandCycles {
        OperandCycles::new(&Rules::cortex_m3().expect("the rules are read"))
    }

    #[test]
    fn division_takes_2_to_12_cycles() {
        let costs = costs();
        let mut widest = Cycles::both(7);
        for n in [0, 1, 2, 15, 16, 255, 65_535, 1 << 30, u32::MAX] {
            for m in [0, 1, 2, 3, 16, 1000, u32::MAX] {
                for signed in [false, true] {
                    let cycles = costs.divide(signed, n, m);
                    widest.low = widest.low.min(cycles.low);
                    widest.high = widest.high.max(cycles.high);
                    assert!(cycles.low <= cycles.high);
                }
            }
        }
        assert_eq!(widest, Cycles { low: 2, high: 12 });
    }

    #[test]
    fn long_multiplication_cycles_by_operand_size() {
        let costs = costs();
        assert_eq!(costs.long_multiply(false, false, 0xffff, 0xffff), Cycles { low: 3, high: 4 });
        assert_eq!(costs.long_multiply(false, false, 0xffff, 0x1_0000), Cycles { low: 4, high: 5 });
        assert_eq!(costs.long_multiply(false, false, 0x1_0000, u32::MAX), Cycles::both(5));
        assert_eq!(costs.long_multiply(true, false, u32::MAX, 1), Cycles { low: 3, high: 4 });
        assert_eq!(costs.long_multiply(false, true, u32::MAX, u32::MAX), Cycles::both(7));
    }
}
