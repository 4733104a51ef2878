// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs: ELF files and their symbols; [`Program::load`] puts them into a chip.

mod attributes;
mod load;
mod routines;

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use object::elf::{EM_ARM, PT_LOAD, STT_FUNC, STT_NOTYPE, STT_OBJECT};
use object::read::elf::{ElfFile32, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolFlags};

pub(crate) use self::routines::MAX_UNSIZED_BYTES;
use crate::core::Fault;

/// Why an ELF file cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// Not a 32-bit ELF file, or a damaged one.
    #[error(
        "not a valid 32-bit ELF file: {0}; link the program anew with arm-none-eabi-gcc \
         -mcpu=cortex-m3 -mthumb"
    )]
    NotElf(String),
    /// For another processor.
    #[error(
        "this ELF file is for machine {0}, not for Arm (40): compile it with arm-none-eabi-gcc \
         -mcpu=cortex-m3 -mthumb"
    )]
    NotArm(u16),
    /// For another core of Arm's, whose instructions or timing differ.
    #[error(
        "this ELF file is for {0}, and the simulated core is a Cortex-M3, whose timing differs: \
         compile and link it with -mcpu=cortex-m3, or run it with the timing of a Cortex-M3 by \
         --any-core"
    )]
    OtherCore(String),
    /// Big-endian.
    #[error("this ELF file is big-endian: compile it for little-endian (-mlittle-endian)")]
    BigEndian,
    /// Not linked.
    #[error("this ELF file is an object file or a library: link it to an executable")]
    NotExecutable,
    /// A segment does not fit.
    #[error(
        "a segment of {bytes} bytes at {address:#010x} lies outside the memories of {chip} \
         ({memories}): link for that chip, or choose another with --chip"
    )]
    OutsideMemory {
        /// Its address.
        address: u32,
        /// Its length.
        bytes: u32,
        /// The chip.
        chip: String,
        /// Its memories.
        memories: String,
    },
    /// Nothing to load.
    #[error("this ELF file has no segment to load: link it with code")]
    Empty,
    /// Two segments have overlapping load addresses.
    #[error(
        "segments at {0:#010x} and {1:#010x} of this ELF file overlap: give each section its own \
         load address (LMA)"
    )]
    Overlap(u32, u32),
    /// Too many bytes of symbol names.
    #[error("the symbol names of this ELF file exceed {MAX_NAMES} bytes in total: strip it")]
    Names,
    /// No object of that name.
    #[error("no symbol {name} with a size: {known}")]
    NoObject {
        /// The name.
        name: String,
        /// A hint.
        known: String,
    },
    /// The chip cannot start from the vector table.
    #[error("the vector table at {table:#010x} has {what}: the chip would lock up at reset")]
    VectorTable {
        /// Where it is.
        table: u32,
        /// The invalid entry.
        what: String,
    },
    /// Reset faults.
    #[error("the program cannot start: {0}")]
    Start(Fault),
}

/// A function or an object of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Its address, without the Thumb bit.
    pub address: u32,
    /// Its length in bytes, 0 if the file does not give it.
    pub bytes: u32,
    /// Whether it is code.
    pub is_function: bool,
}

/// More than any linked program has. Names may share bytes in the file, so that a small file can
/// name far more.
const MAX_NAMES: usize = 64 << 20;

/// A linked program.
#[derive(Clone, Debug)]
pub struct Program {
    file: Arc<[u8]>,
    /// Load address and file range of each segment, by address, without overlaps.
    segments: Vec<(u32, Range<usize>)>,
    /// Virtual address and size in memory of each segment, including zero-initialised bytes.
    extents: Vec<(u32, u32)>,
    /// The entry point.
    pub entry: u32,
    /// Functions and objects, by address.
    pub symbols: Vec<Symbol>,
    /// Symbols without type and size, such as those of linker scripts.
    pub labels: Vec<(String, u32)>,
    /// Functions by address, without overlaps, with those of hand-written assembly that have
    /// neither type nor size.
    pub routines: Vec<Symbol>,
    /// The core that the file was built for, if it is not a Cortex-M3: its timing is another one.
    pub other_core: Option<String>,
    vectors: Option<u32>,
}

impl Program {
    /// Reads an ELF file.
    ///
    /// # Errors
    /// [`ProgramError`] if the file is not a program for this core.
    pub fn parse(file: &[u8]) -> Result<Self, ProgramError> {
        let program = Program::parse_any_core(file)?;
        match program.other_core {
            Some(core) => Err(ProgramError::OtherCore(core)),
            None => Ok(program),
        }
    }

