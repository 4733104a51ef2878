// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Observation schema, the manifest, Parquet: what both halves of the tally write and what
//! comparing and reporting read.
//!
//! A results folder is `manifest.json` beside `observations/*.parquet`, and of a prediction
//! `timelines.json`, `strata.json` where its connections are TCP's, `noise.json` where cases are of
//! the exact tier and, where figures of its devices have bands, `boards.json`. Rows come in one
//! case at a time through a [`Sink`]; [`FolderWriter`] streams them into a folder in bounded
//! memory. This crate writes files; it reads no clock and draws no random numbers.

mod boards;
mod costs;
mod distribution;
mod encoder;
mod error;
mod figures;
mod folder;
mod json_file;
mod manifest;
mod noise;
mod part;
mod rows;
mod run;
mod runs;
mod schema;
mod seal;
mod shape;
mod sink;
mod strata;
mod timeline;
mod version_1;
mod weighted;
mod words;

pub use boards::{BOARDS_VERSION, Boards, BoardsOfCase, BoardsOfMetric, Difference, MiddleLessAll};
pub use costs::CostUsed;
pub use error::ResultsError;
pub use figures::{FigureUsed, What};
pub use folder::{FolderWriter, Written, replace_folder};
pub use manifest::{
    CaseUsed, Half, Manifest, ProfileUsed, Registered, SCHEMA_VERSION, StandIn, StudyUsed,
};
pub use noise::{
    NOISE_BANDS, NOISE_VERSION, Noise, NoiseAtom, NoiseOfMetric, NoisePattern, WeightedTrial,
};
pub use part::write_part;
pub use rows::{CaseRows, Row, Rows, Span, Weights};
pub use run::RunFacts;
pub use schema::{Column, columns};
pub use seal::Sealed;
pub use sink::{Memory, Sink};
pub use strata::{MOST_COUNTED, NullModels, STRATA_VERSION, Strata, StrataOfCase, Stratum};
pub use timeline::{
    TIMELINES_VERSION, Timeline, TimelineActivity, TimelineEnd, TimelineKind, TimelineMark,
    TimelineMessage, TimelinePacket, TimelineTimer, TimelineTimerKind, Timelines,
};
