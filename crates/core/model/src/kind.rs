// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kind of a figure: how far it may be trusted.

use serde::{Deserialize, Serialize};

/// How a figure of a profile came to be, from the strongest to the weakest.
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
