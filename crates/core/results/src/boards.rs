// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `boards.json`: what a connection takes on each of the boards that a device of assumed figures
//! may be.
//!
//! The n-th board is the same in all cases, so that one case less another is what the choice
//! between them makes on it; the distributions of observations do not say which of their values
//! are of one board. What luck adds to it is that of the board in the middle of all bands.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::ResultsError;
use crate::json_file::write_json;
use crate::seal::Sealed;

/// Its name in a results folder.
pub(crate) const FILE_NAME: &str = "boards.json";

/// The version of its format that is written.
pub const BOARDS_VERSION: u32 = 1;

/// The cases of a prediction some of whose devices' figures have bands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boards {
    /// [`BOARDS_VERSION`] of the writer.
    pub version: u32,
    /// How many boards there are.
    pub boards: u32,
    /// The cases, in the order of the study.
    pub cases: Vec<BoardsOfCase>,
}

/// A case on every board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardsOfCase {
    /// Which case.
    pub case_id: String,
    /// The times of its connections; of a study of many cases the one that stages divide.
    pub metrics: Vec<BoardsOfMetric>,
}

/// A metric on every board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardsOfMetric {
    /// Its name.
    pub metric: String,
    /// Its median of a few trials, the same on each board, ns; null where half of them fail there.
    pub on_boards_ns: Vec<Option<u64>>,
    /// Of the board in the middle of all bands.
    pub middle_ns: Statistics,
}

/// A time of one board, ns; null where it fails, or failures reach the statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// The median of those few trials.
    pub typical: Option<u64>,
    /// The median of more trials.
    pub p50: Option<u64>,
    /// The 90th percentile.
    pub p90: Option<u64>,
    /// The 95th percentile.
    pub p95: Option<u64>,
    /// The 99th percentile.
    pub p99: Option<u64>,
    /// The longest.
    pub max: Option<u64>,
    /// The mean of those that did not fail.
    pub mean: Option<u64>,
}

impl Boards {
    /// Writes them as `folder/boards.json`.
    pub(crate) fn write(&self, folder: &Path) -> Result<Sealed, ResultsError> {
        write_json(&folder.join(FILE_NAME), self)
    }
}
