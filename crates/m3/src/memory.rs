// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The address map: memories, bit-band aliases, the system region, and the ports of this simulator.

use crate::flash::{Flash, LineBuffers};
use crate::peripherals::Peripherals;
use crate::ports::{MAX_NAME_BYTES, Mark, Ports};
use crate::timing::Cycles;

/// One memory of a chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name in reports.
    pub name: String,
    /// Its first address.
    pub base: u32,
    /// Its length in bytes.
    pub bytes: u32,
    /// Whether programs can store to it; flash is read-only to them.
    pub writable: bool,
    /// Wait states: cycles that an access adds.
    pub wait_states: u64,
    /// How it is read if it has wait states; without this each code word and each data access wait.
    pub lines: Option<LineBuffers>,
}

/// Another address of bytes of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The first address.
    pub base: u32,
    /// What is there: the address in a region.
    pub of: u32,
    /// Its length in bytes.
    pub bytes: u32,
}

/// Addresses of a region, its own or an alias.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The first address.
    pub first: u32,
    /// The last one.
    pub last: u32,
    /// The number of the region.
    pub region: usize,
    /// The offset in the region of the first address.
    pub offset: u32,
}

impl Span {
    /// The region and the offset in it of an address, and the end of the span there.
    pub fn place(&self, at: u32) -> Option<(usize, usize, usize)> {
        let within = (self.first..=self.last).contains(&at);
        let end = (self.last - self.first) as usize + self.offset as usize + 1;
        within.then(|| (self.region, (at - self.first + self.offset) as usize, end))
    }
}

/// What an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A memory.
    Memory,
    /// One bit of a byte (DDI 0337I section 3.7).
    BitBand {
        /// The byte's address.
        byte: u32,
        /// The bit's number.
        bit: u32,
    },
    /// The private peripheral bus.
    System,
    /// A chip's peripheral ([`crate::peripherals`]).
    Peripheral,
    /// The simulator's own ports ([`crate::ports`]).
    Ports,
    /// Unmapped.
    Nothing,
}

/// One table look-up finds the region of an address in a megabyte that one region has for itself.
pub const GRANULE_BITS: u32 = 20;
const NO_REGION: u8 = u8::MAX;
/// A megabyte with several regions or an alias.
const SEVERAL: u8 = NO_REGION - 1;
/// Size of the pages by which decoded code is tracked.
const PAGE_BITS: u32 = 8;

#[derive(Debug)]
struct Bank {
    region: Region,
    content: Vec<u8>,
    /// Pages from which instructions were decoded.
    decoded: Vec<bool>,
    /// Its time, if it has wait states and is read by lines.
    flash: Option<Flash>,
}

/// Why a memory map is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// Two regions overlap.
    #[error("regions {0} and {1} overlap: change the address or the size of one")]
    Overlap(String, String),
    /// An alias is not one of bytes of a region.
    #[error("the alias at {0:#010x} is not one of a region, or overlaps with one")]
    Alias(u32),
    /// A region goes beyond the address space, or is empty.
    #[error("region {0} is empty or ends beyond 0xffffffff: change its size or address")]
    Size(String),
    /// Too many regions.
    #[error("a memory map has at most 16 regions: merge or remove some")]
    Count,
}

/// The memories of a chip.
#[derive(Debug)]
pub struct Memory {
    banks: Vec<Bank>,
    /// The number of the region of each megabyte.
    granules: Box<[u8]>,
    spans: Vec<Span>,
    any_wait_states: bool,
    reads_lines: bool,
    /// Set by a store to a page from which instructions were decoded.
    pub code_changed: bool,
    /// The simulator's own ports.
    pub ports: Ports,
    /// The chip's peripherals.
    pub peripherals: Peripherals,
}

impl Memory {
    /// Memories filled with zeros.
    ///
    /// # Errors
    /// [`MapError`] where regions overlap or are too many or too large.
    pub fn new(regions: &[Region]) -> Result<Self, MapError> {
        Memory::with_aliases(regions, &[])
    }

