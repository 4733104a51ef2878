// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One Parquet file of observations: rows are gathered into row groups, and the file appears
//! under its name only when it is whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnDescPtr, ColumnPath};
use warifu_model::{Keyword, Value, case_columns};

use crate::error::ResultsError;
use crate::rows::{CaseRows, Rows};
use crate::runs::{Runs, ZSTD_LEVEL};
use crate::schema;
use crate::seal::{Sealed, Sealing};

/// Rows of a row group, which are held until it is whole: about 10 MB, and one case more.
const GROUP_ROWS: usize = 256 * 1024;

/// What every row of a part has in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The study's name.
    pub study: String,
    /// The run that made the rows.
    pub run_id: String,
}

/// Writes one case's rows as a file of its own, atomically: `path` holds either all of them or
/// what it held before.
///
/// # Errors
/// When the file cannot be written.
pub fn write_part(
    path: &Path,
    study: &str,
    run_id: &str,
    case: &CaseRows,
) -> Result<Sealed, ResultsError> {
    let origin = Origin { study: study.to_owned(), run_id: run_id.to_owned() };
    let mut part = Part::create(path, origin)?;
    part.push(case)?;
    part.close()
}

/// Whether there is one value of its column's type, or null, for each column of a case.
fn fits(values: &[Option<Value>]) -> bool {
    let same_type = case_columns().zip(values).all(|(column, value)| {
        value.as_ref().is_none_or(|value| value.column_type() == column.column_type)
    });
    same_type && values.len() == case_columns().count()
}

/// A file of observations that is being written under a temporary name.
pub(crate) struct Part {
    path: PathBuf,
    partial: PathBuf,
    origin: Origin,
    group: Group,
    group_rows: usize,
    encoder: Option<Encoder<Sealing<File>>>,
    rows: usize,
}

impl Part {
    /// Begins a file that will be named `path`, for cases with these columns.
    pub(crate) fn create(path: &Path, origin: Origin) -> Result<Part, ResultsError> {
        let partial = partial_name(path);
        let file = File::create(&partial).map_err(|error| io_error(path, "create", error))?;
        let encoder = match Encoder::new(Sealing::new(file)) {
            Ok(encoder) => encoder,
            Err(error) => {
                // What is left of it says nothing; the first error does.
                let _ = fs::remove_file(&partial);
                return Err(parquet_error(path, error));
            }
        };
        Ok(Part {
            path: path.to_owned(),
            partial,
            origin,
            group: Group::default(),
            group_rows: GROUP_ROWS,
            encoder: Some(encoder),
            rows: 0,
        })
    }

    /// Rows taken so far.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Takes one case.
    pub(crate) fn push(&mut self, case: &CaseRows) -> Result<(), ResultsError> {
        if !fits(&case.columns) {
            let message = format!(
                "case {} has other columns than the schema: take those of Case::columns",
                case.case_id.0
            );
            return Err(ResultsError::Rows { file: self.path.display().to_string(), message });
        }
        self.group.push(&self.origin, case);
        self.rows += case.rows.len();
        if self.group.rows >= self.group_rows { self.write_group() } else { Ok(()) }
    }

    /// Ends the file and gives it its name; what it is known by from then on.
    pub(crate) fn close(mut self) -> Result<Sealed, ResultsError> {
        self.write_group()?;
        let Some(mut encoder) = self.encoder.take() else { return Ok(Sealed::default()) };
        let written = encoder.finish().map_err(|error| parquet_error(&self.path, error))?;
        let sealed = written.sealed();
        // Blocks may be allocated only now, so a full disk may show only now.
        written.inner().sync_all().map_err(|error| io_error(&self.path, "write", error))?;
        fs::rename(&self.partial, &self.path)
            .map_err(|error| io_error(&self.path, "rename", error))?;
        Ok(sealed)
    }

    fn write_group(&mut self) -> Result<(), ResultsError> {
        let Some(encoder) = &mut self.encoder else { return Ok(()) };
        encoder.write(&mut self.group).map_err(|error| parquet_error(&self.path, error))
    }
}

impl Drop for Part {
    /// A part that was not closed is worth nothing; after a close the name is gone already.
    fn drop(&mut self) {
        self.encoder = None;
        let _ = fs::remove_file(&self.partial);
    }
}

/// `.NAME.partial` beside `path`: hidden from whoever looks for `*.parquet`.
pub(crate) fn partial_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.partial"))
}

fn io_error(path: &Path, doing: &'static str, error: io::Error) -> ResultsError {
    ResultsError::io(path, doing, error)
}

/// The Parquet library wraps the file system's errors; a full disk must stay recognisable.
fn parquet_error(path: &Path, error: ParquetError) -> ResultsError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(inner) => io_error(path, "write", *inner),
            Err(inner) => {
                ResultsError::Parquet { path: path.to_owned(), message: inner.to_string() }
            }
        },
        other => ResultsError::Parquet { path: path.to_owned(), message: other.to_string() },
    }
}

