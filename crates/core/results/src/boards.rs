// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `boards.json`: what a connection or a scenario takes on each of the boards that a device of
//! assumed figures may be.
//!
//! The n-th board is the same in all cases, so that one case less another is what the choice
//! between them makes on it; the distributions of observations do not say which of their values
//! are of one board. How a board's statistics differ from those of all boards together is told by
//! the board in the middle of all bands.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::ResultsError;
use crate::json_file::write_json;
use crate::seal::Sealed;

/// Its name in a results folder.
pub(crate) const FILE_NAME: &str = "boards.json";

/// The version of its format that is written.
pub const BOARDS_VERSION: u32 = 2;

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
    /// Its times; of a study of many cases the one that stages divide and those that the study
    /// requires something of.
    pub metrics: Vec<BoardsOfMetric>,
}

/// A metric on every board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardsOfMetric {
    /// Its name.
    pub metric: String,
    /// What each board takes longer than the one in the middle of all bands, by a few trials that
    /// are the same on both, ns; null where failures reach it.
    pub off_middle_ns: Vec<Option<i64>>,
    /// Statistics of the board in the middle less those of all boards together.
    pub middle_less_all_ns: MiddleLessAll,
}

/// Statistics of a time on the board in the middle less those of all boards together, by more
/// trials of the one in the middle, on every board moved by what that is off the middle. Both are
/// of the same trials, so that these say little of the luck that a single one had. Null where
/// failures reach the statistic, or trials are too few.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MiddleLessAll {
    /// Of the median.
    pub p50: Option<Difference>,
    /// Of the 90th percentile.
    pub p90: Option<Difference>,
    /// Of the 95th percentile.
    pub p95: Option<Difference>,
    /// Of the 99th percentile.
    pub p99: Option<Difference>,
    /// Of the mean of those that did not fail; its ends are the difference.
    pub mean: Option<Difference>,
}

/// A difference with the ends of what the number of trials leaves open, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The low end.
    pub low: i64,
    /// The difference.
    pub value: i64,
    /// The high end.
    pub high: i64,
}

impl Boards {
    /// Writes them as `folder/boards.json`.
    pub(crate) fn write(&self, folder: &Path) -> Result<Sealed, ResultsError> {
        write_json(&folder.join(FILE_NAME), self)
    }
}