    /// The same with aliases.
    ///
    /// # Errors
    /// [`MapError`] also for an alias that is not one of a region.
    pub fn with_aliases(regions: &[Region], aliases: &[Alias]) -> Result<Self, MapError> {
        if regions.len() > 16 {
            return Err(MapError::Count);
        }
        let spans = spans(regions, aliases)?;
        let bank = |region: &Region| Bank {
            region: region.clone(),
            content: vec![0; region.bytes as usize],
            decoded: vec![false; (region.bytes >> PAGE_BITS) as usize + 1],
            flash: region
                .lines
                .filter(|_| region.wait_states > 0)
                .map(|lines| Flash::new(lines, region.wait_states)),
        };
        let banks: Vec<Bank> = regions.iter().map(bank).collect();
        Ok(Memory {
            granules: granules(&spans),
            spans,
            any_wait_states: regions.iter().any(|region| region.wait_states > 0),
            reads_lines: banks.iter().any(|bank| bank.flash.is_some()),
            banks,
            code_changed: false,
            ports: Ports::default(),
            peripherals: Peripherals::default(),
        })
    }

    /// The addresses of the regions, those of aliases last.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The span that an address is in.
    pub fn span(&self, at: u32) -> Option<&Span> {
        self.spans.iter().find(|span| (span.first..=span.last).contains(&at))
    }

    /// The bank and the offset in it of an address, and the end of what can be accessed from there.
    #[inline]
    fn locate(&self, at: u32) -> Option<(usize, usize, usize)> {
        let slot = usize::from(self.granules[(at >> GRANULE_BITS) as usize]);
        match self.banks.get(slot) {
            Some(bank) => {
                let start = at.wrapping_sub(bank.region.base) as usize;
                (start < bank.content.len()).then_some((slot, start, bank.content.len()))
            }
            None => self.locate_among_several(at, slot),
        }
    }

    #[cold]
    fn locate_among_several(&self, at: u32, slot: usize) -> Option<(usize, usize, usize)> {
        if slot != usize::from(SEVERAL) {
            return None;
        }
        self.spans.iter().find_map(|span| span.place(at))
    }

    #[cold]
    fn bytes_among_several<const N: usize>(&self, at: u32, slot: usize) -> Option<[u8; N]> {
        let (bank, start, end) = self.locate_among_several(at, slot)?;
        self.banks[bank].content.get(start..end)?.get(..N)?.try_into().ok()
    }

    #[cold]
    fn set_bytes_among_several(&mut self, at: u32, slot: usize, value: &[u8]) -> bool {
        let Some((bank, start, end)) = self.locate_among_several(at, slot) else { return false };
        let bank = &mut self.banks[bank];
        if !bank.region.writable || start + value.len() > end {
            return false;
        }
        bank.content[start..start + value.len()].copy_from_slice(value);
        self.code_changed |= bank.decoded[start >> PAGE_BITS];
        true
    }

