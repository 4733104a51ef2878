// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The columns of an observation, the same in every file of both halves.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};
use warifu_model::{ColumnType, case_columns};

/// A column: its name and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub column_type: ColumnType,
    /// The unit of its values: `ns`, `B`, `bit/s`; `1` for counts and shares, empty for the rest.
    pub unit: &'static str,
    /// Whether a row may have none.
    pub nullable: bool,
}

/// The columns in their order: the study, the case and its settings (any of which may be null),
/// then the observation.
///
/// `connection` is null for a metric that a whole scenario has one value of, `stage` for the whole
/// metric. `weight` is a number of trials, and where `exact` is true a probability: the row belongs
/// to a distribution that is known exactly, but for what the probabilities of the case's whole time
/// and of `connection.failed` lack to one. A row is one span of the timeline of a single
/// connection where `from_ns` and `until_ns`, counted from the trial's beginning, are not null;
/// `step` then names the operation or message, and the row is part of no sum or distribution.
pub fn columns() -> Vec<Column> {
    use ColumnType::{Bool, F64, Text, U32, U64};
    let column = |name, column_type, unit| Column { name, column_type, unit, nullable: false };
    let nullable = |name, column_type, unit| Column { name, column_type, unit, nullable: true };
    let mut columns = vec![column("study", Text, ""), column("case_id", Text, "")];
    columns.extend(case_columns().map(|of| nullable(of.name, of.column_type, of.unit)));
    columns.extend([
        column("run_id", Text, ""),
        nullable("connection", U32, "1"),
        column("trial", U64, "1"),
        column("metric", Text, ""),
        nullable("stage", Text, ""),
        nullable("step", Text, ""),
        nullable("from_ns", U64, "ns"),
        nullable("until_ns", U64, "ns"),
        // In the unit that stands beside it.
        column("value", F64, ""),
        column("unit", Text, ""),
        column("weight", F64, "1"),
        column("exact", Bool, ""),
        column("method", Text, ""),
        column("evidence", Text, ""),
        column("seed", U64, ""),
    ]);
    columns
}

/// The Parquet schema of [`columns`].
pub(crate) fn parquet() -> Result<TypePtr, ParquetError> {
    let fields = columns().into_iter().map(|column| {
        let (physical, logical) = match column.column_type {
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Bool => (Physical::BOOLEAN, None),
            ColumnType::U16 => (Physical::INT32, Some(LogicalType::integer(16, false))),
            ColumnType::U32 => (Physical::INT32, Some(LogicalType::integer(32, false))),
            ColumnType::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
            ColumnType::F64 => (Physical::DOUBLE, None),
        };
        let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(column.name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
            .map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("observation").with_fields(fields).build().map(Arc::new)
}