    /// Reads an ELF file, also one for another core of Arm's.
    ///
    /// # Errors
    /// [`ProgramError`] if the file is not a program.
    pub fn parse_any_core(file: &[u8]) -> Result<Self, ProgramError> {
        let elf = ElfFile32::<Endianness>::parse(file)
            .map_err(|error| ProgramError::NotElf(error.to_string()))?;
        let endian = elf.endian();
        let header = elf.elf_header();
        let machine = header.e_machine(endian);
        if machine != EM_ARM {
            return Err(ProgramError::NotArm(machine));
        }
        if endian == Endianness::Big {
            return Err(ProgramError::BigEndian);
        }
        if header.e_type(endian) != object::elf::ET_EXEC {
            return Err(ProgramError::NotExecutable);
        }
        let attributes = elf.section_by_name(".ARM.attributes");
        let attributes = attributes.and_then(|section| section.data().ok()).unwrap_or_default();
        let other_core = attributes::other_core(attributes);
        let segments = segments(&elf, file)?;
        let Names { symbols, labels, routines } = symbols(&elf)?;
        let vectors = elf
            .sections()
            .find(|section| {
                matches!(
                    section.name(),
                    Ok(".isr_vector" | ".vectors" | ".vector_table" | ".intvecs")
                )
            })
            .map(|section| section.address() as u32);
        let file = Arc::from(file);
        let extents = elf
            .elf_program_headers()
            .iter()
            .filter(|segment| segment.p_type(endian) == PT_LOAD && segment.p_memsz(endian) != 0)
            .map(|segment| (segment.p_vaddr(endian), segment.p_memsz(endian)))
            .collect();
        Ok(Program {
            file,
            segments,
            extents,
            entry: header.e_entry(endian),
            symbols,
            labels,
            routines,
            other_core,
            vectors,
        })
    }

    /// Load address and content of each segment.
    pub fn segments(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.segments.iter().map(|(address, range)| {
            // `segments` checked the range.
            (*address, self.file.get(range.clone()).unwrap_or_default())
        })
    }

    /// A variable or function with a size, by its name.
    ///
    /// # Errors
    /// [`ProgramError::NoObject`] if there is no such symbol.
    pub fn object(&self, name: &str) -> Result<&Symbol, ProgramError> {
        let mut sized = self.symbols.iter().filter(|symbol| symbol.bytes > 0);
        sized.find(|symbol| symbol.name == name).ok_or_else(|| {
            let objects =
                self.symbols.iter().filter(|symbol| symbol.bytes > 0 && !symbol.is_function);
            let near = objects.max_by(|a, b| {
                let [a, b] = [a, b].map(|symbol| strsim::jaro_winkler(&symbol.name, name));
                a.total_cmp(&b)
            });
            let known = match near {
                Some(symbol) => format!("did you mean {}?", symbol.name),
                None => "the file has no symbols, link it without -s".to_owned(),
            };
            ProgramError::NoObject { name: name.to_owned(), known }
        })
    }

    /// The address of a linker-script symbol, a function or a variable.
    pub fn label(&self, name: &str) -> Option<u32> {
        let label =
            self.labels.iter().find(|(label, _)| label == name).map(|(_, address)| *address);
        label.or_else(|| {
            self.symbols.iter().find(|symbol| symbol.name == name).map(|symbol| symbol.address)
        })
    }

    /// The address of a place: a symbol, `symbol+0x1c` as [`Program::describe`] prints it, or
    /// `0x08000100`.
    pub fn place(&self, text: &str) -> Option<u32> {
        let number = |text: &str| {
            let digits = text.strip_prefix("0x")?;
            if digits.starts_with('+') { None } else { u32::from_str_radix(digits, 16).ok() }
        };
        if let Some(address) = number(text).or_else(|| self.label(text)) {
            return Some(address & !1);
        }
        let (symbol, offset) = text.rsplit_once('+')?;
        self.label(symbol)?.checked_add(number(offset)?).map(|address| address & !1)
    }

    /// The function or variable that contains an address.
    pub fn symbol_at(&self, address: u32) -> Option<&Symbol> {
        innermost(&self.symbols, address).or_else(|| {
            let after = self.routines.partition_point(|routine| routine.address <= address);
            let routine = self.routines.get(after.checked_sub(1)?)?;
            (address - routine.address < routine.bytes).then_some(routine)
        })
    }

    /// An address with its symbol and offset, as debuggers print it.
    pub fn describe(&self, address: u32) -> String {
        match self.symbol_at(address) {
            Some(symbol) if symbol.address == address => {
                format!("{address:#010x} <{}>", symbol.name)
            }
            Some(symbol) => {
                format!("{address:#010x} <{}+{:#x}>", symbol.name, address - symbol.address)
            }
            None => format!("{address:#010x}"),
        }
    }
}