    /// The memories' descriptions.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        self.banks.iter().map(|bank| &bank.region)
    }

    #[inline]
    fn bank(&self, at: u32) -> Option<&Bank> {
        self.locate(at).and_then(|(bank, ..)| self.banks.get(bank))
    }

    #[inline]
    fn bytes<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        let slot = usize::from(self.granules[(at >> GRANULE_BITS) as usize]);
        let Some(bank) = self.banks.get(slot) else { return self.bytes_among_several(at, slot) };
        let start = at.wrapping_sub(bank.region.base) as usize;
        bank.content.get(start..start.wrapping_add(N))?.try_into().ok()
    }

    #[inline]
    fn set_bytes<const N: usize>(&mut self, at: u32, value: [u8; N]) -> bool {
        let slot = usize::from(self.granules[(at >> GRANULE_BITS) as usize]);
        let Some(bank) = self.banks.get_mut(slot) else {
            return self.set_bytes_among_several(at, slot, &value);
        };
        let start = at.wrapping_sub(bank.region.base) as usize;
        if !bank.region.writable {
            return false;
        }
        let Some(place) = bank.content.get_mut(start..start.wrapping_add(N)) else { return false };
        place.copy_from_slice(&value);
        self.code_changed |= bank.decoded[start >> PAGE_BITS];
        true
    }

    /// The word at an address in a memory, aligned or not.
    #[inline]
    pub fn word(&self, at: u32) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    /// The halfword at an address in a memory.
    #[inline]
    pub fn half(&self, at: u32) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    /// The byte at an address in a memory.
    #[inline]
    pub fn byte(&self, at: u32) -> Option<u8> {
        self.bytes::<1>(at).map(|[byte]| byte)
    }

    /// As [`Memory::word`], for inspection from outside the program.
    pub fn peek(&self, at: u32) -> Option<u32> {
        self.word(at)
    }

    /// Stores a word; false where there is no writable memory.
    #[inline]
    pub fn set_word(&mut self, at: u32, value: u32) -> bool {
        self.set_bytes(at, value.to_le_bytes())
    }

    /// Stores a halfword.
    #[inline]
    pub fn set_half(&mut self, at: u32, value: u16) -> bool {
        self.set_bytes(at, value.to_le_bytes())
    }

    /// Stores a byte.
    #[inline]
    pub fn set_byte(&mut self, at: u32, value: u8) -> bool {
        self.set_bytes(at, [value])
    }

    /// Whether a program can store to an address.
    pub fn is_writable(&self, at: u32) -> bool {
        self.bank(at).is_some_and(|bank| bank.region.writable)
    }

    /// Loads content as a programmer does, into flash as well; false if it does not fit.
    pub fn program(&mut self, at: u32, content: &[u8]) -> bool {
        let Some((bank, start, end)) = self.locate(at) else { return false };
        let place = self.banks[bank].content.get_mut(start..end);
        let Some(place) = place.and_then(|place| place.get_mut(..content.len())) else {
            return false;
        };
        place.copy_from_slice(content);
        true
    }

    /// The same while the program runs: code may change.
    pub fn patch(&mut self, at: u32, content: &[u8]) -> bool {
        if !self.program(at, content) {
            return false;
        }
        if let (Some((bank, start, _)), false) = (self.locate(at), content.is_empty()) {
            let pages = start >> PAGE_BITS..=(start + content.len() - 1) >> PAGE_BITS;
            self.code_changed |= self.banks[bank].decoded[pages].contains(&true);
        }
        true
    }

    /// Whatever has state but no content, as it is at reset: buffers of flash, peripherals, marks.
    pub(crate) fn reset(&mut self) {
        for bank in &mut self.banks {
            let Region { lines, wait_states, .. } = bank.region;
            bank.flash = bank.flash.take().and(lines).map(|lines| Flash::new(lines, wait_states));
        }
        self.peripherals.reset();
        self.ports.marks.clear();
        self.ports.lost_marks = 0;
    }

    /// `length` bytes from an address, if they lie in one memory.
    pub fn slice(&self, at: u32, length: usize) -> Option<&[u8]> {
        let (bank, start, end) = self.locate(at)?;
        self.banks[bank].content.get(start..end)?.get(..length)
    }

    /// The bytes up to a zero byte, `max_bytes` or the end of the memory, whichever comes first.
    pub fn c_string(&self, at: u32, max_bytes: u32) -> &[u8] {
        let Some((bank, start, end)) = self.locate(at) else { return &[] };
        let bytes = &self.banks[bank].content[start..end];
        let bytes = &bytes[..bytes.len().min(max_bytes as usize)];
        bytes.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// The text of a mark, as it is in memory now.
    pub fn mark_name(&self, mark: &Mark) -> String {
        String::from_utf8_lossy(self.c_string(mark.text, MAX_NAME_BYTES)).into_owned()
    }

    /// The memory that an address is in; that of an alias has other addresses.
    pub fn region_of(&self, at: u32) -> Option<&Region> {
        self.bank(at).map(|bank| &bank.region)
    }

    /// Records that instructions were decoded here: a later store sets [`Memory::code_changed`].
    pub fn note_decoded(&mut self, at: u32, bytes: u32) {
        let Some((bank, start, _)) = self.locate(at) else { return };
        let bank = &mut self.banks[bank];
        for page in start >> PAGE_BITS..=(start + bytes.max(1) as usize - 1) >> PAGE_BITS {
            if let Some(decoded) = bank.decoded.get_mut(page) {
                *decoded = true;
            }
        }
    }

    /// Clears the record of decoded code.
    pub fn forget_decoded(&mut self) {
        self.code_changed = false;
        for bank in &mut self.banks {
            bank.decoded.fill(false);
        }
    }

    /// Whether any memory has wait states.
    #[inline]
    pub fn has_wait_states(&self) -> bool {
        self.any_wait_states
    }

    /// Whether a memory with wait states is read by lines.
    #[inline]
    pub fn reads_lines(&self) -> bool {
        self.reads_lines
    }

    /// The most cycles that an access may wait.
    pub fn max_wait(&self) -> u64 {
        let of = |bank: &Bank| bank.flash.as_ref().map_or(bank.region.wait_states, Flash::max_wait);
        if self.any_wait_states { self.banks.iter().map(of).max().unwrap_or(0) } else { 0 }
    }

    /// The wait states of each code word at an address; none in a memory that is read by lines,
    /// whose waits [`Memory::fetch`] knows.
    pub fn word_wait_states(&self, at: u32) -> u64 {
        let of = |bank: &Bank| if bank.flash.is_some() { 0 } else { bank.region.wait_states };
        self.bank(at).map_or(0, of)
    }

    /// The cycles that an instruction waits at `now` in a memory that is read by lines.
    #[inline]
    pub fn fetch(&mut self, at: u32, bytes: u8, now: Cycles) -> Cycles {
        let Some((bank, start, _)) = self.locate(at) else { return Cycles::default() };
        let Some(flash) = &mut self.banks[bank].flash else { return Cycles::default() };
        flash.fetch(start as u32, start as u32 + u32::from(bytes) - 1, now)
    }

    /// The cycles that a data access waits at `now`.
    pub fn data_wait(&mut self, at: u32, now: Cycles) -> Cycles {
        let Some((bank, start, _)) = self.locate(at) else { return Cycles::default() };
        let bank = &mut self.banks[bank];
        match &mut bank.flash {
            Some(flash) => flash.data(start as u32, now),
            None => Cycles::both(bank.region.wait_states),
        }
    }

    /// What an address belongs to.
    pub fn space(&self, at: u32) -> Space {
        if self.region_of(at).is_some() {
            return Space::Memory;
        }
        match at >> 25 {
            // 0x22000000 and 0x42000000: each word there is one bit of the megabyte 32 MB below.
            0x11 | 0x21 => {
                let bit = (at & 0x01ff_ffff) >> 2;
                Space::BitBand { byte: (at & 0xf000_0000) + bit / 8, bit: bit % 8 }
            }
            _ if at >> 20 == 0xe00 => Space::System,
            _ if Ports::holds(at) => Space::Ports,
            _ if self.peripherals.holds(at) => Space::Peripheral,
            _ => Space::Nothing,
        }
    }
}

