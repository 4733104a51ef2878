// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The address map: memories, bit-band aliases, the system region, and the ports of this simulator.

use crate::ports::{MAX_NAME_BYTES, Mark, Ports};

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
    /// The simulator's own ports ([`crate::ports`]).
    Ports,
    /// Unmapped.
    Nothing,
}

/// A granule belongs to at most one region, so that one table look-up finds it.
const GRANULE_BITS: u32 = 20;
const NO_REGION: u8 = u8::MAX;
/// Size of the pages by which decoded code is tracked.
const PAGE_BITS: u32 = 8;

#[derive(Debug)]
struct Bank {
    region: Region,
    content: Vec<u8>,
    /// Pages from which instructions were decoded.
    decoded: Vec<bool>,
}

/// Why a memory map is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// Two regions share a megabyte.
    #[error("regions {0} and {1} share a megabyte: place them in different megabytes")]
    Shared(String, String),
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
    granules: Box<[u8]>,
    any_wait_states: bool,
    /// Set by a store to a page from which instructions were decoded.
    pub code_changed: bool,
    /// The simulator's own ports.
    pub ports: Ports,
}

impl Memory {
    /// Memories filled with zeros.
    ///
    /// # Errors
    /// [`MapError`] where regions overlap or are too many or too large.
    pub fn new(regions: &[Region]) -> Result<Self, MapError> {
        if regions.len() > 16 {
            return Err(MapError::Count);
        }
        let mut granules = vec![NO_REGION; 1 << (32 - GRANULE_BITS)].into_boxed_slice();
        let mut banks: Vec<Bank> = Vec::new();
        for (index, region) in regions.iter().enumerate() {
            let last = region.bytes.checked_sub(1).and_then(|last| region.base.checked_add(last));
            let last = last.ok_or_else(|| MapError::Size(region.name.clone()))?;
            for granule in region.base >> GRANULE_BITS..=last >> GRANULE_BITS {
                let slot = &mut granules[granule as usize];
                if let Some(other) = banks.get(usize::from(*slot)) {
                    return Err(MapError::Shared(other.region.name.clone(), region.name.clone()));
                }
                *slot = index as u8;
            }
            banks.push(Bank {
                region: region.clone(),
                content: vec![0; region.bytes as usize],
                decoded: vec![false; (region.bytes >> PAGE_BITS) as usize + 1],
            });
        }
        let any_wait_states = regions.iter().any(|region| region.wait_states > 0);
        Ok(Memory {
            banks,
            granules,
            any_wait_states,
            code_changed: false,
            ports: Ports::default(),
        })
    }

    /// The memories' descriptions.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        self.banks.iter().map(|bank| &bank.region)
    }

    #[inline]
    fn bank(&self, at: u32) -> Option<&Bank> {
        self.banks.get(usize::from(self.granules[(at >> GRANULE_BITS) as usize]))
    }

    #[inline]
    fn bytes<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        let bank = self.bank(at)?;
        let start = at.wrapping_sub(bank.region.base) as usize;
        bank.content.get(start..start.wrapping_add(N))?.try_into().ok()
    }

    #[inline]
    fn set_bytes<const N: usize>(&mut self, at: u32, value: [u8; N]) -> bool {
        let index = usize::from(self.granules[(at >> GRANULE_BITS) as usize]);
        let Some(bank) = self.banks.get_mut(index) else { return false };
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
        self.bank(at).is_some_and(|bank| {
            bank.region.writable && at.wrapping_sub(bank.region.base) < bank.region.bytes
        })
    }

    /// Loads content as a programmer does, into flash as well; false if it does not fit.
    pub fn program(&mut self, at: u32, content: &[u8]) -> bool {
        let index = usize::from(self.granules[(at >> GRANULE_BITS) as usize]);
        let Some(bank) = self.banks.get_mut(index) else { return false };
        let start = at.wrapping_sub(bank.region.base) as usize;
        let end = start.checked_add(content.len());
        let Some(place) = end.and_then(|end| bank.content.get_mut(start..end)) else {
            return false;
        };
        place.copy_from_slice(content);
        true
    }

    /// `length` bytes from an address, if they lie in one memory.
    pub fn slice(&self, at: u32, length: usize) -> Option<&[u8]> {
        let bank = self.bank(at)?;
        let start = at.wrapping_sub(bank.region.base) as usize;
        bank.content.get(start..start.checked_add(length)?)
    }

    /// The bytes up to a zero byte, `max_bytes` or the end of the memory, whichever comes first.
    pub fn c_string(&self, at: u32, max_bytes: u32) -> &[u8] {
        let Some(region) = self.region_of(at) else { return &[] };
        let room = region.bytes - (at - region.base);
        let bytes = self.slice(at, room.min(max_bytes) as usize).unwrap_or_default();
        bytes.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// The text of a mark, as it is in memory now.
    pub fn mark_name(&self, mark: &Mark) -> String {
        String::from_utf8_lossy(self.c_string(mark.text, MAX_NAME_BYTES)).into_owned()
    }

    /// The memory that an address is in.
    pub fn region_of(&self, at: u32) -> Option<&Region> {
        self.bank(at)
            .map(|bank| &bank.region)
            .filter(|region| at.wrapping_sub(region.base) < region.bytes)
    }

    /// Records that instructions were decoded here: a later store sets [`Memory::code_changed`].
    pub fn note_decoded(&mut self, at: u32, bytes: u32) {
        let index = usize::from(self.granules[(at >> GRANULE_BITS) as usize]);
        let Some(bank) = self.banks.get_mut(index) else { return };
        let start = at.wrapping_sub(bank.region.base);
        for page in start >> PAGE_BITS..=(start + bytes.max(1) - 1) >> PAGE_BITS {
            if let Some(decoded) = bank.decoded.get_mut(page as usize) {
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

    /// The wait states of the slowest memory.
    pub fn max_wait_states(&self) -> u64 {
        if self.any_wait_states {
            self.banks.iter().map(|bank| bank.region.wait_states).max().unwrap_or(0)
        } else {
            0
        }
    }

    /// The wait states of the memory at an address.
    pub fn wait_states(&self, at: u32) -> u64 {
        self.bank(at).map_or(0, |bank| bank.region.wait_states)
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
            _ => Space::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Cycles;

    #[test]
    fn mark_name_ends_at_zero_byte_limit_or_region_end() {
        let region =
            Region { name: "flash".into(), base: 0, bytes: 1024, writable: false, wait_states: 0 };
        let mut memory = Memory::new(&[region]).expect("one region");
        assert!(memory.program(0, &[b'a'; 1024]) && memory.program(8, &[0]));
        let name = |text| memory.mark_name(&Mark { text, at: Cycles::default(), stack: 0 });
        assert_eq!(name(0), "a".repeat(8));
        assert_eq!(name(9), "a".repeat(256));
        assert_eq!(name(1020), "aaaa");
        assert_eq!(name(0x1000_0000), "");
    }
}
