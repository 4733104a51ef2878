// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Observation schema, the manifest, Parquet: what both halves of the tally write and what
//! comparing and reporting read.
//!
//! A results folder is `manifest.json` beside `observations/*.parquet`. Rows come in one case at
//! a time through a [`Sink`]. This crate writes files; it reads no clock and draws no random
//! numbers.

mod distribution;
mod error;
mod rows;
mod schema;
mod sink;

pub use error::ResultsError;
pub use rows::{CaseRows, Row, Rows};
pub use schema::{Column, Holds, columns};
pub use sink::{Memory, Sink};
