// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program's use of flash and RAM: bytes by section, by symbol, and by the memories of a chip.

use object::elf::{PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOBITS};
use object::read::elf::{ElfFile32, ProgramHeader};
use object::{Endianness, Object, ObjectSection, SectionFlags, SectionKind};

use crate::chip::Chip;
use crate::program::{Program, ProgramError, Symbol};

/// The content of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Code, and the literals between it.
    Text,
    /// Constants.
    Rodata,
    /// Initialised variables: in flash and in RAM.
    Data,
    /// Zero-initialised variables, and space for stack and heap.
    Bss,
}

impl Kind {
    /// Every one.
    pub const ALL: [Kind; 4] = [Kind::Text, Kind::Rodata, Kind::Data, Kind::Bss];

    /// Its name in linker scripts and binutils.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Rodata => "rodata",
            Kind::Data => "data",
            Kind::Bss => "bss",
        }
    }

    /// Whether it takes flash.
    pub fn is_in_flash(self) -> bool {
        self != Kind::Bss
    }

    /// Whether it takes RAM.
    pub fn is_in_memory(self) -> bool {
        matches!(self, Kind::Data | Kind::Bss)
    }
}

/// A section that is loaded or allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Its address when the program runs.
    pub address: u32,
    /// Its bytes.
    pub bytes: u32,
}

/// Bytes of one symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolSize {
    /// Its name, the first of several aliases. Empty for bytes without a symbol.
    pub name: String,
    /// Its section.
    pub section: String,
    /// The section's content.
    pub kind: Kind,
    /// Its address; 0 for bytes without a symbol.
    pub address: u32,
    /// Its bytes.
    pub bytes: u32,
}

/// Use of one of a chip's memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionUse {
    /// The memory.
    pub name: String,
    /// Its bytes.
    pub bytes: u32,
    /// Its bytes in use.
    pub used: u32,
}

/// The sizes of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Sections, by address.
    pub sections: Vec<Section>,
    /// Symbols, and bytes without one by section; the largest first.
    pub symbols: Vec<SymbolSize>,
    /// The chip's memories.
    pub regions: Vec<RegionUse>,
}

impl Sizes {
    /// Measures an ELF file.
    ///
    /// # Errors
    /// [`ProgramError`], as [`Program::parse_any_core`] returns it: sizes are the same for any
    /// core.
    pub fn of(file: &[u8], chip: &Chip) -> Result<Self, ProgramError> {
        let program = Program::parse_any_core(file)?;
        let elf = ElfFile32::<Endianness>::parse(file)
            .map_err(|error| ProgramError::NotElf(error.to_string()))?;
        let mut sections: Vec<Section> =
            elf.sections().filter_map(|section| of_chip(&section)).collect();
        sections.sort_by_key(|section| (section.address, section.bytes));
        let mut symbols: Vec<SymbolSize> =
            sections.iter().flat_map(|section| by_symbol(section, &program.symbols)).collect();
        symbols.sort_by(|a, b| (b.bytes, a.address, &a.name).cmp(&(a.bytes, b.address, &b.name)));
        let regions = regions(&sections, &loads(&elf), chip);
        Ok(Sizes { sections, symbols, regions })
    }

    /// Bytes of a kind.
    pub fn total(&self, kind: Kind) -> u64 {
        self.sections
            .iter()
            .filter(|section| section.kind == kind)
            .map(|section| u64::from(section.bytes))
            .sum()
    }

    /// Bytes in flash.
    pub fn flash(&self) -> u64 {
        Kind::ALL.into_iter().filter(|kind| kind.is_in_flash()).map(|kind| self.total(kind)).sum()
    }

    /// Bytes of RAM.
    pub fn memory(&self) -> u64 {
        Kind::ALL.into_iter().filter(|kind| kind.is_in_memory()).map(|kind| self.total(kind)).sum()
    }
}

fn of_chip<'data, S: ObjectSection<'data>>(section: &S) -> Option<Section> {
    let SectionFlags::Elf { sh_flags } = section.flags() else { return None };
    let has = |flag: u32| sh_flags & u64::from(flag) != 0;
    if !has(SHF_ALLOC) || section.size() == 0 {
        return None;
    }
    let empty = section.kind() == SectionKind::UninitializedData
        || matches!(section.kind(), SectionKind::Elf(kind) if kind == SHT_NOBITS);
    let kind = if empty {
        Kind::Bss
    } else if has(SHF_EXECINSTR) {
        Kind::Text
    } else if has(SHF_WRITE) {
        Kind::Data
    } else {
        Kind::Rodata
    };
    let name = String::from_utf8_lossy(section.name_bytes().unwrap_or_default()).into_owned();
    Some(Section { name, kind, address: section.address() as u32, bytes: section.size() as u32 })
}

