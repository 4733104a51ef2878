// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A results folder that is being written: cases stream into parts, and the folder takes its
//! place only when the run ends, so that older results stay whole until then.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::boards::{self, Boards};
use crate::encoder::Origin;
use crate::error::ResultsError;
use crate::manifest::{FILE_NAME, Manifest};
use crate::noise::{self, Noise};
use crate::part::{Part, partial_name};
use crate::rows::CaseRows;
use crate::seal::Sealed;
use crate::sink::Sink;
use crate::strata::{self, Strata};
use crate::timeline::{self, Timelines};

/// Rows after which a part is closed: what a full disk or a killed process can take away.
const PART_ROWS: usize = 2_000_000;

/// Streams cases into `FOLDER.partial`, which becomes `FOLDER` when the run ends.
///
/// Memory is bounded by one row group. Parts that are closed stay readable whatever happens
/// next: after an error or an interruption they are in `FOLDER` if there was none before, else
/// in `FOLDER.partial`, with a manifest that says `"complete": false`.
pub struct FolderWriter {
    folder: PathBuf,
    staging: PathBuf,
    manifest: Manifest,
    part: Option<Part>,
    part_rows: usize,
    parts: usize,
    /// Cases and rows in closed parts.
    closed: Written,
    /// Cases in the part that is open.
    open_cases: usize,
    ended: bool,
}

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Cases.
    pub cases: usize,
    /// Rows.
    pub rows: usize,
}

impl FolderWriter {
    /// Begins a results folder; `manifest` is written at once, as not complete.
    ///
    /// # Errors
    /// When `folder` exists and holds something else than results, or cannot be written.
    pub fn create(folder: &Path, manifest: Manifest) -> Result<FolderWriter, ResultsError> {
        refuse_other(folder)?;
        let staging = beside(folder, ".partial");
        if !is_leftover(&staging) {
            refuse_other(&staging)?;
        }
        remove(&staging)?;
        let files = BTreeMap::new();
        let manifest = Manifest { complete: false, finished: None, files, ..manifest };
        let observations = staging.join("observations");
        let begun = fs::create_dir_all(&observations)
            .map_err(|error| ResultsError::io(&observations, "create", error))
            .and_then(|()| manifest.write(&staging));
        if let Err(error) = begun {
            // A folder without a manifest helps nobody; the first error says what happened.
            let _ = remove(&staging);
            return Err(error);
        }
        Ok(FolderWriter {
            folder: folder.to_owned(),
            staging,
            manifest,
            part: None,
            part_rows: PART_ROWS,
            parts: 0,
            closed: Written::default(),
            open_cases: 0,
            ended: false,
        })
    }

