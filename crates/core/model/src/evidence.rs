// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a result was obtained, and what its inputs rest on.

use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// How a result was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Real software on real hardware.
    Measured,
    /// Real software with some part of ours standing in: the emulated link, the virtual SIM, the
    /// Cortex-M3 in software.
    Emulated,
    /// Computed by the simulator.
    Simulated,
}

/// What a result's inputs rest on, from the strongest to the weakest. A value that a study sets is
/// a condition of the question and is no evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Measured on real software.
    Measured,
    /// Taken from a publication, a data sheet or a source text.
    Published,
    /// Without a source.
    Assumed,
}

impl Evidence {
    /// The weakest of the given; `Assumed` for none, since nothing speaks for the result.
    pub fn weakest(all: impl IntoIterator<Item = Evidence>) -> Evidence {
        all.into_iter().max().unwrap_or(Evidence::Assumed)
    }
}

impl Kind {
    /// What a figure of this kind is as evidence. Emulated and simulated figures come from a model
    /// of ours, and a model rests on published rules at best.
    pub const fn evidence(self) -> Evidence {
        match self {
            Kind::Measured => Evidence::Measured,
            Kind::Emulated | Kind::Simulated | Kind::Published => Evidence::Published,
            Kind::Assumed => Evidence::Assumed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weakest_evidence_of_inputs() {
        let some = [Evidence::Measured, Evidence::Assumed, Evidence::Published];
        assert_eq!(Evidence::weakest(some), Evidence::Assumed);
        assert_eq!(Evidence::weakest([Evidence::Measured]), Evidence::Measured);
    }

    #[test]
    fn weakest_evidence_of_no_input() {
        assert_eq!(Evidence::weakest([]), Evidence::Assumed);
    }
}
