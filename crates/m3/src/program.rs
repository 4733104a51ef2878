// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs: ELF files, loaded.

use std::ops::Range;
use std::sync::Arc;

use object::elf::{EM_ARM, PT_LOAD, STT_FUNC, STT_OBJECT};
use object::read::elf::{ElfFile32, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolFlags};

use crate::chip::Chip;
use crate::core::Fault;
use crate::machine::Machine;
use crate::memory::Region;

/// Why an ELF file cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// Not an ELF file of 32 bits, or a broken one.
    #[error("this is no 32-bit ELF file: {0}")]
    NotElf(String),
    /// For another processor.
    #[error(
        "this ELF file is for machine {0}, not for Arm (40): compile it with arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb"
    )]
    NotArm(u16),
    /// Big-endian.
    #[error("this ELF file is big-endian: a Cortex-M3 here is little-endian")]
    BigEndian,
    /// Not linked.
    #[error("this ELF file is an object file or a library: link it to an executable")]
    NotExecutable,
    /// A segment does not fit.
    #[error(
        "a segment of {bytes} bytes at {address:#010x} is not in the memories of {chip} ({memories}): \
         link for that chip, or choose another with --chip"
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
    #[error("this ELF file has nothing to load")]
    Empty,
    /// Two segments are loaded to one place.
    #[error(
        "segments at {0:#010x} and {1:#010x} of this ELF file overlap: give each sections' load address (LMA) of its own"
    )]
    Overlap(u32, u32),
    /// Symbols whose names are one long text.
    #[error(
        "the names of this ELF file's symbols are longer than {MOST_NAMES} bytes together: strip it"
    )]
    Names,
    /// No object of that name.
    #[error("no object with a size is called {name}: {known}")]
    NoObject {
        /// The name.
        name: String,
        /// What there is instead.
        known: String,
    },
    /// The vector table is there, and the chip would not start by it.
    #[error("the vector table at {table:#010x} has {what}: the chip would lock up at reset")]
    VectorTable {
        /// Where it is.
        table: u32,
        /// What is wrong.
        what: String,
    },
    /// The start does not work.
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
    /// Its length in bytes, 0 where the file does not say.
    pub bytes: u32,
    /// Whether it is code.
    pub is_function: bool,
}

/// More than any linked program has; names that share their bytes in a small file may come to far more.
const MOST_NAMES: usize = 64 << 20;

/// A linked program.
#[derive(Clone, Debug)]
pub struct Program {
    file: Arc<[u8]>,
    /// Where each segment is loaded, and where it is in the file; by address, and none overlaps another.
    segments: Vec<(u32, Range<usize>)>,
    /// Where each segment is while the program runs, and its bytes there, zeros among them.
    extents: Vec<(u32, u32)>,
    /// The entry point.
    pub entry: u32,
    /// Functions and objects, by address.
    pub symbols: Vec<Symbol>,
    /// Symbols without type and size: a linker script's.
    pub labels: Vec<(String, u32)>,
    vectors: Option<u32>,
}