    /// Ends the run and puts the folder in its place; older results there are replaced, but
    /// only by complete ones. `complete` says whether every case is in it, `finished` when it
    /// ended (RFC 3339).
    ///
    /// # Errors
    /// When a file cannot be written; what was written before stays readable.
    pub fn finish(
        mut self,
        complete: bool,
        finished: Option<String>,
    ) -> Result<Written, ResultsError> {
        let result = self.close_part().and_then(|()| {
            self.manifest.complete = complete;
            self.manifest.finished = finished;
            self.manifest.write(&self.staging)?;
            if complete { replace_folder(&self.staging, &self.folder) } else { Ok(()) }
        });
        match result {
            Ok(()) => {
                if !complete {
                    let _ = self.leave();
                }
                self.ended = true;
                Ok(self.closed)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Lists a file in the manifest, if it was written.
    fn list(
        &mut self,
        name: &str,
        written: Result<Sealed, ResultsError>,
    ) -> Result<(), ResultsError> {
        match written {
            Ok(sealed) => {
                self.manifest.files.insert(name.to_owned(), sealed);
                Ok(())
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn take(&mut self, case: &CaseRows) -> Result<(), ResultsError> {
        let mut part = match self.part.take() {
            Some(part) => part,
            None => self.next_part()?,
        };
        part.push(case)?;
        self.manifest.methods.insert(case.method);
        self.manifest.evidence.insert(case.evidence);
        let full = part.rows() >= self.part_rows;
        self.part = Some(part);
        self.open_cases += 1;
        if full { self.close_part() } else { Ok(()) }
    }

    fn next_part(&self) -> Result<Part, ResultsError> {
        let path = self.staging.join("observations").join(part_name(self.parts));
        let study = self.manifest.study.name.clone();
        let origin = Origin { study, run_id: self.manifest.run_id.clone() };
        Part::create(&path, origin)
    }

    fn close_part(&mut self) -> Result<(), ResultsError> {
        if let Some(part) = self.part.take() {
            let rows = part.rows();
            let cases = std::mem::take(&mut self.open_cases);
            let name = format!("observations/{}", part_name(self.parts));
            let sealed = part.close()?;
            self.parts += 1;
            self.closed.cases += cases;
            self.closed.rows += rows;
            self.manifest.files.insert(name, sealed);
            // A killed process cannot say any more what it had finished.
            self.manifest.write(&self.staging)?;
        }
        Ok(())
    }

    /// Leaves what is readable where it can be found, and says so in the error.
    fn fail(&mut self, error: ResultsError) -> ResultsError {
        match self.leave() {
            Some(place) => {
                let (cases, place) = (self.closed.cases, place.display());
                error.keeping(format!("; {cases} finished cases stay readable in {place}"))
            }
            None => error,
        }
    }

    /// Ends the writing without finishing; returns where finished cases are, if there are any.
    fn leave(&mut self) -> Option<PathBuf> {
        self.ended = true;
        self.part = None;
        if self.closed.cases == 0 {
            // There is nothing to keep, and nothing more to say if it cannot be removed.
            let _ = remove(&self.staging);
            return None;
        }
        if !self.folder.exists() && fs::rename(&self.staging, &self.folder).is_ok() {
            return Some(self.folder.clone());
        }
        Some(self.staging.clone())
    }
}

impl Sink for FolderWriter {
    fn case(&mut self, case: &CaseRows) -> Result<(), ResultsError> {
        self.take(case).map_err(|error| self.fail(error))
    }

    fn boards(&mut self, boards: &Boards) -> Result<(), ResultsError> {
        let written = boards.write(&self.staging);
        self.list(boards::FILE_NAME, written)
    }

    fn strata(&mut self, strata: &Strata) -> Result<(), ResultsError> {
        let written = strata.write(&self.staging);
        self.list(strata::FILE_NAME, written)
    }

    fn noise(&mut self, noise: &Noise) -> Result<(), ResultsError> {
        let written = noise.write(&self.staging);
        self.list(noise::FILE_NAME, written)
    }

    fn timelines(&mut self, timelines: &Timelines) -> Result<(), ResultsError> {
        let written = timelines.write(&self.staging);
        self.list(timeline::FILE_NAME, written)
    }
}

impl Drop for FolderWriter {
    /// A writer that was not finished (the caller met another error) keeps what is whole.
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.close_part();
            let _ = self.leave();
        }
    }
}

/// Puts a results folder that is whole in the place of another, which stays as it is until then.
///
/// The other is put beside `whole` until it is removed, under `whole`'s name: beside itself its
/// user may have kept something of that name.
///
/// # Errors
/// When `folder` exists and holds something else than results, or cannot be renamed.
pub fn replace_folder(whole: &Path, folder: &Path) -> Result<(), ResultsError> {
    let rename = |from: &Path, to: &Path| {
        fs::rename(from, to).map_err(|error| ResultsError::io(to, "rename", error))
    };
    refuse_other(folder)?;
    if !folder.exists() {
        return rename(whole, folder);
    }
    let old = beside(whole, ".old");
    remove(&old)?;
    rename(folder, &old)?;
    rename(whole, folder)?;
    remove(&old)
}

fn part_name(number: usize) -> String {
    format!("part-{number:05}.parquet")
}

/// `folder` with something added to its name.
fn beside(folder: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(folder.as_os_str());
    name.push(ending);
    PathBuf::from(name)
}

/// Results may be replaced, anything else may not: a mistyped `--out` must not cost a home folder.
fn refuse_other(folder: &Path) -> Result<(), ResultsError> {
    if folder.join(FILE_NAME).is_file() {
        return Ok(());
    }
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(ResultsError::NotResults(folder.to_owned())),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(ResultsError::io(folder, "read", error)),
    }
}

/// Whether a staging folder is what a run left that could not even write its manifest.
fn is_leftover(staging: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(staging) else { return false };
    entries.all(|entry| {
        entry.is_ok_and(|entry| {
            let name = entry.file_name();
            let hidden = partial_name(&staging.join(FILE_NAME));
            name == "observations" || Some(name.as_os_str()) == hidden.file_name()
        })
    })
}

fn remove(folder: &Path) -> Result<(), ResultsError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ResultsError::io(folder, "remove", error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::manifest::tests::TEXT;
    use crate::part::tests::case;

    fn manifest() -> Manifest {
        Manifest::parse(TEXT, "manifest.json").unwrap()
    }

    fn read_manifest(folder: &Path) -> Manifest {
        let text = fs::read_to_string(folder.join(FILE_NAME)).unwrap();
        Manifest::parse(&text, FILE_NAME).unwrap()
    }

    fn rows_in(folder: &Path) -> i64 {
        let parts = fs::read_dir(folder.join("observations")).unwrap();
        let rows = |path| {
            let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
            reader.metadata().file_metadata().num_rows()
        };
        parts.map(|entry| rows(entry.unwrap().path())).sum()
    }

    #[test]
    fn finished_run_replaces_the_older_one() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("meter/predicted");
        let mut first = FolderWriter::create(&folder, manifest()).unwrap();
        first.case(&case("a", 2)).unwrap();
        assert!(!folder.exists());
        first.finish(true, Some("2026-11-21T05:00:00Z".into())).unwrap();
        assert_eq!(rows_in(&folder), 4);

        let mut second = FolderWriter::create(&folder, manifest()).unwrap();
        second.case(&case("a", 5)).unwrap();
        assert_eq!(rows_in(&folder), 4);
        let written = second.finish(true, None).unwrap();
        assert_eq!(written, Written { cases: 1, rows: 10 });
        assert_eq!(rows_in(&folder), 10);
        assert!(read_manifest(&folder).complete);
        let left = fs::read_dir(folder.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "only the results are left");
    }

    #[test]
    fn parts_closed_during_a_run() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("predicted");
        let mut writer = FolderWriter::create(&folder, manifest()).unwrap();
        writer.part_rows = 100;
        for id in ["a", "b", "c"] {
            writer.case(&case(id, 30)).unwrap();
        }
        // Two cases fill a part; the third waits in the next.
        assert_eq!(writer.closed, Written { cases: 2, rows: 120 });
        assert_eq!(writer.finish(false, None).unwrap(), Written { cases: 3, rows: 180 });
        assert_eq!(rows_in(&folder), 180);
        assert!(!read_manifest(&folder).complete);
    }

    #[test]
    fn interrupted_run_keeps_the_older_one() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("predicted");
        let mut first = FolderWriter::create(&folder, manifest()).unwrap();
        first.case(&case("a", 2)).unwrap();
        first.finish(true, None).unwrap();
        let mut second = FolderWriter::create(&folder, manifest()).unwrap();
        second.case(&case("a", 5)).unwrap();
        second.finish(false, None).unwrap();
        assert_eq!(rows_in(&folder), 4);
        assert_eq!(rows_in(&place.path().join("predicted.partial")), 10);

        let empty = FolderWriter::create(&place.path().join("other"), manifest()).unwrap();
        empty.finish(false, None).unwrap();
        assert!(!place.path().join("other").exists(), "nothing was written, nothing is left");
    }

