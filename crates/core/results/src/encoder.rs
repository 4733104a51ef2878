// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Groups of rows as Parquet, column by column.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnDescPtr, ColumnPath};
use warifu_model::{Keyword, Value, case_columns};

use crate::rows::{CaseRows, Rows, Weights};
use crate::runs::{Runs, ZSTD_LEVEL};
use crate::schema;

/// What every row of a part has in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The study's name.
    pub study: String,
    /// The run that made the rows.
    pub run_id: String,
}

/// Turns groups of rows into Parquet.
pub(crate) struct Encoder<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> Encoder<W> {
    pub(crate) fn new(sink: W) -> Result<Encoder<W>, ParquetError> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_dictionary_enabled(false);
        // Trials count up.
        let trial = ColumnPath::from("trial");
        properties = properties.set_column_encoding(trial, Encoding::DELTA_BINARY_PACKED);
        let schema = schema::parquet()?;
        let writer = SerializedFileWriter::new(sink, schema, Arc::new(properties.build()))?;
        Ok(Encoder { writer })
    }

    /// Writes the rows as one row group; `group` is empty afterwards.
    pub(crate) fn write(&mut self, group: &mut Group) -> Result<(), ParquetError> {
        if group.rows == 0 {
            return Ok(());
        }
        let descriptors = self.writer.schema_descr().columns().to_vec();
        let mut columns =
            Columns { out: self.writer.next_row_group()?, descriptors: descriptors.into_iter() };
        columns.runs(&mut group.study)?;
        columns.runs(&mut group.case_id)?;
        for settings in &mut group.settings {
            columns.runs(settings)?;
        }
        columns.runs(&mut group.run_id)?;
        columns.runs(&mut group.connection)?;
        columns.numbers::<Int64Type>(&mut group.trial)?;
        columns.runs(&mut group.metric)?;
        columns.runs(&mut group.stage)?;
        columns.runs(&mut group.step)?;
        columns.runs(&mut group.from_ns)?;
        columns.runs(&mut group.until_ns)?;
        columns.numbers::<DoubleType>(&mut group.value)?;
        columns.runs(&mut group.unit)?;
        columns.numbers::<DoubleType>(&mut group.weight)?;
        columns.runs(&mut group.exact)?;
        columns.runs(&mut group.method)?;
        columns.runs(&mut group.evidence)?;
        columns.numbers::<Int64Type>(&mut group.seed)?;
        columns.out.close()?;
        group.rows = 0;
        Ok(())
    }

    /// Writes the footer and returns the sink. (The library's own `into_inner` would turn an
    /// error of the file system into text.)
    pub(crate) fn finish(&mut self) -> Result<&W, ParquetError> {
        self.writer.finish()?;
        Ok(self.writer.inner())
    }
}

/// A row group that is being written, column after column.
struct Columns<'a, W: Write + Send> {
    out: SerializedRowGroupWriter<'a, W>,
    descriptors: std::vec::IntoIter<ColumnDescPtr>,
}

impl<W: Write + Send> Columns<'_, W> {
    /// Writes a column of runs and empties it.
    fn runs(&mut self, runs: &mut Runs) -> Result<(), ParquetError> {
        let descriptor = self.descriptor()?;
        runs.write(&mut self.out, descriptor)
    }

    /// Writes a column of numbers and empties it.
    fn numbers<T: DataType>(&mut self, values: &mut Vec<T::T>) -> Result<(), ParquetError> {
        self.descriptor()?;
        let mut column = self.out.next_column()?.ok_or_else(too_few_columns)?;
        column.typed::<T>().write_batch(values, None, None)?;
        column.close()?;
        values.clear();
        Ok(())
    }

    fn descriptor(&mut self) -> Result<ColumnDescPtr, ParquetError> {
        self.descriptors.next().ok_or_else(too_few_columns)
    }
}

fn too_few_columns() -> ParquetError {
    ParquetError::General("the schema has too few columns".to_owned())
}

/// Rows that wait to be encoded, column by column in the order of [`schema::columns`].
/// Unsigned integers are kept as the signed ones that Parquet stores.
pub(crate) struct Group {
    pub(crate) rows: usize,
    study: Runs,
    case_id: Runs,
    settings: Vec<Runs>,
    run_id: Runs,
    pub(crate) connection: Runs,
    trial: Vec<i64>,
    metric: Runs,
    stage: Runs,
    step: Runs,
    from_ns: Runs,
    until_ns: Runs,
    value: Vec<f64>,
    unit: Runs,
    weight: Vec<f64>,
    exact: Runs,
    method: Runs,
    evidence: Runs,
    seed: Vec<i64>,
}

impl Default for Group {
    fn default() -> Group {
        Group {
            rows: 0,
            study: Runs::default(),
            case_id: Runs::default(),
            settings: case_columns().map(|_| Runs::default()).collect(),
            run_id: Runs::default(),
            connection: Runs::default(),
            trial: Vec::new(),
            metric: Runs::default(),
            stage: Runs::default(),
            step: Runs::default(),
            from_ns: Runs::default(),
            until_ns: Runs::default(),
            value: Vec::new(),
            unit: Runs::default(),
            weight: Vec::new(),
            exact: Runs::default(),
            method: Runs::default(),
            evidence: Runs::default(),
            seed: Vec::new(),
        }
    }
}

impl Group {
    pub(crate) fn push(&mut self, origin: &Origin, case: &CaseRows) {
        let CaseRows { case_id, columns, method, evidence, weights, rows } = case;
        let count = rows.len();
        self.study.push_text(&origin.study, count);
        self.case_id.push_text(&case_id.0, count);
        for (settings, value) in self.settings.iter_mut().zip(columns) {
            settings.push(value.as_ref(), count);
        }
        self.run_id.push_text(&origin.run_id, count);
        for (&metric, &connection) in rows.metric.iter().zip(&rows.connection) {
            self.connection.push_u32(metric.scope().connection(connection), 1);
        }
        self.trial.extend(rows.trial.iter().map(|&value| value.cast_signed()));
        for same in rows.metric.chunk_by(|a, b| a == b) {
            self.metric.push_text(same[0].name(), same.len());
            self.unit.push_text(same[0].unit(), same.len());
        }
        for same in rows.stage.chunk_by(|a, b| a == b) {
            match same[0] {
                Some(stage) => self.stage.push_text(stage.name(), same.len()),
                None => self.stage.push_null(same.len()),
            }
        }
        self.push_spans(rows);
        self.value.extend_from_slice(&rows.value);
        self.weight.extend_from_slice(&rows.weight);
        self.exact.push(Some(&Value::Bool(*weights == Weights::Probabilities)), count);
        self.method.push_text(method.name(), count);
        self.evidence.push_text(evidence.name(), count);
        self.seed.extend(rows.seed.iter().map(|&value| value.cast_signed()));
        self.rows += count;
    }

    fn push_spans(&mut self, rows: &Rows) {
        let mut done = 0;
        for (index, span) in &rows.spans {
            self.push_no_spans(index - done);
            match &span.step {
                Some(step) => self.step.push_text(step, 1),
                None => self.step.push_null(1),
            }
            self.from_ns.push_u64(Some(span.from_ns), 1);
            self.until_ns.push_u64(Some(span.until_ns), 1);
            done = index + 1;
        }
        self.push_no_spans(rows.len() - done);
    }

    fn push_no_spans(&mut self, count: usize) {
        self.step.push_null(count);
        self.from_ns.push_null(count);
        self.until_ns.push_null(count);
    }
}
