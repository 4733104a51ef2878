// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Observation schema, the manifest, Parquet: what both halves of the tally write and what
//! comparing and reporting read.
//!
//! A results folder is `manifest.json` beside `observations/*.parquet`. Rows come in one case at
//! a time through a [`Sink`]; [`FolderWriter`] streams them into a folder in bounded memory.
//! This crate writes files; it reads no clock and draws no random numbers.

mod distribution;
mod error;
mod folder;
mod manifest;
mod part;
mod rows;
mod runs;
mod schema;
mod seal;
mod sink;

pub use error::ResultsError;
pub use folder::{FolderWriter, Written};
pub use manifest::{Half, Manifest, ProfileUsed, SCHEMA_VERSION, StudyUsed};
pub use part::write_part;
pub use rows::{CaseRows, Row, Rows, Span};
pub use schema::{Column, columns};
pub use seal::Sealed;
pub use sink::{Memory, Sink};
