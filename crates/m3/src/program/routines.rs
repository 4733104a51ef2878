// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How far functions extend.

use std::ops::Range;

use super::Symbol;

/// The longest extent of a function without a size, so that distant code is not attributed to it.
pub(crate) const MAX_UNSIZED_BYTES: u32 = 1 << 16;

/// Functions without overlaps. `functions` are sorted by address, `code` has the sections with
/// code, by address. Assembly often omits sizes: such a function extends to the next one, or to the
/// end of its section.
pub(super) fn extents(functions: Vec<Symbol>, code: &[Range<u32>]) -> Vec<Symbol> {
    let mut routines: Vec<Symbol> = Vec::new();
    for function in functions {
        match routines.last_mut() {
            // Of several aliases the last one, as in `Program::symbol_at`.
            Some(last) if last.address == function.address => *last = function,
            _ => routines.push(function),
        }
    }
    let mut next = u32::MAX;
    for routine in routines.iter_mut().rev() {
        let start = routine.address;
        let most = match routine.bytes {
            0 => section_end(code, start).min(start.saturating_add(MAX_UNSIZED_BYTES)) - start,
            bytes => bytes,
        };
        routine.bytes = most.min(next - start);
        next = start;
    }
    routines
}

/// Of a section that contains `address`; without sections no bound is known.
fn section_end(code: &[Range<u32>], address: u32) -> u32 {
    let after = code.partition_point(|section| section.start <= address);
    let section = after.checked_sub(1).and_then(|at| code.get(at));
    section.filter(|section| section.contains(&address)).map_or(u32::MAX, |section| section.end)
}

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
        let routines = extents(names.chain(others).collect(), &[]);
        let seen: Vec<_> =
            routines.iter().map(|one| (one.name.as_str(), one.address, one.bytes)).collect();
        assert_eq!(
            seen,
            [("name999999", 0x100, 8), ("open", 0x200, 0x100), ("after", 0x300, 0x10)]
        );
    }

    #[test]
    fn function_without_a_size_ends_with_its_section() {
        let functions = vec![symbol("first".into(), 0x104, 0), symbol("second".into(), 0x900, 0)];
        let bytes = |code: &[Range<u32>]| {
            let routines = extents(functions.clone(), code);
            routines.iter().map(|one| one.bytes).collect::<Vec<_>>()
        };
        assert_eq!(bytes(&[0x100..0x200, 0x800..0x902]), [0xfc, 2]);
        assert_eq!(bytes(&[0x100..0xa00, 0xb00..0xc00]), [0x7fc, 0x100]);
        assert_eq!(bytes(&[]), [0x7fc, MAX_UNSIZED_BYTES]);
    }
}
