// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `strata.json`: a prediction's connections by what the client knows of its losses, and null
//! models beside it.
//!
//! The distributions of observations do not say how often the client sent its SYN again where the
//! whole time was such and such; a comparison needs both at once. A null model is what a prediction
//! has to beat: what the number of round trips alone would say.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::ResultsError;
use crate::json_file::write_json;
use crate::seal::Sealed;

/// Its name in a results folder.
pub(crate) const FILE_NAME: &str = "strata.json";

/// The version of its format that is written.
pub const STRATA_VERSION: u32 = 1;

/// Timeouts and retransmissions are counted up to so many: two stand for two and more.
pub const MOST_COUNTED: u64 = 2;

/// The cases of a prediction whose connections are TCP's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strata {
    /// [`STRATA_VERSION`] of the writer.
    pub version: u32,
    /// The cases by their ids.
    pub cases: BTreeMap<String, StrataOfCase>,
}

/// The connections of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrataOfCase {
    /// The metric whose means are told.
    pub metric: String,
    /// What a prediction without a simulator would say.
    pub null_models: NullModels,
    /// Trials of one connection each, failed ones included.
    pub trials: u64,
    /// Those that did not fail, in the order of their counts.
    pub strata: Vec<Stratum>,
}

/// What makes up the predictions of null models: round trips times RTT, and that plus computing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NullModels {
    /// Round trips until the response where nothing is lost.
    pub round_trips: f64,
    /// The link's RTT without jitter, ns.
    pub rtt_ns: u64,
    /// Computing of both ends and of the key store on the way to the response, mean, ns.
    pub computing_ns: f64,
}

/// Connections of which the client had to send as often again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stratum {
    /// SYNs sent again; [`MOST_COUNTED`] stands for more as well.
    pub syn_timeouts: u64,
    /// Segments that the client sent again up to the response, SYNs excluded; so too.
    pub retransmissions: u64,
    /// How many connections these are; weights are whole where trials are.
    pub count: f64,
    /// Mean of the metric, ns.
    pub mean_ns: f64,
    /// Its variance, ns^2; 0 for one connection.
    pub variance_ns2: f64,
}

impl Strata {
    /// Writes them as `folder/strata.json`.
    pub(crate) fn write(&self, folder: &Path) -> Result<Sealed, ResultsError> {
        write_json(&folder.join(FILE_NAME), self)
    }
}
