// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The columns of an observation, the same in every file of both halves.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

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
pub const WHOLE: &str = "all";

/// The Parquet schema of [`columns`].
pub(crate) fn parquet(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(|column| {
        let (physical, logical) = match column.holds {
            Holds::Word => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Holds::U32 => (Physical::INT32, Some(LogicalType::integer(32, false))),
            Holds::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Holds::F64 => (Physical::DOUBLE, None),
        };
        Type::primitive_type_builder(&column.name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::REQUIRED)
            .build()
            .map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("observation").with_fields(fields).build().map(Arc::new)
}