    #[test]
    fn finished_cases_after_an_error() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("predicted");
        let fail_after_two = || {
            let mut writer = FolderWriter::create(&folder, manifest()).unwrap();
            writer.part_rows = 1;
            writer.case(&case("a", 1)).unwrap();
            writer.case(&case("b", 1)).unwrap();
            // The disk is full from here on.
            let full = ResultsError::io(&folder, "write", io::ErrorKind::StorageFull.into());
            writer.fail(full).to_string()
        };
        let message = fail_after_two();
        assert!(
            message.ends_with("; 2 finished cases stay readable in ".to_owned().as_str())
                || message.contains("; 2 finished cases stay readable in "),
            "{message}"
        );
        assert_eq!(rows_in(&folder), 4);
        assert!(!read_manifest(&folder).complete);

        let message = fail_after_two();
        assert!(message.ends_with("predicted.partial"), "{message}");
        assert_eq!(rows_in(&folder), 4);
    }

    #[test]
    fn length_and_hash_of_each_file() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("predicted");
        let mut writer = FolderWriter::create(&folder, manifest()).unwrap();
        writer.part_rows = 1;
        writer.case(&case("a", 1)).unwrap();
        // Already before the end: a killed process cannot say it any more.
        assert_eq!(read_manifest(&writer.staging).files.len(), 1);
        writer.case(&case("b", 1)).unwrap();
        writer.finish(true, None).unwrap();
        let files = read_manifest(&folder).files;
        assert_eq!(files.len(), 2);
        for (name, sealed) in files {
            let bytes = fs::read(folder.join(name)).unwrap();
            assert_eq!(sealed.bytes, bytes.len() as u64);
            assert_eq!(sealed.sha256, crate::seal::sha256(&bytes));
        }
    }

    #[test]
    fn leftover_without_a_manifest() {
        let place = tempfile::tempdir().unwrap();
        let (folder, staging) =
            (place.path().join("predicted"), place.path().join("predicted.partial"));
        fs::create_dir_all(staging.join("observations")).unwrap();
        fs::write(staging.join(".manifest.json.partial"), "{").unwrap();
        let mut writer = FolderWriter::create(&folder, manifest()).unwrap();
        writer.case(&case("a", 2)).unwrap();
        writer.finish(true, None).unwrap();
        assert_eq!(rows_in(&folder), 4);

        fs::create_dir_all(&staging).unwrap();
        fs::write(staging.join("thesis.tex"), "years of work").unwrap();
        let error = FolderWriter::create(&folder, manifest()).err().unwrap().to_string();
        assert!(error.contains("is not a results folder"), "{error}");
        assert!(staging.join("thesis.tex").exists());
    }

    #[test]
    fn folder_without_results() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("thesis.tex"), "years of work").unwrap();
        let error = FolderWriter::create(place.path(), manifest()).err().unwrap().to_string();
        assert!(error.contains("is not a results folder"), "{error}");
        assert!(place.path().join("thesis.tex").exists());
    }

    #[test]
    fn dropped_writer_keeps_finished_cases() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("predicted");
        let mut writer = FolderWriter::create(&folder, manifest()).unwrap();
        writer.case(&case("a", 2)).unwrap();
        drop(writer);
        assert_eq!(rows_in(&folder), 4);
        let empty = FolderWriter::create(&place.path().join("other"), manifest()).unwrap();
        drop(empty);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
    }
}