/// Turns groups of rows into Parquet.
struct Encoder<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> Encoder<W> {
    fn new(sink: W) -> Result<Encoder<W>, ParquetError> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_dictionary_enabled(false);
        // Trials count up and connections repeat.
        for name in ["connection", "trial"] {
            let path = ColumnPath::from(name);
            properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let schema = schema::parquet()?;
        let writer = SerializedFileWriter::new(sink, schema, Arc::new(properties.build()))?;
        Ok(Encoder { writer })
    }

    /// Writes the rows as one row group; `group` is empty afterwards.
    fn write(&mut self, group: &mut Group) -> Result<(), ParquetError> {
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
        columns.numbers::<Int32Type>(&mut group.connection)?;
        columns.numbers::<Int64Type>(&mut group.trial)?;
        columns.runs(&mut group.metric)?;
        columns.runs(&mut group.stage)?;
        columns.runs(&mut group.step)?;
        columns.runs(&mut group.from_ns)?;
        columns.runs(&mut group.until_ns)?;
        columns.numbers::<DoubleType>(&mut group.value)?;
        columns.runs(&mut group.unit)?;
        columns.numbers::<DoubleType>(&mut group.weight)?;
        columns.runs(&mut group.method)?;
        columns.runs(&mut group.evidence)?;
        columns.numbers::<Int64Type>(&mut group.seed)?;
        columns.out.close()?;
        group.rows = 0;
        Ok(())
    }

    /// Writes the footer and returns the sink. (The library's own `into_inner` would turn an
    /// error of the file system into text.)
    fn finish(&mut self) -> Result<&W, ParquetError> {
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
struct Group {
    rows: usize,
    study: Runs,
    case_id: Runs,
    settings: Vec<Runs>,
    run_id: Runs,
    connection: Vec<i32>,
    trial: Vec<i64>,
    metric: Runs,
    stage: Runs,
    step: Runs,
    from_ns: Runs,
    until_ns: Runs,
    value: Vec<f64>,
    unit: Runs,
    weight: Vec<f64>,
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
            connection: Vec::new(),
            trial: Vec::new(),
            metric: Runs::default(),
            stage: Runs::default(),
            step: Runs::default(),
            from_ns: Runs::default(),
            until_ns: Runs::default(),
            value: Vec::new(),
            unit: Runs::default(),
            weight: Vec::new(),
            method: Runs::default(),
            evidence: Runs::default(),
            seed: Vec::new(),
        }
    }
}

impl Group {
    fn push(&mut self, origin: &Origin, case: &CaseRows) {
        let CaseRows { case_id, columns, method, evidence, rows } = case;
        let count = rows.len();
        self.study.push_text(&origin.study, count);
        self.case_id.push_text(&case_id.0, count);
        for (settings, value) in self.settings.iter_mut().zip(columns) {
            settings.push(value.as_ref(), count);
        }
        self.run_id.push_text(&origin.run_id, count);
        self.connection.extend(rows.connection.iter().map(|&value| value.cast_signed()));
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

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use warifu_model::{CaseId, Evidence, Method, Metric, Stage};

    use super::*;
    use crate::rows::{Row, Span};

    pub(crate) fn case(id: &str, trials: u64) -> CaseRows {
        let mut rows = Rows::default();
        for trial in 0..trials {
            let row = Row {
                connection: 0,
                trial,
                metric: Metric::HttpsEstablishment,
                stage: None,
                value: 184e6 + trial as f64,
                weight: 1.0,
                seed: u64::MAX - trial,
            };
            rows.push(row);
            rows.push(Row { stage: Some(Stage::Propagation), value: 180e6, ..row });
        }
        let (method, evidence) = (Method::Simulated, Evidence::Published);
        CaseRows { case_id: CaseId(id.to_owned()), columns: settings(), method, evidence, rows }
    }

    /// Some settings, the others null.
    fn settings() -> Vec<Option<Value>> {
        let value = |name: &str| match name {
            "device" => Some(Value::Text("this-host".into())),
            "rtt_ns" => Some(Value::U64(60_000_000)),
            "mtu" => Some(Value::U16(1_500)),
            "nagle" => Some(Value::Bool(true)),
            "loss_mean" => Some(Value::F64(0.02)),
            _ => None,
        };
        case_columns().map(|column| value(column.name)).collect()
    }

    /// The rows of a file, by column name.
    fn read(path: &Path) -> Vec<BTreeMap<String, Field>> {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
        rows.map(|row| row.into_columns().into_iter().collect()).collect()
    }

    #[test]
    fn rows_of_one_case() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        write_part(&path, "meter", "run-1", &case("0123456789abcdef", 3)).unwrap();

        let rows = read(&path);
        assert_eq!(rows.len(), 6);
        let text = |text: &str| Field::Str(text.to_owned());
        let expected = [
            ("study", text("meter")),
            ("case_id", text("0123456789abcdef")),
            ("device", text("this-host")),
            ("rtt_ns", Field::ULong(60_000_000)),
            ("mtu", Field::UShort(1_500)),
            ("nagle", Field::Bool(true)),
            ("loss_mean", Field::Double(0.02)),
            ("rate_up_bps", Field::Null),
            ("tls", Field::Null),
            ("run_id", text("run-1")),
            ("connection", Field::UInt(0)),
            ("trial", Field::ULong(2)),
            ("metric", text("https.establishment")),
            ("stage", text("propagation")),
            ("step", Field::Null),
            ("from_ns", Field::Null),
            ("value", Field::Double(180e6)),
            ("unit", text("ns")),
            ("weight", Field::Double(1.0)),
            ("method", text("simulated")),
            ("evidence", text("published")),
            ("seed", Field::ULong(u64::MAX - 2)),
        ];
        for (name, value) in expected {
            assert_eq!(rows[5][name], value, "{name}");
        }
        assert_eq!(rows[4]["stage"], Field::Null, "the whole metric");
    }