impl Program {
    /// Reads an ELF file.
    ///
    /// # Errors
    /// [`ProgramError`] says what is wrong with the file.
    pub fn parse(file: &[u8]) -> Result<Self, ProgramError> {
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
        let segments = segments(&elf, file)?;
        let (symbols, labels) = symbols(&elf)?;
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
            vectors,
        })
    }

    /// Puts the program into a chip and resets it.
    ///
    /// # Errors
    /// [`ProgramError`] where it does not fit the chip or cannot start.
    pub fn load(&self, machine: &mut Machine, chip: &Chip) -> Result<(), ProgramError> {
        for (address, content) in self.segments() {
            if !machine.core.memory.program(address, content) {
                return Err(self.outside(address, content.len() as u32, chip));
            }
        }
        for (address, bytes) in &self.extents {
            let holds = |region: &Region| {
                let within = address.wrapping_sub(region.base);
                within < region.bytes && *bytes <= region.bytes - within
            };
            if !chip.regions.iter().any(holds) {
                return Err(self.outside(*address, *bytes, chip));
            }
        }
        machine.semihosting.heap_info = self.heap_info(chip);
        machine.semihosting.stack_limit =
            self.stack_limit(machine, machine.semihosting.heap_info[2]);
        let table = self.vector_table(machine, chip)?;
        let result = match table {
            Some(table) => machine.core.reset(table),
            None => self.start_at_entry(machine, chip),
        };
        machine.core.system.priority_mask = chip.priority_mask;
        let stack = machine.core.registers.r[13];
        machine.core.stack_limit = match table {
            Some(_) => self.stack_limit(machine, stack),
            // Whether its start-up code keeps this stack is not known until it asks for it by SYS_HEAPINFO: newlib's
            // nosys has one elsewhere.
            None => self.named_limit(machine, stack).unwrap_or(0),
        };
        result.map_err(ProgramError::Start)
    }

    /// Address and content of what is loaded.
    pub fn segments(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.segments.iter().map(|(address, range)| {
            // The range was found in this file.
            (*address, self.file.get(range.clone()).unwrap_or_default())
        })
    }

    fn outside(&self, address: u32, bytes: u32, chip: &Chip) -> ProgramError {
        let memories: Vec<String> = chip
            .regions
            .iter()
            .map(|region| {
                format!("{} at {:#010x}, {} KiB", region.name, region.base, region.bytes / 1024)
            })
            .collect();
        ProgramError::OutsideMemory {
            address,
            bytes,
            chip: chip.name.to_owned(),
            memories: memories.join("; "),
        }
    }

    /// An object in memory, or a function, by its name.
    ///
    /// # Errors
    /// [`ProgramError::NoObject`] where there is none with a size.
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
                Some(symbol) => format!("the nearest is {}", symbol.name),
                None => "this file has none; link it without -s".to_owned(),
            };
            ProgramError::NoObject { name: name.to_owned(), known }
        })
    }

    /// The address of a linker script's symbol or of a function.
    pub fn label(&self, name: &str) -> Option<u32> {
        let label =
            self.labels.iter().find(|(label, _)| label == name).map(|(_, address)| *address);
        label.or_else(|| {
            self.symbols.iter().find(|symbol| symbol.name == name).map(|symbol| symbol.address)
        })
    }

    /// The function or object that an address is in.
    pub fn symbol_at(&self, address: u32) -> Option<&Symbol> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        // Where a smaller symbol lies within a larger one, the nearest start wins.
        self.symbols[..after]
            .iter()
            .rev()
            .take(8)
            .find(|symbol| address - symbol.address < symbol.bytes.max(1))
    }

    /// An address as people read it.
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

    /// Where a stack that begins at an address must not grow below: what the linker script calls its limit, or the end
    /// of static data below it, else the beginning of its memory.
    fn stack_limit(&self, machine: &Machine, stack: u32) -> u32 {
        let memory = machine.core.memory.region_of(stack.wrapping_sub(1));
        self.named_limit(machine, stack).or(memory.map(|region| region.base)).unwrap_or(0)
    }

    /// A limit counts where it is below the stack in the same memory: data may also be above it, or elsewhere.
    fn named_limit(&self, machine: &Machine, stack: u32) -> Option<u32> {
        let memory = machine.core.memory.region_of(stack.wrapping_sub(1))?;
        ["__StackLimit", "__stack_limit", "_sstack", "__bss_end__", "_ebss", "_end", "end"]
            .into_iter()
            .filter_map(|name| self.label(name))
            .find(|limit| (memory.base..=stack).contains(limit))
    }

    fn heap_info(&self, chip: &Chip) -> [u32; 4] {
        let data = chip.regions.iter().filter(|region| region.writable);
        let Some(memory) =
            data.max_by_key(|region| region.base == 0x2000_0000 || region.base == 0x1000_0000)
        else {
            return [0; 4];
        };
        let end = memory.base.wrapping_add(memory.bytes);
        let heap = ["end", "_end", "__end__"]
            .into_iter()
            .find_map(|name| self.label(name))
            .unwrap_or(memory.base);
        // A program that is linked to one memory has its heap there, and its stack may be in another.
        let holds =
            |region: &&Region| region.writable && heap.wrapping_sub(region.base) < region.bytes;
        let limit = chip
            .regions
            .iter()
            .find(holds)
            .map_or(end, |region| region.base.wrapping_add(region.bytes));
        [heap, limit, end, heap]
    }

    /// Where its section is, or where the chip looks.
    fn vector_table(&self, machine: &Machine, chip: &Chip) -> Result<Option<u32>, ProgramError> {
        let of_section = self.vectors.filter(|table| machine.core.memory.peek(*table).is_some());
        let table = of_section.unwrap_or(chip.vector_table);
        let memory = &machine.core.memory;
        let word = |at: u32| memory.peek(table.wrapping_add(at)).unwrap_or(0);
        let (stack, reset) = (word(0), word(4));
        let has_stack = memory.is_writable(stack.wrapping_sub(4));
        let has_code = reset & 1 == 1 && memory.region_of(reset).is_some();
        if has_stack && has_code {
            return Ok(Some(table));
        }
        // What a linker puts there without a table is code, or nothing: neither half looks like one's.
        let is_table = has_stack || reset & !1 == self.entry & !1;
        if of_section.is_none() && !is_table {
            return Ok(None);
        }
        let what = if !has_stack {
            format!("{stack:#010x} as SP, which is in none of the memories of {}", chip.name)
        } else if reset & 1 == 0 {
            format!("{reset:#010x} as its reset vector, whose bit 0 does not say Thumb")
        } else {
            format!("{reset:#010x} as its reset vector, where there is no memory")
        };
        Err(ProgramError::VectorTable { table, what })
    }

    /// A program without a vector table, as newlib's rdimon start is: at its entry, with the stack where HEAPINFO says.
    fn start_at_entry(&self, machine: &mut Machine, chip: &Chip) -> Result<(), Fault> {
        let core = &mut machine.core;
        if self.entry & 1 == 0 {
            return Err(Fault::InvalidState { target: self.entry });
        }
        core.system.vector_table = chip.vector_table;
        core.registers.r[13] = machine.semihosting.heap_info[2];
        core.registers.r[14] = 0xffff_ffff;
        core.registers.r[15] = self.entry & !1;
        Ok(())
    }
}

/// What is loaded, without copying it: headers may name the same bytes thousands of times.
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
        let cut = || ProgramError::NotElf("a segment is cut".into());
        let content = segment.data(endian, file).map_err(|()| cut())?;
        let start = segment.p_offset(endian) as usize;
        let end = start.checked_add(content.len()).ok_or_else(cut)?;
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

/// Functions and objects by address, and what has neither type nor size.
type Names = (Vec<Symbol>, Vec<(String, u32)>);

fn symbols(elf: &ElfFile32<'_, Endianness>) -> Result<Names, ProgramError> {
    let mut bytes = 0;
    let (mut symbols, mut labels) = (Vec::new(), Vec::new());
    for symbol in elf.symbols() {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { continue };
        let Ok(name) = symbol.name() else { continue };
        let kind = st_info & 0xf;
        // $t, $d and $a mark code and data for disassemblers.
        if name.is_empty() || name.starts_with('$') || symbol.is_undefined() {
            continue;
        }
        bytes += name.len();
        if bytes > MOST_NAMES {
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
            labels.push((name.to_owned(), address));
        }
    }
    symbols.sort_by(|a, b| (a.address, a.bytes, &a.name).cmp(&(b.address, b.bytes, &b.name)));
    Ok((symbols, labels))
}