/// Of the symbols that contain an address the innermost.
fn innermost(symbols: &[Symbol], address: u32) -> Option<&Symbol> {
    let after = symbols.partition_point(|symbol| symbol.address <= address);
    symbols[..after]
        .iter()
        .rev()
        .take(8)
        .find(|symbol| address - symbol.address < symbol.bytes.max(1))
}

/// The segments to load, as ranges of the file: thousands of headers may refer to the same bytes.
fn segments(
    elf: &ElfFile32<'_, Endianness>,
    file: &[u8],
) -> Result<Vec<(u32, Range<usize>)>, ProgramError> {
    let endian = elf.endian();
    let mut segments = Vec::new();
    for segment in elf.elf_program_headers() {
        if segment.p_type(endian) != PT_LOAD || segment.p_filesz(endian) == 0 {
            continue;
        }
        if segment.p_filesz(endian) > segment.p_memsz(endian) {
            return Err(ProgramError::NotElf(
                "a segment is larger in the file than in memory".into(),
            ));
        }
        let truncated =
            || ProgramError::NotElf("a segment extends beyond the end of the file".into());
        let content = segment.data(endian, file).map_err(|()| truncated())?;
        let start = segment.p_offset(endian) as usize;
        let end = start.checked_add(content.len()).ok_or_else(truncated)?;
        segments.push((segment.p_paddr(endian), start..end));
    }
    segments.sort_by_key(|(address, _)| *address);
    for pair in segments.windows(2) {
        if let [(first, content), (second, _)] = pair
            && content.len() > (second - first) as usize
        {
            return Err(ProgramError::Overlap(*first, *second));
        }
    }
    if segments.is_empty() { Err(ProgramError::Empty) } else { Ok(segments) }
}

/// What a file names.
struct Names {
    /// Functions and variables, by address.
    symbols: Vec<Symbol>,
    /// Labels without type and size.
    labels: Vec<(String, u32)>,
    /// [`Program::routines`].
    routines: Vec<Symbol>,
}

/// Whether a symbol without a type may be a routine: not one of a linker script at a section's end.
fn is_in_code<'data>(
    elf: &ElfFile32<'data, Endianness>,
    symbol: &impl ObjectSymbol<'data>,
) -> bool {
    let Some(section) = symbol.section_index().and_then(|at| elf.section_by_index(at).ok()) else {
        return false;
    };
    let within = symbol.address().wrapping_sub(section.address());
    symbol.is_global() && section.kind() == SectionKind::Text && within < section.size()
}

/// The sections with code, by address.
fn code(elf: &ElfFile32<'_, Endianness>) -> Vec<Range<u32>> {
    let mut code: Vec<Range<u32>> = elf
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
        .map(|section| {
            let start = section.address() as u32;
            start..start.saturating_add(section.size() as u32)
        })
        .collect();
    code.sort_by_key(|section| section.start);
    code
}

fn by_address(a: &Symbol, b: &Symbol) -> Ordering {
    (a.address, a.bytes, &a.name).cmp(&(b.address, b.bytes, &b.name))
}

fn symbols(elf: &ElfFile32<'_, Endianness>) -> Result<Names, ProgramError> {
    let mut bytes = 0;
    let (mut symbols, mut labels, mut code_labels) = (Vec::new(), Vec::new(), Vec::new());
    let code = code(elf);
    for symbol in elf.symbols() {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { continue };
        let Ok(name) = symbol.name() else { continue };
        let kind = st_info & 0xf;
        // $t, $d and $a mark code and data for disassemblers.
        if name.is_empty() || name.starts_with('$') || symbol.is_undefined() {
            continue;
        }
        bytes += name.len();
        if bytes > MAX_NAMES {
            return Err(ProgramError::Names);
        }
        let address = symbol.address() as u32;
        if kind == STT_FUNC || kind == STT_OBJECT {
            let is_function = kind == STT_FUNC;
            let address = if is_function { address & !1 } else { address };
            symbols.push(Symbol {
                name: name.to_owned(),
                address,
                bytes: symbol.size() as u32,
                is_function,
            });
        } else {
            if kind == STT_NOTYPE && is_in_code(elf, &symbol) {
                let address = address & !1;
                let name = name.to_owned();
                code_labels.push(Symbol { name, address, bytes: 0, is_function: true });
            }
            labels.push((name.to_owned(), address));
        }
    }
    symbols.sort_by(by_address);
    // A label inside a function that has a size, or at the address of one, is a part of it.
    code_labels.retain(|label| {
        let found = innermost(&symbols, label.address);
        !found.is_some_and(|symbol| symbol.is_function)
    });
    code_labels.extend(symbols.iter().filter(|symbol| symbol.is_function).cloned());
    code_labels.sort_by(by_address);
    Ok(Names { routines: routines::extents(code_labels, &code), symbols, labels })
}