/// The addresses of regions and aliases, without overlaps.
fn spans(regions: &[Region], aliases: &[Alias]) -> Result<Vec<Span>, MapError> {
    let mut spans: Vec<Span> = Vec::new();
    let end = |base: u32, bytes: u32| bytes.checked_sub(1).and_then(|last| base.checked_add(last));
    for (number, region) in regions.iter().enumerate() {
        let last = end(region.base, region.bytes);
        let last = last.ok_or_else(|| MapError::Size(region.name.clone()))?;
        let span = Span { first: region.base, last, region: number, offset: 0 };
        if let Some(other) = spans.iter().find(|other| overlap(other, &span)) {
            let other = regions[other.region].name.clone();
            return Err(MapError::Overlap(other, region.name.clone()));
        }
        spans.push(span);
    }
    for alias in aliases {
        let wrong = MapError::Alias(alias.base);
        let last = end(alias.base, alias.bytes).ok_or(wrong.clone())?;
        let own = spans.iter().take(regions.len()).find_map(|span| span.place(alias.of));
        let (region, offset, end) = own.ok_or(wrong.clone())?;
        let offset = offset as u32;
        let span = Span { first: alias.base, last, region, offset };
        let within = offset as usize + alias.bytes as usize <= end;
        if !within || spans.iter().any(|other| overlap(other, &span)) {
            return Err(wrong);
        }
        spans.push(span);
    }
    Ok(spans)
}

