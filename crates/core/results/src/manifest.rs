// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `manifest.json`: what a results folder holds and how it came to be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use warifu_model::{Evidence, Method};

use crate::error::ResultsError;
use crate::part::partial_name;
use crate::seal::{Sealed, sha256};

/// The schema that this version writes and reads.
pub const SCHEMA_VERSION: u32 = 2;

/// The key of a manifest's own SHA-256.
const SEAL_KEY: &str = "manifest_sha256";

/// Its name in a results folder.
pub(crate) const FILE_NAME: &str = "manifest.json";

/// What a results folder holds and how it came to be. Instants are RFC 3339 text, given by
/// whoever may read a clock. Keys that this version does not know are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Which half of the tally.
    pub half: Half,
    /// Names this run; every row carries it.
    pub run_id: String,
    /// The study as it was run.
    pub study: StudyUsed,
    /// The study's seed.
    pub seed: u64,
    /// When it began.
    pub started: String,
    /// When it ended; `None` while it runs, and after an interruption without notice.
    #[serde(default)]
    pub finished: Option<String>,
    /// Whether every case has all of its trials.
    #[serde(default)]
    pub complete: bool,
    /// The commit of the program, where known.
    #[serde(default)]
    pub commit: Option<String>,
    /// Whether the program's sources differed from that commit.
    #[serde(default)]
    pub dirty: Option<bool>,
    /// The machine: processor, cores, kernel, its TCP settings.
    #[serde(default)]
    pub machine: Map<String, Value>,
    /// Versions of the tools that took part, by name.
    #[serde(default)]
    pub tools: Map<String, Value>,
    /// The runs that calibrated the profiles used.
    #[serde(default)]
    pub calibration_run_ids: Vec<String>,
    /// Every profile used, whole.
    #[serde(default)]
    pub profiles: Vec<ProfileUsed>,
    /// How its values were obtained.
    #[serde(default)]
    pub methods: BTreeSet<Method>,
    /// What its values rest on; each row says the weakest evidence of its own.
    #[serde(default)]
    pub evidence: BTreeSet<Evidence>,
    /// Every figure that a case uses with its source and kind, by case id.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// Each case's canonical form, by case id, in the order of the study.
    #[serde(default)]
    pub cases: Map<String, Value>,
    /// The emulated link's report on itself, by case id; measured half only.
    #[serde(default)]
    pub link_reports: Map<String, Value>,
    /// Length and hash of every file of observations, by its path in the folder.
    #[serde(default)]
    pub files: BTreeMap<String, Sealed>,
    /// What else the writer had to say.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Which half of the tally a folder holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Half {
    /// Computed.
    Predicted,
    /// Observed on real programs.
    Measured,
}

/// The study as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyUsed {
    /// Its name.
    pub name: String,
    /// SHA-256 of its text, hexadecimal.
    pub sha256: String,
    /// Its text.
    pub text: String,
}

/// A profile as it was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileUsed {
    /// `device`, `key_store`, `link` or `kernel`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// SHA-256 of its text, hexadecimal.
    pub sha256: String,
    /// Its text.
    pub text: String,
}

impl Manifest {
    /// Reads one; `file` is the name for errors.
    ///
    /// # Errors
    /// When it is not JSON, lacks a key, or was written by a newer version.
    pub fn parse(text: &str, file: &str) -> Result<Manifest, ResultsError> {
        let error = |key: &str, message: String| ResultsError::Manifest {
            file: file.to_owned(),
            key: key.to_owned(),
            message,
        };
        let manifest: Manifest = serde_json::from_str(text).map_err(|cause| {
            error("manifest", format!("cannot be read: {cause}: run the study again"))
        })?;
        if manifest.schema_version != SCHEMA_VERSION {
            let message = format!(
                "is {}: this version of Warifu reads {SCHEMA_VERSION}: run the study again, or use the version that wrote it",
                manifest.schema_version
            );
            return Err(error("schema_version", message));
        }
        Ok(manifest)
    }

