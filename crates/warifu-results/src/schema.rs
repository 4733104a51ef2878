// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The columns of an observation, the same in every file of both halves.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// A column: its name and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub holds: Holds,
}

/// What a column holds; no column has nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Words from a short list, stored once each.
    Word,
    /// A small count.
    U32,
    /// A count, or a seed.
    U64,
    /// A value.
    F64,
}

/// The columns in their order: the study, the case and its choices, then the observation.
/// `choices` are the names of the case columns, as `Case::columns` gives them.
pub fn columns<'a>(choices: impl IntoIterator<Item = &'a str>) -> Vec<Column> {
    let column = |name: &str, holds| Column { name: name.to_owned(), holds };
    let mut columns = vec![column("study", Holds::Word), column("case_id", Holds::Word)];
    columns.extend(choices.into_iter().map(|name| column(name, Holds::Word)));
    columns.extend([
        column("run_id", Holds::Word),
        column("connection", Holds::U32),
        column("trial", Holds::U64),
        column("metric", Holds::Word),
        column("stage", Holds::Word),
        column("value", Holds::F64),
        column("unit", Holds::Word),
        column("weight", Holds::F64),
        column("kind", Holds::Word),
        column("seed", Holds::U64),
    ]);
    columns
}

/// The stage of a row that stands for the whole metric.
pub(crate) const WHOLE: &str = "all";

/// The Arrow schema of [`columns`].
pub(crate) fn arrow(columns: &[Column]) -> SchemaRef {
    let fields = columns.iter().map(|column| {
        let data_type = match column.holds {
            Holds::Word => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            Holds::U32 => DataType::UInt32,
            Holds::U64 => DataType::UInt64,
            Holds::F64 => DataType::Float64,
        };
        Field::new(&column.name, data_type, false)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