fn overlap(one: &Span, other: &Span) -> bool {
    one.first <= other.last && other.first <= one.last
}

/// The number of the region of each megabyte that has one span, which is a region's own.
pub fn granules(spans: &[Span]) -> Box<[u8]> {
    let mut granules = vec![NO_REGION; 1 << (32 - GRANULE_BITS)].into_boxed_slice();
    for (number, span) in spans.iter().enumerate() {
        let own = spans[..number].iter().all(|other| other.region != span.region);
        let range = (span.first >> GRANULE_BITS) as usize..=(span.last >> GRANULE_BITS) as usize;
        for slot in &mut granules[range] {
            *slot = if own && *slot == NO_REGION { span.region as u8 } else { SEVERAL };
        }
    }
    granules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Cycles;

    #[test]
    fn mark_name_ends_at_zero_byte_limit_or_region_end() {
        let region = Region {
            name: "flash".into(),
            base: 0,
            bytes: 1024,
            writable: false,
            wait_states: 0,
            lines: None,
        };
        let mut memory = Memory::new(&[region]).expect("one region");
        assert!(memory.program(0, &[b'a'; 1024]) && memory.program(8, &[0]));
        let name = |text| memory.mark_name(&Mark { text, at: Cycles::default(), stack: 0 });
        assert_eq!(name(0), "a".repeat(8));
        assert_eq!(name(9), "a".repeat(256));
        assert_eq!(name(1020), "aaaa");
        assert_eq!(name(0x1000_0000), "");
    }

    fn region(name: &str, base: u32, bytes: u32, writable: bool) -> Region {
        Region { name: name.into(), base, bytes, writable, wait_states: 0, lines: None }
    }

    #[test]
    fn regions_in_one_megabyte_end_where_they_end() {
        let regions = [region("flash", 0x8_0000, 0x100, false), region("ram", 0x8_0200, 64, true)];
        let mut memory = Memory::new(&regions).expect("no overlap");
        assert!(memory.program(0x8_0000, &[1; 0x100]));
        assert_eq!(memory.word(0x8_00fc), Some(0x0101_0101));
        assert_eq!((memory.word(0x8_00fe), memory.word(0x8_0100)), (None, None));
        assert!(!memory.set_word(0x8_0000, 0) && memory.set_word(0x8_0200, 5));
        assert_eq!(memory.word(0x8_0200), Some(5));
        assert!(!memory.set_word(0x8_023e, 5) && !memory.is_writable(0x8_0240));
        assert_eq!(memory.slice(0x8_0200, 65), None);
        let overlapping = [region("a", 0, 0x100, true), region("b", 0xfc, 4, true)];
        let error = Memory::new(&overlapping).expect_err("they overlap").to_string();
        assert!(error.starts_with("regions a and b overlap"), "{error}");
    }

    #[test]
    fn alias_shows_the_same_bytes_up_to_its_end() {
        let regions = [region("ram", 0x2007_0000, 0x1_0000, true)];
        let alias = Alias { base: 0x2000_0000, of: 0x2007_0010, bytes: 0x20 };
        let mut memory = Memory::with_aliases(&regions, &[alias]).expect("an alias");
        assert!(memory.set_word(0x2000_0000, 7) && memory.set_word(0x2007_002c, 9));
        assert_eq!((memory.word(0x2007_0010), memory.word(0x2000_001c)), (Some(7), Some(9)));
        assert_eq!((memory.word(0x2000_0020), memory.half(0x2000_001f)), (None, None));
        assert_eq!(memory.space(0x2000_0010), Space::Memory);
        // Code that was decoded at one address changes at the other.
        memory.note_decoded(0x2000_0000, 4);
        assert!(!memory.code_changed);
        assert!(memory.set_byte(0x2007_0010, 1) && memory.code_changed);
        for (base, of, bytes) in
            [(0, 0x2006_fff0, 4), (0, 0x2007_fff0, 0x20), (0x2007_0100, 0x2007_0000, 4), (0, 0, 0)]
        {
            let wrong = Alias { base, of, bytes };
            assert!(Memory::with_aliases(&regions, &[wrong]).is_err(), "{wrong:x?}");
        }
    }
}