    /// Its text, for people as well: indented, one line at the end.
    pub fn to_text(&self) -> String {
        // Strings, numbers, lists and maps with string keys: serialisation cannot fail.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Its text with its own SHA-256 as the first key, taken over the text in which that key's
    /// value is 64 zeros: whoever reads the text can tell that it is as it was written.
    pub fn to_sealed_text(&self) -> String {
        let mut manifest = self.clone();
        manifest.more.shift_remove(SEAL_KEY);
        let text = manifest.to_text();
        let seal = |value: &str| format!("{{\n  \"{SEAL_KEY}\": \"{value}\",");
        let blank = text.replacen('{', &seal(&"0".repeat(64)), 1);
        text.replacen('{', &seal(&sha256(blank.as_bytes())), 1)
    }

    /// Writes it as `folder/manifest.json`, sealed and atomically.
    ///
    /// # Errors
    /// When the file cannot be written; an older one stays as it was.
    pub fn write(&self, folder: &Path) -> Result<(), ResultsError> {
        let path = folder.join(FILE_NAME);
        let partial = partial_name(&path);
        let written = File::create(&partial).and_then(|mut file| {
            file.write_all(self.to_sealed_text().as_bytes())?;
            file.sync_all()
        });
        if let Err(error) = written {
            // The leftover is worth nothing; the first error says what happened.
            let _ = fs::remove_file(&partial);
            return Err(ResultsError::io(&path, "write", error));
        }
        fs::rename(&partial, &path).map_err(|error| ResultsError::io(&path, "rename", error))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const TEXT: &str = r#"{
        "schema_version": 2, "half": "predicted", "run_id": "run-1", "seed": 20261121,
        "study": {"name": "meter", "sha256": "00", "text": "name = \"meter\"\n"},
        "started": "2026-11-21T04:00:00Z", "methods": ["simulated"], "evidence": ["assumed"],
        "cases": {"b": {"device": 1}, "a": {}}, "note": "kept"
    }"#;

    #[test]
    fn unknown_keys_and_the_order_of_cases_survive() {
        let manifest = Manifest::parse(TEXT, "manifest.json").unwrap();
        assert_eq!(manifest.cases.keys().collect::<Vec<_>>(), ["b", "a"]);
        let again = Manifest::parse(&manifest.to_text(), "manifest.json").unwrap();
        assert_eq!(again, manifest);
        assert_eq!(again.more["note"], "kept");
        assert!(!again.complete);
    }

    #[test]
    fn a_written_manifest_is_sealed_anew_each_time() {
        let mut manifest = Manifest::parse(TEXT, "manifest.json").unwrap();
        let text = manifest.to_sealed_text();
        let seal = text.split('"').nth(3).unwrap().to_owned();
        assert_eq!(seal, sha256(text.replacen(&seal, &"0".repeat(64), 1).as_bytes()));
        manifest.seed += 1;
        assert_ne!(manifest.to_sealed_text().split('"').nth(3).unwrap(), seal);
        let again = Manifest::parse(&text, "manifest.json").unwrap();
        assert_eq!(again.to_sealed_text(), text, "an older seal is not sealed in");
    }

    #[test]
    fn another_schema_or_no_manifest_at_all_is_one_clear_line() {
        let newer = TEXT.replace("\"schema_version\": 2", "\"schema_version\": 3");
        assert_eq!(
            Manifest::parse(&newer, "results/manifest.json").unwrap_err().to_string(),
            "results/manifest.json: schema_version is 3: this version of Warifu reads 2: \
             run the study again, or use the version that wrote it"
        );
        let cut = Manifest::parse(&TEXT[..40], "manifest.json").unwrap_err().to_string();
        assert!(cut.starts_with("manifest.json: manifest cannot be read: "), "{cut}");
        assert!(!cut.contains('\n'));
    }
}
