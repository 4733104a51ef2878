// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One Parquet file of observations: rows are gathered into row groups, and the file appears
//! under its name only when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use warifu_model::{Value, case_columns};

use crate::encoder::{Encoder, Group, Origin};
use crate::error::ResultsError;
use crate::rows::{CaseRows, Weights};
use crate::seal::{Sealed, Sealing};

/// Rows of a row group, which are held until it is whole: about 10 MB, and one case more.
const GROUP_ROWS: usize = 256 * 1024;

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

/// What is wrong with probabilities that are none.
fn impossible_weights(case: &CaseRows) -> Option<String> {
    if case.weights == Weights::Trials {
        return None;
    }
    let wrong = case.rows.weight.iter().find(|weight| !(0.0..=1.0).contains(*weight))?;
    let case_id = &case.case_id.0;
    Some(format!("case {case_id} has the weight {wrong}: expected a probability from 0 to 1"))
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
        let file = create_new(&partial).map_err(|error| io_error(path, "create", error))?;
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
        if let Some(message) = impossible_weights(case) {
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

/// A new file in the place of what an earlier run may have left; never what a link there leads to
/// (O_EXCL).
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)
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

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use warifu_model::{CaseId, Evidence, Method, Metric, Scope, Stage};

    use super::*;
    use crate::rows::{Row, Rows, Span};
    use crate::runs::Runs;
    use crate::schema;

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
        let (case_id, columns) = (CaseId(id.to_owned()), settings());
        CaseRows { case_id, columns, method, evidence, weights: Weights::Trials, rows }
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
            ("exact", Field::Bool(false)),
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
    fn probabilities_as_weights() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let mut exact = CaseRows { weights: Weights::Probabilities, ..case("a", 2) };
        exact.rows.weight = vec![0.75, 0.75, 0.25, 0.25];
        write_part(&path, "meter", "run-1", &exact).unwrap();
        let rows = read(&path);
        let weights = rows.iter().map(|row| (&row["weight"], &row["exact"]));
        let expected = [0.75, 0.75, 0.25, 0.25].map(|weight| (Field::Double(weight), true));
        for ((weight, exact), (expected, is_exact)) in weights.zip(expected) {
            assert_eq!((weight, exact), (&expected, &Field::Bool(is_exact)));
        }
        exact.rows.weight[1] = 1.5;
        let message = write_part(&path, "meter", "run-1", &exact).unwrap_err().to_string();
        let expected = "case a has the weight 1.5: expected a probability from 0 to 1";
        assert!(message.ends_with(expected), "{message}");
    }

    #[test]
    fn connection_of_a_whole_scenario() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let origin = Origin { study: "m".into(), run_id: "r".into() };
        let mut group = Group::default();
        group.push(&origin, &case("a", 1));
        group.connection = Runs::default();
        group.connection.push_u32(Scope::Scenario.connection(0), 1);
        group.connection.push_u32(Scope::Connection.connection(3), 1);
        let mut encoder = Encoder::new(File::create(&path).unwrap()).unwrap();
        encoder.write(&mut group).unwrap();
        encoder.finish().unwrap();
        let rows = read(&path);
        assert_eq!(rows[0]["connection"], Field::Null);
        assert_eq!(rows[1]["connection"], Field::UInt(3));
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

    #[test]
    fn partial_file_that_is_another_name_of_a_file_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a.parquet"), folder.path().join("other"));
        fs::write(&other, "somebody's").unwrap();
        fs::hard_link(&other, partial_name(&path)).unwrap();
        write_part(&path, "meter", "run-1", &case("a", 3)).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "somebody's");
        assert!(path.is_file());
    }
}
