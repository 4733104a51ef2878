// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Source files and lines of addresses, from DWARF debugging information (`-g`).

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

/// The debugging information is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the debugging information of this ELF file cannot be read ({0}): compile with -g, or strip it"
)]
pub struct SourceError(String);

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
    /// [`SourceError`] if the information is damaged.
    pub fn parse(file: &'a [u8]) -> Result<Self, SourceError> {
        let elf =
            ElfFile32::<Endianness>::parse(file).map_err(|error| SourceError(error.to_string()))?;
        let section = |id: SectionId| -> Result<Reader<'a>, SourceError> {
            let data = match elf.section_by_name(id.name()) {
                Some(section) => section.data().map_err(|error| SourceError(error.to_string()))?,
                None => &[],
            };
            Ok(EndianSlice::new(data, RunTimeEndian::Little))
        };
        let dwarf = Dwarf::load(section)?;
        let context = addr2line::Context::from_dwarf(dwarf)
            .map_err(|error| SourceError(error.to_string()))?;
        Ok(Source { context })
    }

    /// The line of an instruction.
    pub fn line(&self, address: u32) -> Option<Line> {
        let location = self.context.find_location(u64::from(address)).ok()??;
        line(&location)
    }

    /// The functions at an instruction: the innermost first, then those into which it is inlined.
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
    Some(Line { file: location.file?.to_owned(), line: location.line.filter(|line| *line > 0)? })
}
