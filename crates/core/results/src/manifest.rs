// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `manifest.json`: what a results folder holds and how it came to be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use warifu_model::{CalibrationCase, Evidence, Keyword, Method, Metric, Operator, Statistic};

use crate::costs::CostUsed;
use crate::error::ResultsError;
use crate::figures::FigureUsed;
use crate::part::{create_new, partial_name};
use crate::seal::{Sealed, sha256};
use crate::shape::{self, Mistake};
use crate::{version_1, words};

/// The schema that this version writes and reads.
pub const SCHEMA_VERSION: u32 = 2;

/// The key of a manifest's own SHA-256.
const SEAL_KEY: &str = "manifest_sha256";

const OPERATORS: [Operator; 4] =
    [Operator::Less, Operator::AtMost, Operator::Greater, Operator::AtLeast];

/// Its name in a results folder.
pub(crate) const FILE_NAME: &str = "manifest.json";

/// What a results folder holds and how it came to be. Instants are RFC 3339 text, given by
/// whoever may read a clock. A key that is not known is refused: it is a slip of the writer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// SHA-256 of its own text in which this value is 64 zeros; made anew each time it is written.
    #[serde(default, skip_serializing)]
    pub manifest_sha256: String,
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
    /// Measured trials a case.
    #[serde(default)]
    pub trials: Option<u32>,
    /// Simulated trials a case.
    #[serde(default)]
    pub predict_trials: Option<u32>,
    /// What varies: dotted path and values as written.
    #[serde(default)]
    pub vary: Vec<(String, Vec<String>)>,
    /// Bounds that results are judged by: metric, statistic, operator, bound (ns, B or 1), text.
    #[serde(default)]
    pub require: Vec<(String, String, String, f64, String)>,
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
    /// The cases that those runs were of, sorted: none of them can be judged by this prediction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibration_case_ids: Vec<String>,
    /// The same by the choices that their times depend on. A case that has all of them in common
    /// with one of these is the same cell, although what else differs gives it another name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibration_cases: Vec<CalibrationCase>,
    /// Every profile used, whole and once.
    #[serde(default)]
    pub profiles: Vec<ProfileUsed>,
    /// How its values were obtained.
    #[serde(default)]
    pub methods: BTreeSet<Method>,
    /// What its values rest on; each row says the weakest evidence of its own.
    #[serde(default)]
    pub evidence: BTreeSet<Evidence>,
    /// Every figure that a case uses, once; empty for a study of very many cases.
    #[serde(default)]
    pub figures: Vec<FigureUsed>,
    /// What each operation costs and by what, its own figure or a recipe; predicted half only, and
    /// empty for a study of very many cases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostUsed>,
    /// The cases in the order of the study; empty for a study of very many.
    #[serde(default)]
    pub cases: Vec<CaseUsed>,
    /// The emulated link's report on itself, by case id; measured half only.
    #[serde(default)]
    pub link_reports: Map<String, Value>,
    /// The parts that each case was measured in, by case id; measured half only.
    #[serde(default)]
    pub cells: Map<String, Value>,
    /// Parts that were rejected before their results were seen; measured half only.
    #[serde(default)]
    pub rejections: Vec<Value>,
    /// The prediction that was there before the measurement was begun; measured half only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<Registered>,
    /// Why a case was not predicted or measured, by its label.
    #[serde(default)]
    pub skipped: BTreeMap<String, String>,
    /// The labels of those of them that were not predicted for lack of costs, so that no
    /// requirement was judged on them. Others are no cases at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_costs: Vec<String>,
    /// What stands in for the machine that the study was asked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_in: Option<StandIn>,
    /// What a reader of the results must know.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Length and hash of every file of observations, of boards and of timelines, by its path in
    /// the folder.
    #[serde(default)]
    pub files: BTreeMap<String, Sealed>,
}

/// Which half of the tally a folder holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Half {
    /// Computed.
    Predicted,
    /// Observed on real programs.
    Measured,
    /// Neither: one program on an emulated processor.
    Emulated,
    /// Neither: one program on a board.
    Board,
    /// Neither: one command with a probe in it.
    Profiled,
}

/// A prediction, as a measurement that begins finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registered {
    /// Names the prediction's run.
    pub run_id: String,
    /// The predictor's commit, where known.
    pub commit: Option<String>,
    /// Whether its sources differed from that commit.
    pub dirty: Option<bool>,
    /// When the prediction was finished.
    pub finished: Option<String>,
    /// SHA-256 of its manifest, which has that of every file.
    pub manifest_sha256: String,
}

