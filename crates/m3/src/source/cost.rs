// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory that source lines of a file would take, before any is taken.
//!
//! addr2line decodes abbreviations, ranges and line programs once for each unit that refers to
//! them, and keeps the result, so a small file whose units share them takes gigabytes.

use std::mem::size_of;

use addr2line::gimli::constants::{DW_AT_stmt_list, DW_FORM_implicit_const};
use addr2line::gimli::{
    AttributeValue, DebugAbbrevOffset, DebugLineOffset, Dwarf, EndianSlice, Error, FileEntry,
    Reader as _, RunTimeEndian, Section, Unit, UnitHeader, UnitType,
};

type Reader<'a> = EndianSlice<'a, RunTimeEndian>;

/// The most that source lines may take, bytes. A program of 4 MB of code with a thousand units
/// takes a fifth.
pub(super) const MAX_BYTES: u64 = 512 << 20;

/// A unit, with its tables.
const UNIT: u64 = 1024;
/// A byte of abbreviations: five bytes at least become a structure with room for five attributes.
const ABBREVIATIONS: u64 = 32;
/// A byte of a line program: a special opcode becomes a row of two 64-bit and two 32-bit numbers.
const ROW: u64 = 24;
/// A range of addresses: its ends, the lowest of those after it, and its unit.
const RANGE: u64 = 32;
/// A byte of `.debug_aranges`, whose ranges have eight.
const ARANGES: u64 = RANGE / 8;
/// A byte of a line program's header while it is read: a file's name may be a byte.
const HEADER: u64 = 128;
/// The shortest DW_LNE_define_file: escape, length, opcode, an empty name, three numbers.
const DEFINE_FILE: u64 = 7;

/// The lines would take more than [`MAX_BYTES`].
pub(super) struct TooMuch;

/// Adds up what is taken.
struct Budget {
    left: u64,
}

impl Budget {
    fn take(&mut self, bytes: u64) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(bytes).ok_or(TooMuch)?;
        Ok(())
    }

    /// The same of so many things of a size.
    fn take_each(&mut self, count: usize, bytes: u64) -> Result<(), TooMuch> {
        self.take((count as u64).saturating_mul(bytes))
    }
}

/// Refuses what would take more than [`MAX_BYTES`]. Damaged units are left to whoever reads them.
pub(super) fn check(dwarf: &Dwarf<Reader<'_>>) -> Result<(), TooMuch> {
    let mut budget = Budget { left: MAX_BYTES };
    budget.take_each(dwarf.debug_aranges.reader().len(), ARANGES)?;
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if matches!(header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. }) {
            continue;
        }
        budget.take(UNIT)?;
        let bytes = abbreviation_bytes(dwarf, header.debug_abbrev_offset());
        budget.take_each(bytes, ABBREVIATIONS)?;
        let Ok(abbreviations) = dwarf.debug_abbrev.abbreviations(header.debug_abbrev_offset())
        else {
            continue;
        };
        if let Some(at) = line_program(&header, &abbreviations) {
            Budget { left: budget.left }.take_each(header_bytes(dwarf, at), HEADER)?;
        }
        let unit = Unit::new_with_abbreviations(dwarf, header, abbreviations.into());
        if let Ok(unit) = unit {
            check_unit(dwarf, &unit, &mut budget)?;
        }
    }
    Ok(())
}

/// The length of a unit's abbreviations, as far as they can be read.
fn abbreviation_bytes(dwarf: &Dwarf<Reader<'_>>, at: DebugAbbrevOffset) -> usize {
    let mut input = *dwarf.debug_abbrev.reader();
    if input.skip(at.0).is_err() {
        return 0;
    }
    let whole = input.len();
    // An error ends them as a code of zero does.
    let _ = skip_abbreviations(&mut input);
    whole - input.len()
}

/// DWARF 5 section 7.5.3.
fn skip_abbreviations(input: &mut Reader<'_>) -> Result<(), Error> {
    while input.read_uleb128()? != 0 {
        input.read_uleb128()?;
        input.read_u8()?;
        loop {
            let (name, form) = (input.read_uleb128()?, input.read_uleb128()?);
            if form == u64::from(DW_FORM_implicit_const.0) {
                input.read_sleb128()?;
            }
            if (name, form) == (0, 0) {
                break;
            }
        }
    }
    Ok(())
}

/// The place of a unit's line program.
fn line_program(
    header: &UnitHeader<Reader<'_>>,
    abbreviations: &addr2line::gimli::Abbreviations,
) -> Option<DebugLineOffset> {
    let mut entries = header.entries(abbreviations);
    entries.next_dfs().ok()?;
    match entries.current()?.attr_value(DW_AT_stmt_list).ok()?? {
        AttributeValue::DebugLineRef(at) => Some(at),
        _ => None,
    }
}

/// The length of a line program's header, as it says.
fn header_bytes(dwarf: &Dwarf<Reader<'_>>, at: DebugLineOffset) -> usize {
    let read = || -> Result<usize, Error> {
        let mut input = *dwarf.debug_line.reader();
        input.skip(at.0)?;
        let (length, format) = input.read_initial_length()?;
        let mut rest = input.split(length)?;
        if rest.read_u16()? >= 5 {
            // The sizes of addresses and segment selectors.
            rest.skip(2)?;
        }
        Ok(rest.read_length(format)?.min(rest.len()))
    };
    read().unwrap_or(0)
}