    #[test]
    fn columns_in_the_order_of_the_schema() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        write_part(&path, "meter", "run-1", &case("a", 1)).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let schema = reader.metadata().file_metadata().schema();
        let names = schema.get_fields().iter().map(|field| field.name());
        assert!(names.eq(schema::columns().iter().map(|column| column.name)));
    }

    #[test]
    fn spans_of_a_timeline_between_other_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let mut case = case("a", 1);
        let row = case.rows.get(1).unwrap();
        let step = Some("ClientHello".to_owned());
        case.rows.push_span(row, Span { step, from_ns: 5, until_ns: u64::MAX });
        case.rows.push_span(row, Span { step: None, from_ns: 7, until_ns: 9 });
        case.rows.push(row);
        write_part(&path, "meter", "run-1", &case).unwrap();
        let spans: Vec<_> = read(&path)
            .into_iter()
            .map(|row| [&row["step"], &row["from_ns"], &row["until_ns"]].map(Field::clone))
            .collect();
        let none = || [Field::Null, Field::Null, Field::Null];
        let hello = Field::Str("ClientHello".into());
        let expected = [
            none(),
            none(),
            [hello, Field::ULong(5), Field::ULong(u64::MAX)],
            [Field::Null, Field::ULong(7), Field::ULong(9)],
            none(),
        ];
        assert_eq!(spans, expected);
    }

    #[test]
    fn row_order_over_many_row_groups() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let origin = Origin { study: "meter".into(), run_id: "run-1".into() };
        let mut part = Part::create(&path, origin).unwrap();
        part.group_rows = 100;
        for id in ["a", "b", "c"] {
            part.push(&case(id, 40)).unwrap();
        }
        part.close().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2);
        for (index, row) in read(&path).into_iter().enumerate() {
            assert_eq!(row["case_id"], Field::Str(["a", "b", "c"][index / 80].to_owned()));
            assert_eq!(row["trial"], Field::ULong((index as u64 % 80) / 2));
        }
    }

    #[test]
    fn dropped_part_keeps_the_older_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        fs::write(&path, "older").unwrap();
        let origin = Origin { study: "meter".into(), run_id: "run-1".into() };
        let mut part = Part::create(&path, origin).unwrap();
        part.push(&case("a", 3)).unwrap();
        drop(part);
        let left: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["a.parquet"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "older");
    }

    #[test]
    fn case_with_a_missing_column_or_another_type() {
        let folder = tempfile::tempdir().unwrap();
        let origin = Origin { study: "meter".into(), run_id: "run-1".into() };
        let path = folder.path().join("a.parquet");
        let mut part = Part::create(&path, origin).unwrap();
        let mut missing = case("b", 1);
        missing.columns.pop();
        let mut other_type = case("b", 1);
        other_type.columns[0] = Some(Value::U16(1));
        for other in [missing, other_type] {
            let message = part.push(&other).unwrap_err().to_string();
            assert!(message.contains("case b has other columns"), "{message}");
        }
    }

    /// A disk with room for `left` bytes.
    struct SmallDisk {
        left: usize,
    }

    impl Write for SmallDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.left == 0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            let taken = bytes.len().min(self.left);
            self.left -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn full_disk() {
        let mut encoder = Encoder::new(SmallDisk { left: 100 }).unwrap();
        let mut group = Group::default();
        group.push(&Origin { study: "m".into(), run_id: "r".into() }, &case("a", 1_000));
        let error =
            encoder.write(&mut group).and_then(|()| encoder.finish().map(drop)).unwrap_err();
        let error = parquet_error(Path::new("results/a.parquet"), error);
        assert_eq!(
            error.to_string(),
            "results/a.parquet: no space left on the device: free some, then run again"
        );
    }
}