/// A machine that came with Warifu in the place of one that was never calibrated, or not for the
/// study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandIn {
    /// Its device profile.
    pub name: String,
    /// The one of the warnings that says so.
    pub warning: String,
}

/// The study as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyUsed {
    /// Its name.
    pub name: String,
    /// SHA-256 of its text, hexadecimal.
    pub sha256: String,
    /// Its text.
    pub text: String,
    /// The file that it was read from; `command line` for a question without one.
    #[serde(default)]
    pub file: String,
    /// What flags changed: dotted path and value.
    #[serde(default)]
    pub overrides: Vec<(String, String)>,
}

/// A profile as it was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// A case as it was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseUsed {
    /// Its id.
    pub case_id: String,
    /// What sets it apart from the study's other cases: `rtt 60 ms, tls 1.3`.
    #[serde(default)]
    pub label: String,
    /// The same taken apart: dotted path and value, as written.
    #[serde(default)]
    pub choices: Vec<(String, String)>,
    /// The weakest evidence that this half of it rests on.
    pub evidence: Evidence,
    /// Its canonical form.
    pub case: Value,
}

impl Manifest {
    /// Reads one; `file` is the name for errors.
    ///
    /// # Errors
    /// When it is not JSON, lacks a key, was written by a newer version, or by an older one whose
    /// results cannot be read any more.
    pub fn parse(text: &str, file: &str) -> Result<Manifest, ResultsError> {
        let error = |key: &str, message: String| ResultsError::Manifest {
            file: file.to_owned(),
            key: key.to_owned(),
            message,
        };
        let again = |message: &str| format!("{message}: run the study again");
        let not_json = |cause| error("manifest", again(&words::not_json(&cause)));
        let value: Value = serde_json::from_str(text).map_err(not_json)?;
        let Value::Object(mut value) = value else {
            let message = format!("is {}: expected an object", words::shown(&value));
            return Err(error("manifest", again(&message)));
        };
        let version = value.get("schema_version");
        match version.and_then(Value::as_u64) {
            Some(version) if version == u64::from(SCHEMA_VERSION) => {}
            Some(1) => {
                value = version_1::upgrade(value).map_err(|(key, message)| error(key, message))?;
                value.insert("schema_version".to_owned(), SCHEMA_VERSION.into());
            }
            _ => {
                let is = version.map_or("missing".to_owned(), words::shown);
                let message = format!(
                    "is {is}: this version of Warifu reads 1 and {SCHEMA_VERSION}: \
                     run the study again, or use the version that wrote it"
                );
                return Err(error("schema_version", message));
            }
        }
        let manifest: Manifest =
            serde_path_to_error::deserialize(Value::Object(value)).map_err(|cause| {
                let path = cause.path().to_string();
                let (key, message) = words::plain(&path, &cause.into_inner().to_string());
                error(&key, again(&message))
            })?;
        manifest.check().map_err(|(key, message)| error(&key, again(&message)))?;
        Ok(manifest)
    }