/// A unit's ranges and its line program.
fn check_unit<'a>(
    dwarf: &Dwarf<Reader<'a>>,
    unit: &Unit<Reader<'a>>,
    budget: &mut Budget,
) -> Result<(), TooMuch> {
    if let Ok(mut ranges) = dwarf.unit_ranges(unit) {
        while let Ok(Some(_)) = ranges.next() {
            budget.take(RANGE)?;
        }
    }
    let folder = unit.comp_dir.map_or(0, |folder| folder.len()) as u64;
    budget.take(folder + unit.name.map_or(0, |name| name.len()) as u64)?;
    let Some(program) = &unit.line_program else { return Ok(()) };
    let header = program.header();
    let opcodes = header.raw_program_buf().len();
    budget.take_each(opcodes, ROW)?;
    let length = |text: AttributeValue<Reader<'a>>| {
        dwarf.attr_string(unit, text).map_or(0, |text| text.len() as u64)
    };
    let directories = header.include_directories();
    let mut longest = 0;
    for directory in directories {
        let bytes = length(*directory);
        longest = longest.max(bytes);
        budget.take(size_of::<AttributeValue<Reader<'_>>>() as u64 + bytes)?;
    }
    // A file is kept with its path: the unit's folder, its own, and its name.
    let path = size_of::<String>() as u64 + folder + longest;
    for file in header.file_names() {
        budget.take(size_of::<FileEntry<Reader<'_>>>() as u64 + path + length(file.path_name()))?;
    }
    budget.take((opcodes as u64 / DEFINE_FILE).saturating_mul(folder + longest))
}

#[cfg(test)]
mod tests {
    use addr2line::gimli::SectionId;

    use super::*;

    /// A unit of `.debug_info` that claims all addresses, with its abbreviation and line program.
    const UNIT_ENTRY: [u8; 13] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f];
    /// DW_TAG_compile_unit with DW_AT_stmt_list, DW_AT_low_pc and DW_AT_high_pc, then the end.
    const ABBREVIATION: [u8; 12] = [1, 0x11, 0, 0x10, 0x17, 0x11, 0x01, 0x12, 0x06, 0, 0, 0];

    fn with_length(content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32).to_le_bytes(), content].concat()
    }

    /// DWARF 4 units, the abbreviations at offset 0, and one line program of version 2 with this
    /// name of a file and so many rows.
    fn sections(units: usize, file: &str, rows: usize) -> [Vec<u8>; 3] {
        let unit = with_length(&[&[4, 0, 0, 0, 0, 0, 4], &UNIT_ENTRY[..]].concat());
        let opcodes = [1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0];
        let header = [&opcodes[..], file.as_bytes(), &[0, 0, 0, 0, 0]].concat();
        let program = [&[0, 5, 2, 0, 0, 0x10, 0][..], &vec![30; rows], &[0, 1, 1]].concat();
        let line = [&[2, 0][..], &with_length(&header), &program].concat();
        [ABBREVIATION.to_vec(), unit.repeat(units), with_length(&line)]
    }

    fn is_refused([abbrev, info, line]: &[Vec<u8>; 3]) -> bool {
        let section = |id| -> Result<Reader<'_>, Error> {
            let content: &[u8] = match id {
                SectionId::DebugAbbrev => abbrev,
                SectionId::DebugInfo => info,
                SectionId::DebugLine => line,
                _ => &[],
            };
            Ok(EndianSlice::new(content, RunTimeEndian::Little))
        };
        check(&Dwarf::load(section).expect("sections")).is_err()
    }

    #[test]
    fn units_that_share_a_line_program_are_refused_by_what_they_take_together() {
        // Each decodes it anew: 103 kB of a file had taken 2.3 GB.
        assert!(is_refused(&sections(2400, "a.c", 40_000)));
        assert!(!is_refused(&sections(240, "a.c", 40_000)));
        assert!(!is_refused(&sections(1, "a.c", 4_000_000)));
        assert!(is_refused(&sections(1, "a.c", 40_000_000)));
    }

    #[test]
    fn units_that_share_a_long_file_name_are_refused() {
        assert!(is_refused(&sections(2400, &"x".repeat(400_000), 1)));
        assert!(!is_refused(&sections(2400, &"x".repeat(4000), 1)));
    }

    #[test]
    fn units_that_share_long_abbreviations_are_refused() {
        let with_abbreviations = |units, count: u16| {
            let mut made = sections(units, "a.c", 1);
            made[0].pop();
            for code in 2..count {
                // A tag and a code of two bytes each, without children and attributes.
                let [low, high] = [code as u8 | 0x80, (code >> 7) as u8];
                made[0].extend([low, high, 0x2e, 0, 0, 0]);
            }
            made[0].push(0);
            made
        };
        assert!(is_refused(&with_abbreviations(2400, 8000)));
        assert!(!is_refused(&with_abbreviations(2400, 200)));
    }

    #[test]
    fn units_without_number_are_refused() {
        assert!(is_refused(&sections(600_000, "a.c", 1)));
        assert!(!is_refused(&sections(60_000, "a.c", 1)));
    }
}
