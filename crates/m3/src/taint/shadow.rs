// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shadow memory: a label for each byte of a chip's memories.

use super::labels::Label;
use crate::memory::{GRANULE_BITS, Memory, Span, granules};

/// Labels by address.
#[derive(Debug)]
pub struct Shadow {
    granules: Box<[u8]>,
    // Plain integers, so that untouched pages of zeros cost no memory.
    banks: Vec<(u32, Vec<u16>)>,
    spans: Vec<Span>,
}

impl Shadow {
    /// Shadow memory in which everything is public.
    pub fn new(memory: &Memory) -> Self {
        let spans = memory.spans().to_vec();
        let labels = |bytes: u32| vec![0; bytes as usize];
        let banks = memory.regions().map(|region| (region.base, labels(region.bytes))).collect();
        Shadow { granules: granules(&spans), banks, spans }
    }

    /// The number of the bank of a range and the range in it, where a megabyte has several spans.
    #[cold]
    fn among_several(&self, at: u32, bytes: u32) -> Option<(usize, std::ops::Range<usize>)> {
        let (bank, start, end) = self.spans.iter().find_map(|span| span.place(at))?;
        let range = start..start + bytes as usize;
        (range.end <= end).then_some((bank, range))
    }

    /// The label of the first secret byte in a range; `None` if the range is not in a memory.
    #[inline]
    pub fn get(&self, at: u32, bytes: u32) -> Option<Label> {
        let index = usize::from(self.granules[(at >> GRANULE_BITS) as usize]);
        let range = match self.banks.get(index) {
            Some((base, labels)) => {
                let start = at.wrapping_sub(*base) as usize;
                labels.get(start..start.wrapping_add(bytes as usize))?
            }
            None => {
                let (bank, range) = self.among_several(at, bytes)?;
                self.banks.get(bank)?.1.get(range)?
            }
        };
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
        let (index, range) = match self.banks.get(index) {
            Some((base, _)) => {
                let start = at.wrapping_sub(*base) as usize;
                (index, start..start.wrapping_add(bytes as usize))
            }
            None => match self.among_several(at, bytes) {
                Some(place) => place,
                None => return false,
            },
        };
        let Some((_, labels)) = self.banks.get_mut(index) else { return false };
        let Some(range) = labels.get_mut(range) else { return false };
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
        for span in &self.spans {
            let base = u64::from(span.first);
            let from = first.max(base);
            let to = end.min(u64::from(span.last) + 1);
            if from >= to {
                continue;
            }
            let start = (from - base) as usize + span.offset as usize;
            let labels = self.banks.get_mut(span.region).map(|(_, labels)| labels);
            if let Some(range) =
                labels.and_then(|labels| labels.get_mut(start..start + (to - from) as usize))
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
    use crate::memory::{Alias, Region};

    fn shadow() -> Shadow {
        let region = |base| Region {
            name: format!("{base:#x}"),
            base,
            bytes: 0x100,
            writable: true,
            wait_states: 0,
            lines: None,
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

    #[test]
    fn secret_is_seen_at_every_address_of_its_bytes() {
        let region = Region {
            name: "ram".into(),
            base: 0x2007_0000,
            bytes: 0x1000,
            writable: true,
            wait_states: 0,
            lines: None,
        };
        let alias = Alias { base: 0x2000_0000, of: 0x2007_0100, bytes: 0x100 };
        let memory = Memory::with_aliases(&[region], &[alias]).expect("an alias");
        let mut shadow = Shadow::new(&memory);
        let secret = Label::from_number(1);
        assert!(shadow.set(0x2000_0004, 4, secret) && !shadow.set(0x2000_00fe, 4, secret));
        assert_eq!(shadow.get(0x2007_0104, 4), Some(secret));
        assert_eq!(shadow.get(0x2007_0100, 4), Some(Label::CLEAN));
        assert_eq!(shadow.set_each(0x2000_0000, 0x200, secret), 0x100);
        assert_eq!(shadow.get(0x2007_01ff, 1), Some(secret));
        assert_eq!(
            (shadow.get(0x2007_0200, 1), shadow.get(0x2000_0100, 1)),
            (Some(Label::CLEAN), None)
        );
    }
}