    /// Names the first key whose value readers have no use for, although its type is right.
    fn check(&self) -> Result<(), Mistake> {
        let mut known = BTreeSet::new();
        for (place, case) in self.cases.iter().enumerate() {
            let key = format!("cases[{place}]");
            if !known.insert(&case.case_id) {
                return Err((key, format!("has the case_id {:?} of another case", case.case_id)));
            }
            let (axes, first) = (case.choices.len(), self.cases[0].choices.len());
            if axes != first {
                let message = format!("is a list of {axes}: expected {first} as in cases[0]");
                return Err((format!("{key}.choices"), message));
            }
            shape::check_case(&case.case, &format!("{key}.case"))?;
        }
        for (place, (metric, statistic, operator, ..)) in self.require.iter().enumerate() {
            let key = format!("require[{place}]");
            if !Metric::ALL.iter().any(|known| known.name() == metric) {
                let message = format!("judges {metric:?}, which is no metric of this version");
                return Err((key, message));
            }
            Statistic::from_word(statistic)
                .map_err(|expected| (key.clone(), format!("has {statistic:?}: {expected}")))?;
            if !OPERATORS.iter().any(|known| known.sign() == operator) {
                return Err((key, format!("has {operator:?}: expected <, <=, > or >=")));
            }
        }
        if let Some(tcp) = self.machine.get("tcp") {
            shape::check_object(tcp, "machine.tcp")?;
        }
        for (case_id, report) in &self.link_reports {
            shape::check_link_report(report, &format!("link_reports.{case_id}"))?;
        }
        for (case_id, cell) in &self.cells {
            shape::check_cell(cell, &format!("cells.{case_id}"))?;
        }
        Ok(())
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
        let text = self.to_text();
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
        let written = create_new(&partial).and_then(|mut file| {
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
        "cases": [
            {"case_id": "b", "evidence": "assumed", "case": {"device": 1}},
            {"case_id": "a", "evidence": "published", "case": {}}
        ]
    }"#;

    #[test]
    fn text_reads_back() {
        let manifest = Manifest::parse(TEXT, "manifest.json").unwrap();
        let ids = manifest.cases.iter().map(|case| case.case_id.as_str());
        assert_eq!(ids.collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(Manifest::parse(&manifest.to_text(), "manifest.json").unwrap(), manifest);
        assert!(!manifest.complete);
    }

    #[test]
    fn unknown_key() {
        let text = TEXT.replace("\"seed\"", "\"sead\": 1, \"seed\"");
        let message = Manifest::parse(&text, "manifest.json").unwrap_err().to_string();
        assert_eq!(
            message,
            "manifest.json: sead is a key that no manifest has: run the study again"
        );
    }

    /// What is said of a manifest in which one text is exchanged for another.
    fn refused(from: &str, to: &str) -> String {
        assert!(TEXT.contains(from));
        Manifest::parse(&TEXT.replace(from, to), "m.json").unwrap_err().to_string()
    }

    #[test]
    fn wrong_values_in_plain_words() {
        for (from, to, expected) in [
            ("20261121", "\"now\"", "m.json: seed is \"now\": expected a whole number: "),
            ("\"seed\": 20261121,", "", "m.json: seed is missing: run the study again"),
            ("{\"device\": 1}", "1", "m.json: cases[0].case is 1: expected an object: "),
            ("\"a\"", "\"b\"", "m.json: cases[1] has the case_id \"b\" of another case: "),
            (
                "\"schema_version\": 2",
                "\"schema_version\": \"two\"",
                "m.json: schema_version is \"two\": this version of Warifu reads 1 and 2: ",
            ),
        ] {
            let message = refused(from, to);
            assert!(message.starts_with(expected), "{message}");
        }
        assert!(Manifest::parse("7", "m.json").unwrap_err().to_string().contains("manifest is 7:"));
    }

    #[test]
    fn values_that_readers_go_by() {
        for (added, expected) in [
            (r#""cells": {"x": 3},"#, "cells.x is 3: expected an object"),
            (r#""link_reports": {"x": [7]},"#, "link_reports.x[0] is 7: expected an object"),
            (r#""machine": {"tcp": 3},"#, "machine.tcp is 3: expected an object"),
            (r#""require": [["a", "p50", "<", 1.0, ""]],"#, "require[0] judges \"a\", which"),
            (
                r#""require": [["tcp.connect", "p51", "<", 1.0, ""]],"#,
                "require[0] has \"p51\": exp",
            ),
            (r#""require": [["tcp.connect", "p50", "=", 1.0, ""]],"#, "require[0] has \"=\": exp"),
        ] {
            let message = refused("\"started\"", &format!("{added} \"started\""));
            assert!(message.starts_with(&format!("m.json: {expected}")), "{message}");
        }
    }

    #[test]
    fn seal_of_each_writing() {
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
    fn newer_schema_or_no_manifest_at_all() {
        let newer = TEXT.replace("\"schema_version\": 2", "\"schema_version\": 3");
        assert_eq!(
            Manifest::parse(&newer, "results/manifest.json").unwrap_err().to_string(),
            "results/manifest.json: schema_version is 3: this version of Warifu reads 1 and 2: \
             run the study again, or use the version that wrote it"
        );
        let cut = Manifest::parse(&TEXT[..40], "manifest.json").unwrap_err().to_string();
        assert!(cut.starts_with("manifest.json: manifest is cut off at line 2, column "), "{cut}");
        assert!(!cut.contains('\n'));
    }

    #[test]
    fn partial_manifest_that_is_another_name_of_a_file_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join(FILE_NAME), folder.path().join("other"));
        fs::write(&other, "somebody's").unwrap();
        fs::hard_link(&other, partial_name(&path)).unwrap();
        Manifest::parse(TEXT, "manifest.json").unwrap().write(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "somebody's");
        assert!(path.is_file());
    }
}