/// Assigns each byte of a section to one symbol or to none: aliases and nested symbols count once.
fn by_symbol(section: &Section, symbols: &[Symbol]) -> Vec<SymbolSize> {
    let (start, end) =
        (u64::from(section.address), u64::from(section.address) + u64::from(section.bytes));
    let inside =
        |symbol: &&Symbol| symbol.bytes > 0 && (start..end).contains(&u64::from(symbol.address));
    let mut own: Vec<&Symbol> = symbols.iter().filter(inside).collect();
    own.sort_by(|a, b| (a.address, b.bytes, &a.name).cmp(&(b.address, a.bytes, &b.name)));
    let row = |name: &str, address, bytes| SymbolSize {
        name: name.to_owned(),
        section: section.name.clone(),
        kind: section.kind,
        address,
        bytes,
    };
    let (mut rows, mut covered, mut named) = (Vec::new(), start, 0);
    for symbol in own {
        let last = (u64::from(symbol.address) + u64::from(symbol.bytes)).min(end);
        let bytes = last.saturating_sub(covered.max(u64::from(symbol.address)));
        if bytes > 0 {
            rows.push(row(&symbol.name, symbol.address, bytes as u32));
            covered = last;
            named += bytes;
        }
    }
    let rest = end - start - named;
    if rest > 0 {
        rows.push(row("", 0, rest as u32));
    }
    rows
}

/// The virtual address, load address and size of each segment.
fn loads(elf: &ElfFile32<'_, Endianness>) -> Vec<(u32, u32, u32)> {
    let endian = elf.endian();
    let segments =
        elf.elf_program_headers().iter().filter(|segment| segment.p_type(endian) == PT_LOAD);
    segments
        .map(|segment| (segment.p_vaddr(endian), segment.p_paddr(endian), segment.p_filesz(endian)))
        .collect()
}

fn regions(sections: &[Section], loads: &[(u32, u32, u32)], chip: &Chip) -> Vec<RegionUse> {
    let mut regions: Vec<RegionUse> = Vec::new();
    for region in &chip.regions {
        let alias = |address: u32| {
            chip.aliases.iter().find(|one| address.wrapping_sub(one.base) < one.bytes)
        };
        let holds = |address: u32| {
            let own = alias(address).map_or(address, |one| address - one.base + one.of);
            own.wrapping_sub(region.base) < region.bytes
        };
        let mut used = 0u32;
        for section in sections {
            let load = loads
                .iter()
                .find(|(at, _, bytes)| {
                    section.kind != Kind::Bss && section.address.wrapping_sub(*at) < *bytes
                })
                .map(|(at, from, _)| from.wrapping_add(section.address.wrapping_sub(*at)));
            let copied = load.is_some_and(|load| load != section.address && holds(load));
            let times = u32::from(holds(section.address)) + u32::from(copied);
            used = used.saturating_add(section.bytes.saturating_mul(times));
        }
        regions.push(RegionUse { name: region.name.clone(), bytes: region.bytes, used });
    }
    regions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str, address: u32, bytes: u32) -> Symbol {
        Symbol { name: name.into(), address, bytes, is_function: true }
    }

    #[test]
    fn aliased_nested_and_overlapping_symbols_count_each_byte_once() {
        let section = Section { name: ".text".into(), kind: Kind::Text, address: 100, bytes: 50 };
        let symbols = [
            symbol("before", 90, 5),
            symbol("a", 100, 10),
            symbol("alias", 100, 10),
            symbol("within", 104, 2),
            symbol("overlaps", 108, 6),
            symbol("too_long", 140, 100),
            symbol("no_size", 130, 0),
        ];
        let rows = by_symbol(&section, &symbols);
        let found: Vec<(&str, u32)> =
            rows.iter().map(|row| (row.name.as_str(), row.bytes)).collect();
        assert_eq!(found, [("a", 10), ("overlaps", 4), ("too_long", 10), ("", 26)]);
        assert_eq!(rows.iter().map(|row| row.bytes).sum::<u32>(), section.bytes);
    }
}
