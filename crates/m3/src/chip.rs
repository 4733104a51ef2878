// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory maps of chips.

use std::str::FromStr;

use crate::memory::Region;

/// A chip: its memories and its interrupt controller's width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its memories.
    pub regions: Vec<Region>,
    /// Which priority bits exist.
    pub priority_mask: u8,
    /// Where the vector table is after reset.
    pub vector_table: u32,
}

/// No such chip.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown chip {0}: choose {names}", names = NAMES.join(", "))]
pub struct UnknownChip(String);

/// The chips that are known.
pub const NAMES: [&str; 3] = ["lpc1768", "stm32f103", "mps2-an385"];

fn region(name: &str, base: u32, kib: u32, writable: bool) -> Region {
    Region { name: name.to_owned(), base, bytes: kib * 1024, writable, wait_states: 0 }
}

impl FromStr for Chip {
    type Err = UnknownChip;

    fn from_str(name: &str) -> Result<Self, UnknownChip> {
        match name {
            // NXP UM10360, chapter 2: 512 KiB flash, 32 KiB local and 2 x 16 KiB AHB memory; 5
            // priority bits.
            "lpc1768" => Ok(Chip {
                name: "lpc1768",
                regions: vec![
                    region("flash", 0, 512, false),
                    region("sram", 0x1000_0000, 32, true),
                    region("ahb-sram", 0x2007_c000, 32, true),
                ],
                priority_mask: 0xf8,
                vector_table: 0,
            }),
            // ST RM0008 and DS5319, STM32F103xB: 128 KiB flash, 20 KiB memory; 4 priority bits.
            "stm32f103" => Ok(Chip {
                name: "stm32f103",
                regions: vec![
                    region("flash", 0x0800_0000, 128, false),
                    region("sram", 0x2000_0000, 20, true),
                ],
                priority_mask: 0xf0,
                vector_table: 0x0800_0000,
            }),
            // Arm DAI 0385D: ZBT memories of 4 MiB for code and for data, 16 MiB PSRAM; 3 priority
            // bits.
            "mps2-an385" => Ok(Chip {
                name: "mps2-an385",
                regions: vec![
                    region("ssram1", 0, 4096, true),
                    region("ssram23", 0x2000_0000, 4096, true),
                    region("psram", 0x2100_0000, 16_384, true),
                ],
                priority_mask: 0xe0,
                vector_table: 0,
            }),
            _ => Err(UnknownChip(name.to_owned())),
        }
    }
}
