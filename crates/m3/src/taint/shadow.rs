// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shadow memory: a label for each byte of a chip's memories.

use super::labels::Label;
use crate::memory::Memory;

/// As in [`Memory`]: a megabyte belongs to at most one region.
const GRANULE_BITS: u32 = 20;
const NO_BANK: u8 = u8::MAX;

/// Labels by address.
#[derive(Debug)]
pub struct Shadow {
    granules: Box<[u8]>,
    // Plain integers, so that untouched pages of zeros cost no memory.
    banks: Vec<(u32, Vec<u16>)>,
}

impl Shadow {
    /// Shadow memory in which everything is public.
    pub fn new(memory: &Memory) -> Self {
        let mut granules = vec![NO_BANK; 1 << (32 - GRANULE_BITS)].into_boxed_slice();
        let mut banks = Vec::new();
        for (index, region) in memory.regions().enumerate() {
            let last = region.base + (region.bytes - 1);
            granules[(region.base >> GRANULE_BITS) as usize..=(last >> GRANULE_BITS) as usize]
                .fill(index as u8);
            banks.push((region.base, vec![0; region.bytes as usize]));
        }
        Shadow { granules, banks }
    }

    /// The label of the first secret byte in a range; `None` if the range is not in a memory.
    #[inline]
    pub fn get(&self, at: u32, bytes: u32) -> Option<Label> {
        let (base, labels) =
            self.banks.get(usize::from(self.granules[(at >> GRANULE_BITS) as usize]))?;
        let start = at.wrapping_sub(*base) as usize;
        let range = labels.get(start..start.wrapping_add(bytes as usize))?;
        Some(match *range {
            [one] => Label::from_number(one),
            // The common case, in one comparison.
            [0, 0, 0, 0] => Label::CLEAN,
            _ => {
                range.iter().fold(Label::CLEAN, |first, label| first.or(Label::from_number(*label)))
            }
        })
    }

    /// Sets the label of a range; false if it is not in a memory.
    #[inline]
    pub fn set(&mut self, at: u32, bytes: u32, label: Label) -> bool {
        let index = usize::from(self.granules[(at >> GRANULE_BITS) as usize]);
        let Some((base, labels)) = self.banks.get_mut(index) else { return false };
        let start = at.wrapping_sub(*base) as usize;
        let Some(range) = labels.get_mut(start..start.wrapping_add(bytes as usize)) else {
            return false;
        };
        let label = label.number();
        match range {
            [one] => *one = label,
            [a, b, c, d] => (*a, *b, *c, *d) = (label, label, label, label),
            _ => range.fill(label),
        }
        true
    }

    /// Sets the label of those bytes of a range that are in memories, and returns their number.
    pub fn set_each(&mut self, at: u32, bytes: u32, label: Label) -> u64 {
        if self.set(at, bytes, label) {
            return bytes.into();
        }
        // The range wraps around at the end of the address space.
        let beyond = (u64::from(at) + u64::from(bytes)).saturating_sub(1 << 32) as u32;
        self.set_within(at, bytes - beyond, label) + self.set_within(0, beyond, label)
    }

    fn set_within(&mut self, at: u32, bytes: u32, label: Label) -> u64 {
        let (first, end) = (u64::from(at), u64::from(at) + u64::from(bytes));
        let mut done = 0;
        for (base, labels) in &mut self.banks {
            let base = u64::from(*base);
            let from = first.max(base);
            let to = end.min(base + labels.len() as u64);
            if from < to
                && let Some(range) = labels.get_mut((from - base) as usize..(to - base) as usize)
            {
                range.fill(label.number());
                done += to - from;
            }
        }
        done
    }

    /// The number of secret bytes.
    pub fn secret_bytes(&self) -> usize {
        self.banks.iter().flat_map(|(_, labels)| labels).filter(|label| **label != 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Region;

    fn shadow() -> Shadow {
        let region = |base| Region {
            name: format!("{base:#x}"),
            base,
            bytes: 0x100,
            writable: true,
            wait_states: 0,
        };
        let regions = [region(0), region(0x2000_0000), region(0xf800_0000)];
        Shadow::new(&Memory::new(&regions).expect("three regions"))
    }

    #[test]
    fn ranges_across_memories_label_existing_bytes() {
        let secret = Label::from_number(1);
        for (at, bytes, expected) in [
            (0, u32::MAX, 0x300),
            (0x80, u32::MAX, 0x2ff),
            (0x10, 0x2000_0000, 0xf0 + 0x10),
            (0xf800_00f0, 0x0800_0000, 0x10 + 0xf0),
            (0x2000_00ff, 2, 1),
            (0x1fff_ffff, 2, 1),
            (0x1000_0000, 0x1000_0000, 0),
            (0x40, 0, 0),
        ] {
            let mut shadow = shadow();
            assert_eq!(shadow.set_each(at, bytes, secret), expected, "{bytes:#x} at {at:#x}");
            assert_eq!(shadow.secret_bytes() as u64, expected, "{bytes:#x} at {at:#x}");
        }
    }
}
