// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A label for every byte of a chip's memories.

use super::labels::Label;
use crate::memory::Memory;

/// As [`Memory`] finds its regions: by megabytes, of which none holds two.
const GRANULE_BITS: u32 = 20;
const NO_BANK: u8 = u8::MAX;

/// Labels by address.
#[derive(Debug)]
pub struct Shadow {
    granules: Box<[u8]>,
    // Plain numbers: the system gives zeros page by page as they are touched.
    banks: Vec<(u32, Vec<u16>)>,
}

impl Shadow {
    /// Everything public.
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

    /// The label of the first secret one of some bytes; `None` where they are not in a memory.
    #[inline]
    pub fn get(&self, at: u32, bytes: u32) -> Option<Label> {
        let (base, labels) =
            self.banks.get(usize::from(self.granules[(at >> GRANULE_BITS) as usize]))?;
        let start = at.wrapping_sub(*base) as usize;
        let range = labels.get(start..start.wrapping_add(bytes as usize))?;
        Some(match *range {
            [one] => Label::from_number(one),
            // Mostly all of them are public, which one comparison says.
            [0, 0, 0, 0] => Label::CLEAN,
            _ => {
                range.iter().fold(Label::CLEAN, |first, label| first.or(Label::from_number(*label)))
            }
        })
    }

    /// Labels some bytes; false where they are not in a memory.
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

    /// As [`Shadow::set`], for as many of the bytes as are in a memory.
    pub fn set_each(&mut self, at: u32, bytes: u32, label: Label) {
        if self.set(at, bytes, label) {
            return;
        }
        let room: usize = self.banks.iter().map(|(_, labels)| labels.len()).sum();
        for offset in 0..bytes.min(room as u32) {
            self.set(at.wrapping_add(offset), 1, label);
        }
    }

    /// How many bytes are secret.
    pub fn secret_bytes(&self) -> usize {
        self.banks.iter().flat_map(|(_, labels)| labels).filter(|label| **label != 0).count()
    }
}
