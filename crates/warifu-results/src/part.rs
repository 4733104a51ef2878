// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One Parquet file of observations: rows are gathered into batches, batches into row groups,
//! and the file appears under its name only when it is whole.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::error::ResultsError;
use crate::rows::CaseRows;
use crate::schema::{self, Column, WHOLE};

/// Rows handed to the Parquet library at once; with the row group below it bounds the memory.
const BATCH_ROWS: usize = 64 * 1024;
/// Rows of a row group, which the library holds encoded until it is whole: about 10 MB.
const GROUP_ROWS: usize = 512 * 1024;

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
) -> Result<(), ResultsError> {
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
    batch: Batch,
    encoder: Option<Encoder<File>>,
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
        let encoder = match Encoder::new(file, schema::arrow(&columns), &columns) {
            Ok(encoder) => encoder,
            Err(error) => {
                // What is left of it says nothing; the first error does.
                let _ = fs::remove_file(&partial);
                return Err(parquet_error(path, error));
            }
        };
        let batch = Batch::new(&columns);
        let path = path.to_owned();
        Ok(Part { path, partial, origin, choices, batch, encoder: Some(encoder), rows: 0 })
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
        self.batch.push(&self.origin, case);
        self.rows += case.rows.len();
        if self.batch.rows >= BATCH_ROWS { self.write_batch() } else { Ok(()) }
    }

    /// Ends the file and gives it its name.
    pub(crate) fn close(mut self) -> Result<(), ResultsError> {
        self.write_batch()?;
        let Some(mut encoder) = self.encoder.take() else { return Ok(()) };
        let file = encoder.finish().map_err(|error| parquet_error(&self.path, error))?;
        // Blocks may be allocated only now, so a full disk may show only now.
        file.sync_all().map_err(|error| io_error(&self.path, "write", error))?;
        fs::rename(&self.partial, &self.path).map_err(|error| io_error(&self.path, "rename", error))
    }

    fn write_batch(&mut self) -> Result<(), ResultsError> {
        let Some(encoder) = &mut self.encoder else { return Ok(()) };
        encoder.write(&mut self.batch).map_err(|error| parquet_error(&self.path, error))
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

/// Turns batches into Parquet.
struct Encoder<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: SchemaRef,
}

impl<W: Write + Send> Encoder<W> {
    fn new(sink: W, schema: SchemaRef, columns: &[Column]) -> Result<Encoder<W>, ParquetError> {
        let mut properties = WriterProperties::builder()
            // Level 3 is zstd's own default; higher ones cost more time than they save space here.
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_dictionary_enabled(false);
        for column in columns {
            let path = ColumnPath::from(column.name.as_str());
            properties = match column.holds {
                schema::Holds::Word => properties.set_column_dictionary_enabled(path, true),
                // Trials count up and connections repeat.
                schema::Holds::U32 => {
                    properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
                }
                schema::Holds::U64 if column.name == "trial" => {
                    properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
                }
                schema::Holds::U64 | schema::Holds::F64 => properties,
            };
        }
        let writer = ArrowWriter::try_new(sink, schema.clone(), Some(properties.build()))?;
        Ok(Encoder { writer, schema })
    }

    fn write(&mut self, batch: &mut Batch) -> Result<(), ParquetError> {
        if batch.rows == 0 {
            return Ok(());
        }
        let arrays = batch.take();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays)?;
        self.writer.write(&batch)
    }

    /// Writes the footer and returns the sink. (The library's own `into_inner` would turn an
    /// error of the file system into text.)
    fn finish(&mut self) -> Result<&W, ParquetError> {
        self.writer.finish()?;
        Ok(self.writer.inner())
    }
}

/// Rows that wait to be encoded, in the order of [`schema::columns`].
struct Batch {
    rows: usize,
    head: Vec<Words>,
    run_id: Words,
    connection: Vec<u32>,
    trial: Vec<u64>,
    metric: Words,
    stage: Words,
    value: Vec<f64>,
    unit: Words,
    weight: Vec<f64>,
    kind: Words,
    seed: Vec<u64>,
}

