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
use warifu_model::Stage;

use crate::error::ResultsError;
use crate::rows::CaseRows;
use crate::schema::{self, Column, WHOLE};
use crate::seal::{Sealed, Sealing};
use crate::words::{Words, ZSTD_LEVEL};

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
    let mut part = Part::create(path, origin, choices(case))?;
    part.push(case)?;
    part.close()
}

/// The names of a case's columns.
pub(crate) fn choices(case: &CaseRows) -> Vec<&'static str> {
    case.columns.iter().map(|&(name, _)| name).collect()
}

/// A file of observations that is being written under a temporary name.
pub(crate) struct Part {
    path: PathBuf,
    partial: PathBuf,
    origin: Origin,
    choices: Vec<&'static str>,
    group: Group,
    group_rows: usize,
    encoder: Option<Encoder<Sealing<File>>>,
    rows: usize,
}

impl Part {
    /// Begins a file that will be named `path`, for cases with these columns.
    pub(crate) fn create(
        path: &Path,
        origin: Origin,
        choices: Vec<&'static str>,
    ) -> Result<Part, ResultsError> {
        let partial = partial_name(path);
        let file = File::create(&partial).map_err(|error| io_error(path, "create", error))?;
        let columns = schema::columns(choices.iter().copied());
        let encoder = match Encoder::new(Sealing::new(file), &columns) {
            Ok(encoder) => encoder,
            Err(error) => {
                // What is left of it says nothing; the first error does.
                let _ = fs::remove_file(&partial);
                return Err(parquet_error(path, error));
            }
        };
        let group = Group::new(&columns);
        let path = path.to_owned();
        Ok(Part {
            path,
            partial,
            origin,
            choices,
            group,
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
        if !case.columns.iter().map(|&(name, _)| name).eq(self.choices.iter().copied()) {
            let message = format!(
                "case {} has other columns than the cases before it: give every case the columns of Case::columns",
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
    fn new(sink: W, columns: &[Column]) -> Result<Encoder<W>, ParquetError> {
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
        let schema = schema::parquet(columns)?;
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
        for words in &mut group.head {
            columns.words(words)?;
        }
        columns.words(&mut group.run_id)?;
        columns.numbers::<Int32Type>(&mut group.connection)?;
        columns.numbers::<Int64Type>(&mut group.trial)?;
        columns.words(&mut group.metric)?;
        columns.words(&mut group.stage)?;
        columns.numbers::<DoubleType>(&mut group.value)?;
        columns.words(&mut group.unit)?;
        columns.numbers::<DoubleType>(&mut group.weight)?;
        columns.words(&mut group.kind)?;
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
    /// Writes a column of words and empties it.
    fn words(&mut self, words: &mut Words) -> Result<(), ParquetError> {
        let descriptor = self.descriptor()?;
        words.write(&mut self.out, descriptor)
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
    head: Vec<Words>,
    run_id: Words,
    connection: Vec<i32>,
    trial: Vec<i64>,
    metric: Words,
    stage: Words,
    value: Vec<f64>,
    unit: Words,
    weight: Vec<f64>,
    kind: Words,
    seed: Vec<i64>,
}

impl Group {
    fn new(columns: &[Column]) -> Group {
        // The columns before run_id: study, case_id and the choices.
        let head = columns.iter().take_while(|column| column.name != "run_id").count();
        Group {
            rows: 0,
            head: (0..head).map(|_| Words::default()).collect(),
            run_id: Words::default(),
            connection: Vec::new(),
            trial: Vec::new(),
            metric: Words::default(),
            stage: Words::default(),
            value: Vec::new(),
            unit: Words::default(),
            weight: Vec::new(),
            kind: Words::default(),
            seed: Vec::new(),
        }
    }

    fn push(&mut self, origin: &Origin, case: &CaseRows) {
        let CaseRows { case_id, columns, kind, rows } = case;
        let count = rows.len();
        let words = [origin.study.as_str(), case_id.0.as_str()];
        let words = words.into_iter().chain(columns.iter().map(|(_, word)| word.as_str()));
        for (column, word) in self.head.iter_mut().zip(words) {
            column.push(word, count);
        }
        self.run_id.push(&origin.run_id, count);
        self.connection.extend(rows.connection.iter().map(|&value| value.cast_signed()));
        self.trial.extend(rows.trial.iter().map(|&value| value.cast_signed()));
        for same in rows.metric.chunk_by(|a, b| a == b) {
            self.metric.push(same[0].name(), same.len());
            self.unit.push(same[0].unit(), same.len());
        }
        for same in rows.stage.chunk_by(|a, b| a == b) {
            self.stage.push(same[0].map_or(WHOLE, Stage::name), same.len());
        }
        self.value.extend_from_slice(&rows.value);
        self.weight.extend_from_slice(&rows.weight);
        self.kind.push(kind.name(), count);
        self.seed.extend(rows.seed.iter().map(|&value| value.cast_signed()));
        self.rows += count;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use warifu_model::{CaseId, Kind, Metric, Stage};

    use super::*;
    use crate::rows::{Row, Rows};

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
        let columns = vec![("device", "this-host".to_owned()), ("rtt_ns", "60000000".to_owned())];
        CaseRows { case_id: CaseId(id.to_owned()), columns, kind: Kind::Simulated, rows }
    }

    #[test]
    fn rows_come_back_as_they_went_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        write_part(&path, "meter", "run-1", &case("0123456789abcdef", 3)).unwrap();

        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let names: Vec<_> = reader
            .metadata()
            .file_metadata()
            .schema()
            .get_fields()
            .iter()
            .map(|field| field.name().to_owned())
            .collect();
        assert_eq!(
            names,
            [
                "study",
                "case_id",
                "device",
                "rtt_ns",
                "run_id",
                "connection",
                "trial",
                "metric",
                "stage",
                "value",
                "unit",
                "weight",
                "kind",
                "seed"
            ]
        );
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 6);
        let last = &rows[5];
        assert_eq!(last.get_string(0).unwrap(), "meter");
        assert_eq!(last.get_string(1).unwrap(), "0123456789abcdef");
        assert_eq!(last.get_string(3).unwrap(), "60000000");
        assert_eq!(last.get_string(4).unwrap(), "run-1");
        assert_eq!(last.get_uint(5).unwrap(), 0);
        assert_eq!(last.get_ulong(6).unwrap(), 2);
        assert_eq!(last.get_string(7).unwrap(), "https.establishment");
        assert_eq!(last.get_string(8).unwrap(), "propagation");
        assert_eq!(last.get_double(9).unwrap(), 180e6);
        assert_eq!(last.get_string(10).unwrap(), "ns");
        assert_eq!(last.get_double(11).unwrap(), 1.0);
        assert_eq!(last.get_string(12).unwrap(), "simulated");
        assert_eq!(last.get_ulong(13).unwrap(), u64::MAX - 2);
    }

    #[test]
    fn many_row_groups_keep_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let origin = Origin { study: "meter".into(), run_id: "run-1".into() };
        let mut part = Part::create(&path, origin, choices(&case("a", 1))).unwrap();
        part.group_rows = 100;
        for id in ["a", "b", "c"] {
            part.push(&case(id, 40)).unwrap();
        }
        part.close().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2);
        for (index, row) in reader.get_row_iter(None).unwrap().map(Result::unwrap).enumerate() {
            assert_eq!(row.get_string(1).unwrap(), ["a", "b", "c"][index / 80]);
            assert_eq!(row.get_ulong(6).unwrap(), (index as u64 % 80) / 2);
        }
    }

    #[test]
    fn a_file_that_was_not_closed_leaves_nothing_and_an_older_one_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        fs::write(&path, "older").unwrap();
        let origin = Origin { study: "meter".into(), run_id: "run-1".into() };
        let mut part = Part::create(&path, origin, choices(&case("a", 1))).unwrap();
        part.push(&case("a", 3)).unwrap();
        drop(part);
        let left: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["a.parquet"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "older");
    }

    #[test]
    fn a_case_with_other_columns_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let origin = Origin { study: "meter".into(), run_id: "run-1".into() };
        let path = folder.path().join("a.parquet");
        let mut part = Part::create(&path, origin, choices(&case("a", 1))).unwrap();
        let mut other = case("b", 1);
        other.columns.pop();
        let message = part.push(&other).unwrap_err().to_string();
        assert!(message.contains("case b has other columns"), "{message}");
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
    fn a_full_disk_is_called_by_its_name() {
        let columns = schema::columns(["device", "rtt_ns"]);
        let mut encoder = Encoder::new(SmallDisk { left: 100 }, &columns).unwrap();
        let mut group = Group::new(&columns);
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
