// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kind of a figure: how far it may be trusted.

use serde::{Deserialize, Serialize};

/// How a figure came to be. The order is from the strongest to the weakest, so that the kind of
/// a result is the maximum of its inputs' kinds ([`Kind::weakest`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Real software on real hardware.
    Measured,
    /// Real software with some part of ours standing in: the emulated link, the virtual SIM.
    Emulated,
    /// Computed by the simulator.
    Simulated,
    /// Taken from a publication.
    Published,
    /// Without a source.
    Assumed,
}

impl Kind {
    /// The weakest of the given kinds; `Measured` for none.
    pub fn weakest(kinds: impl IntoIterator<Item = Kind>) -> Kind {
        kinds.into_iter().max().unwrap_or(Kind::Measured)
    }

    /// The lower-case name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Measured => "measured",
            Kind::Emulated => "emulated",
            Kind::Simulated => "simulated",
            Kind::Published => "published",
            Kind::Assumed => "assumed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_inherits_the_weakest_kind() {
        assert_eq!(Kind::weakest([Kind::Measured, Kind::Assumed, Kind::Simulated]), Kind::Assumed);
        assert_eq!(Kind::weakest([]), Kind::Measured);
    }
}