impl Batch {
    fn new(columns: &[Column]) -> Batch {
        // The columns before run_id: study, case_id and the choices.
        let head = columns.iter().take_while(|column| column.name != "run_id").count();
        Batch {
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
        let count = case.rows.len();
        let words = [origin.study.as_str(), case.case_id.0.as_str()];
        let words = words.into_iter().chain(case.columns.iter().map(|(_, word)| word.as_str()));
        for (column, word) in self.head.iter_mut().zip(words) {
            column.push(word, count);
        }
        self.run_id.push(&origin.run_id, count);
        self.connection.extend_from_slice(&case.rows.connection);
        self.trial.extend_from_slice(&case.rows.trial);
        for metric in &case.rows.metric {
            self.metric.push(metric.name(), 1);
            self.unit.push(metric.unit(), 1);
        }
        for stage in &case.rows.stage {
            self.stage.push(stage.map_or(WHOLE, |stage| stage.name()), 1);
        }
        self.value.extend_from_slice(&case.rows.value);
        self.weight.extend_from_slice(&case.rows.weight);
        self.kind.push(case.kind.name(), count);
        self.seed.extend_from_slice(&case.rows.seed);
        self.rows += count;
    }

    /// The columns as arrays; the batch is empty afterwards.
    fn take(&mut self) -> Vec<ArrayRef> {
        self.rows = 0;
        let mut arrays: Vec<ArrayRef> = self.head.iter_mut().map(Words::take).collect();
        arrays.push(self.run_id.take());
        arrays.push(Arc::new(UInt32Array::from(std::mem::take(&mut self.connection))));
        arrays.push(Arc::new(UInt64Array::from(std::mem::take(&mut self.trial))));
        arrays.push(self.metric.take());
        arrays.push(self.stage.take());
        arrays.push(Arc::new(Float64Array::from(std::mem::take(&mut self.value))));
        arrays.push(self.unit.take());
        arrays.push(Arc::new(Float64Array::from(std::mem::take(&mut self.weight))));
        arrays.push(self.kind.take());
        arrays.push(Arc::new(UInt64Array::from(std::mem::take(&mut self.seed))));
        arrays
    }
}

/// A column of words: each word once, and a key for each row.
#[derive(Default)]
struct Words {
    words: Vec<String>,
    keys: Vec<i32>,
    known: HashMap<String, i32>,
    /// The last word's key: most rows repeat the row before.
    last: Option<i32>,
}

impl Words {
    fn push(&mut self, word: &str, count: usize) {
        let key = match self.last {
            Some(last) if self.words[last as usize] == word => last,
            _ => self.key(word),
        };
        self.last = Some(key);
        self.keys.resize(self.keys.len() + count, key);
    }

    fn key(&mut self, word: &str) -> i32 {
        if let Some(&key) = self.known.get(word) {
            return key;
        }
        // At most one new word for each row of a batch, so the count fits.
        let key = self.words.len() as i32;
        self.words.push(word.to_owned());
        self.known.insert(word.to_owned(), key);
        key
    }

    fn take(&mut self) -> ArrayRef {
        self.last = None;
        self.known.clear();
        let words = StringArray::from(std::mem::take(&mut self.words));
        let keys = Int32Array::from(std::mem::take(&mut self.keys));
        Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(words)))
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
    fn many_batches_keep_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let origin = Origin { study: "meter".into(), run_id: "run-1".into() };
        let mut part = Part::create(&path, origin, choices(&case("a", 1))).unwrap();
        for id in ["a", "b", "c"] {
            part.push(&case(id, 40_000)).unwrap();
        }
        part.close().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        for (index, row) in reader.get_row_iter(None).unwrap().map(Result::unwrap).enumerate() {
            assert_eq!(row.get_string(1).unwrap(), ["a", "b", "c"][index / 80_000]);
            assert_eq!(row.get_ulong(6).unwrap(), (index as u64 % 80_000) / 2);
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
        let mut encoder =
            Encoder::new(SmallDisk { left: 100 }, schema::arrow(&columns), &columns).unwrap();
        let mut batch = Batch::new(&columns);
        batch.push(&Origin { study: "m".into(), run_id: "r".into() }, &case("a", 1_000));
        let error =
            encoder.write(&mut batch).and_then(|()| encoder.finish().map(drop)).unwrap_err();
        let error = parquet_error(Path::new("results/a.parquet"), error);
        assert_eq!(
            error.to_string(),
            "results/a.parquet: no space left on the device: free some, then run again"
        );
    }
}
