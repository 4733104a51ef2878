// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chips: memories, aliases and the peripherals that start-up code needs, from TOML files
//! ([`file`]). Those of `chips/` are built in.

mod file;

use std::str::FromStr;

pub use file::ChipError;

use crate::memory::{Alias, Region};
use crate::peripherals::{Peripheral, Uart};

/// A chip: what is at which address, and its interrupt controller's width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Its name on the command line.
    pub name: String,
    /// Where its memory map comes from.
    pub source: String,
    /// Its memories.
    pub regions: Vec<Region>,
    /// Other addresses of its memories.
    pub aliases: Vec<Alias>,
    /// Its peripherals.
    pub peripherals: Vec<Peripheral>,
    /// UARTs whose output is the console.
    pub uarts: Vec<Uart>,
    /// Which priority bits exist.
    pub priority_mask: u8,
    /// Where the vector table is after reset.
    pub vector_table: u32,
}

/// No such chip.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown chip {0}: choose {names}, or a file FILE.toml", names = names().join(", "))]
pub struct UnknownChip(String);

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        /// The names of the built-in chips with their files.
        const BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../chips/", $name, ".toml")))),*];
    };
}

built_in!(
    "lpc1768",
    "stm32f103",
    "stm32f103xc",
    "stm32f103xd",
    "stm32f103xe",
    "stm32f103xg",
    "stm32l152xc",
    "stm32l152xe",
    "stm32f205xg",
    "sam3x8e",
    "mps2-an385",
);

/// The names of the built-in chips.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

impl FromStr for Chip {
    type Err = UnknownChip;

    fn from_str(name: &str) -> Result<Self, UnknownChip> {
        let found = BUILT_IN.iter().find(|(known, _)| *known == name);
        // A test reads every built-in file.
        found
            .and_then(|(_, text)| Chip::parse(text).ok())
            .ok_or_else(|| UnknownChip(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_chips_are_valid_and_named_as_their_files() {
        for (name, text) in BUILT_IN {
            let chip = Chip::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(chip.name, *name);
            assert!(chip.regions.iter().any(|region| region.writable), "{name} has RAM");
            assert_eq!(name.parse::<Chip>(), Ok(chip));
        }
    }

    #[test]
    fn unknown_chip_names_the_known_ones() {
        let error = "stm32f104".parse::<Chip>().expect_err("no such chip").to_string();
        assert!(
            error.starts_with("unknown chip stm32f104: choose lpc1768, stm32f103, "),
            "{error}"
        );
    }
}
