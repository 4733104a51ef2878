// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The manifest of a run that is about to begin.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};
use warifu_model::{CalibrationCase, Case, CostUse, Evidence, Input, Keyword, Study};

use crate::costs::CostsUsed;
use crate::figures::Figures;
use crate::manifest::{CaseUsed, Half, Manifest, ProfileUsed, SCHEMA_VERSION, StudyUsed};
use crate::seal::sha256;

/// Above this many cases a manifest lists neither cases nor figures one by one: both follow from
/// the study's text and profiles, which are in it, and a manifest is read whole.
const MOST_LISTED_CASES: usize = 2_000;

/// What whoever begins a run knows of it, beside the study: see [`Manifest`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "they are the manifest's own keys")]
pub struct RunFacts {
    pub half: Half,
    pub run_id: String,
    pub started: String,
    /// The study's text, the file that it was read from, and what flags changed.
    pub text: String,
    #[serde(default)]
    pub file: String,
    #[serde(default)]
    pub overrides: Vec<(String, String)>,
    /// Kind, name and text of every profile used.
    #[serde(default)]
    pub profiles: Vec<(String, String, String)>,
    #[serde(default)]
    pub calibration_run_ids: Vec<String>,
    #[serde(default)]
    pub calibration_cases: Vec<CalibrationCase>,
    #[serde(default)]
    pub commit: Option<String>,
    #[serde(default)]
    pub dirty: Option<bool>,
    #[serde(default)]
    pub machine: Map<String, Value>,
    #[serde(default)]
    pub tools: Map<String, Value>,
}

impl Manifest {
    /// The manifest of a run of `study` that is about to begin. `inputs` gives what a case's half
    /// rests on: all that a prediction uses, or what the emulation of a measurement does; and what
    /// its operations cost, where that was looked up.
    ///
    /// # Errors
    /// Those of `inputs`.
    pub fn begin<E>(
        run: RunFacts,
        study: &Study,
        inputs: impl Fn(&Case) -> Result<(Vec<Input>, Vec<CostUse>), E>,
    ) -> Result<Manifest, E> {
        let listed = if study.cases.len() > MOST_LISTED_CASES { &[] } else { &study.cases[..] };
        let mut figures = Figures::default();
        let mut costs = CostsUsed::default();
        let mut cases = Vec::with_capacity(listed.len());
        for (index, case) in listed.iter().enumerate() {
            let case_id = case.id().0;
            let (inputs, uses) = inputs(case)?;
            let evidence = inputs.iter().filter_map(|input| input.evidence);
            let evidence = match run.half {
                Half::Predicted => Evidence::weakest(evidence),
                // The programs themselves are measured, whatever else takes part.
                _ => Evidence::weakest(evidence.chain([Evidence::Measured])),
            };
            for input in inputs {
                figures.add(input.into(), &case_id);
            }
            for of in uses {
                costs.add(of, &case_id);
            }
            let choices = study.choices(index).into_iter();
            cases.push(CaseUsed {
                case_id,
                label: study.label(index),
                choices: choices.map(|(path, value)| (path.to_owned(), value.to_owned())).collect(),
                evidence,
                // The canonical form is JSON.
                case: serde_json::from_str(&case.canonical()).unwrap_or_default(),
            });
        }
        let require = study.require.iter().map(|bound| {
            let (metric, statistic) = (bound.metric.name(), bound.statistic.name());
            let operator = bound.operator.sign();
            let [metric, statistic, operator] = [metric, statistic, operator].map(str::to_owned);
            (metric, statistic, operator, bound.bound, bound.text.clone())
        });
        Ok(Manifest {
            manifest_sha256: String::new(),
            schema_version: SCHEMA_VERSION,
            half: run.half,
            run_id: run.run_id,
            study: StudyUsed {
                name: study.name.clone(),
                sha256: sha256(run.text.as_bytes()),
                text: run.text,
                file: run.file,
                overrides: run.overrides,
            },
            seed: study.seed,
            trials: Some(study.trials),
            predict_trials: Some(study.predict_trials),
            vary: study.vary.clone(),
            require: require.collect(),
            started: run.started,
            finished: None,
            complete: false,
            commit: run.commit,
            dirty: run.dirty,
            machine: run.machine,
            tools: run.tools,
            calibration_run_ids: run.calibration_run_ids,
            calibration_case_ids: ids_of(&run.calibration_cases),
            calibration_cases: run.calibration_cases,
            profiles: run.profiles.into_iter().map(profile_used).collect(),
            methods: BTreeSet::new(),
            evidence: BTreeSet::new(),
            figures: figures.into_list(listed.len()),
            costs: costs.into_list(listed.len()),
            cases,
            link_reports: Map::new(),
            cells: Map::new(),
            rejections: Vec::new(),
            registered: None,
            skipped: BTreeMap::new(),
            without_costs: Vec::new(),
            stands_in: None,
            warnings: Vec::new(),
            files: BTreeMap::new(),
        })
    }
}

/// The names of cases, each once and sorted.
fn ids_of(cases: &[CalibrationCase]) -> Vec<String> {
    let ids: BTreeSet<&str> = cases.iter().map(|case| case.case_id.as_str()).collect();
    ids.into_iter().map(str::to_owned).collect()
}

fn profile_used((kind, name, text): (String, String, String)) -> ProfileUsed {
    ProfileUsed { kind, name, sha256: sha256(text.as_bytes()), text }
}
