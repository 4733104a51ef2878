// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Source files and lines of addresses, from DWARF debugging information (`-g`).

mod cost;

use addr2line::gimli::{Dwarf, EndianSlice, RunTimeEndian, SectionId};
use object::read::elf::ElfFile32;
use object::{Endianness, Object, ObjectSection};
use serde::Serialize;

type Reader<'a> = EndianSlice<'a, RunTimeEndian>;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Line {
    /// The file, as passed to the compiler.
    pub file: String,
    /// The line's number, from 1.
    pub line: u32,
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A function at an address: that of a symbol, or one inlined into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name, if the debugging information has it.
    pub function: Option<String>,
    /// The line of the address in it.
    pub line: Option<Line>,
}

/// The most bytes of a file's path: PATH_MAX of Linux. A longer one is none, since every line that
/// is reported has a copy.
const MAX_PATH_BYTES: usize = 4096;

/// Why there are no source lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The debugging information is damaged.
    #[error(
        "the debugging information of this ELF file cannot be read ({0}): compile with -g, or \
         strip it"
    )]
    Damaged(String),
    /// It would take more memory than any program's does.
    #[error(
        "the debugging information of this ELF file takes more than {} MiB, as its units share it \
         or are too many: remove it with arm-none-eabi-strip --strip-debug",
        cost::MAX_BYTES >> 20
    )]
    TooLarge,
}

/// The lines of a program.
pub struct Source<'a> {
    context: addr2line::Context<Reader<'a>>,
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

impl<'a> Source<'a> {
    /// Reads the debugging information of an ELF file; a file without any has no lines.
    ///
    /// # Errors
    /// [`SourceError`] if the information is damaged, or would take too much memory.
    pub fn parse(file: &'a [u8]) -> Result<Self, SourceError> {
        let elf = ElfFile32::<Endianness>::parse(file).map_err(damaged)?;
        let section = |id: SectionId| -> Result<Reader<'a>, SourceError> {
            let data = match elf.section_by_name(id.name()) {
                Some(section) => section.data().map_err(damaged)?,
                None => &[],
            };
            Ok(EndianSlice::new(data, RunTimeEndian::Little))
        };
        let dwarf = Dwarf::load(section)?;
        cost::check(&dwarf).map_err(|cost::TooMuch| SourceError::TooLarge)?;
        let context = addr2line::Context::from_dwarf(dwarf).map_err(damaged)?;
        Ok(Source { context })
    }

    /// The line of an instruction.
    pub fn line(&self, address: u32) -> Option<Line> {
        let location = self.context.find_location(u64::from(address)).ok()??;
        line(&location)
    }

    /// The functions at an instruction: the innermost first, then those into which it is inlined.
    /// Their tables have no bound: for programs of one's own.
    pub fn frames(&self, address: u32) -> Vec<Frame> {
        let mut frames = Vec::new();
        let Ok(mut iterator) = self.context.find_frames(u64::from(address)).skip_all_loads() else {
            return frames;
        };
        while let Ok(Some(frame)) = iterator.next() {
            let function =
                frame.function.and_then(|function| Some(function.raw_name().ok()?.into_owned()));
            frames.push(Frame { function, line: frame.location.as_ref().and_then(line) });
        }
        frames
    }
}

fn line(location: &addr2line::Location<'_>) -> Option<Line> {
    let file = location.file.filter(|file| file.len() <= MAX_PATH_BYTES)?;
    Some(Line { file: file.to_owned(), line: location.line.filter(|line| *line > 0)? })
}

fn damaged(error: impl std::fmt::Display) -> SourceError {
    SourceError::Damaged(error.to_string())
}
