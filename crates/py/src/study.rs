// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Studies and their cases.

use std::sync::Arc;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use warifu_model as model;
use warifu_model::{Catalog, Keyword, ProfileKind};
use warifu_trace::scenario;

use crate::columns::settings_of;
use crate::error::warifu_error;

/// A profile as Python hands it over: kind, name, text, file.
type ProfileText = (String, String, String, String);
/// A requirement as Python sees it: metric, statistic, operator, bound, text as written.
type Requirement = (&'static str, &'static str, &'static str, f64, String);

/// A kernel's release as Python sees it: 6, 18 and, if said, 5 of 6.18.5.
type Release = (u32, u32, Option<u32>);

/// A study, checked as a whole: every case of it can be run.
#[pyclass(frozen, module = "warifu._core")]
pub(crate) struct Study {
    pub(crate) study: Arc<model::Study>,
    pub(crate) catalog: Arc<Catalog>,
}

/// One case of a study.
#[pyclass(frozen, module = "warifu._core")]
pub(crate) struct CaseView {
    study: Arc<model::Study>,
    catalog: Arc<Catalog>,
    index: usize,
}

#[pymethods]
impl Study {
    /// Reads a study; `overrides` are pairs of dotted path and value that take the place of
    /// what the text says.
    #[staticmethod]
    #[pyo3(signature = (text, file, profiles, overrides=Vec::new()))]
    fn parse(
        py: Python<'_>,
        text: &str,
        file: &str,
        profiles: Vec<ProfileText>,
        overrides: Vec<(String, String)>,
    ) -> PyResult<Study> {
        py.detach(|| {
            let catalog = catalog(&profiles)?;
            let study = model::Study::parse_with(text, file, &overrides, &catalog)?;
            Ok(Study { study: Arc::new(study), catalog: Arc::new(catalog) })
        })
        .map_err(|error: model::Error| warifu_error(error))
    }

    /// A question that needs no file.
    #[staticmethod]
    fn from_choices(
        py: Python<'_>,
        choices: Vec<(String, String)>,
        profiles: Vec<ProfileText>,
    ) -> PyResult<Study> {
        py.detach(|| {
            let catalog = catalog(&profiles)?;
            let study = model::Study::from_choices(&choices, &catalog)?;
            Ok(Study { study: Arc::new(study), catalog: Arc::new(catalog) })
        })
        .map_err(|error: model::Error| warifu_error(error))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.study.name
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.study.seed
    }

    #[getter]
    fn trials(&self) -> u32 {
        self.study.trials
    }

    #[getter]
    fn predict_trials(&self) -> u32 {
        self.study.predict_trials
    }

    #[getter]
    fn text_hash(&self) -> &str {
        &self.study.text_hash
    }

    #[getter]
    fn vary(&self) -> Vec<(String, Vec<String>)> {
        self.study.vary.clone()
    }

    #[getter]
    fn require(&self) -> Vec<Requirement> {
        let bound = |bound: &model::Requirement| {
            let (metric, statistic) = (bound.metric.name(), bound.statistic.name());
            (metric, statistic, bound.operator.sign(), bound.bound, bound.text.clone())
        };
        self.study.require.iter().map(bound).collect()
    }

    #[getter]
    fn cases(&self) -> Vec<CaseView> {
        let view = |index| {
            let (study, catalog) = (Arc::clone(&self.study), Arc::clone(&self.catalog));
            CaseView { study, catalog, index }
        };
        (0..self.study.cases.len()).map(view).collect()
    }

    /// Every figure that a case uses: name, value, unit, source and kind.
    fn inputs<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let case = case(&self.study, index)?;
        let inputs = warifu_sim::inputs(case, &self.catalog)
            .map_err(|error| warifu_error(error.in_file(&self.study.file)))?;
        inputs.into_iter().map(|input| figure(py, input)).collect()
    }

    /// The study of the cases that can be emulated, and the others' labels with the reasons; itself
    /// where that leaves none, so that whoever runs it is told why.
    fn emulated(&self) -> (Study, Vec<(String, String)>) {
        let reason =
            |case: &model::Case| warifu_trace::why_not_emulated(case).map(|why| why.to_string());
        let skipped: Vec<_> = (self.study.cases.iter().enumerate())
            .filter_map(|(index, case)| reason(case).map(|why| (self.study.label(index), why)))
            .collect();
        let (mut study, catalog) = (Arc::clone(&self.study), Arc::clone(&self.catalog));
        if skipped.is_empty() || skipped.len() == study.cases.len() {
            return (Study { study, catalog }, Vec::new());
        }
        study = Arc::new(study.only(|case| reason(case).is_none()));
        (Study { study, catalog }, skipped)
    }

    /// The study of some of its cases alone, by their indices; each keeps its label.
    fn only(&self, indices: Vec<usize>) -> Study {
        let cases = &self.study.cases;
        let kept: std::collections::BTreeSet<String> =
            indices.iter().filter_map(|&index| Some(cases.get(index)?.id().0)).collect();
        let study = self.study.only(|case| kept.contains(&case.id().0));
        Study { study: Arc::new(study), catalog: Arc::clone(&self.catalog) }
    }

    /// The calibration runs that a device profile's figures come from, sorted; none for an unknown
    /// name.
    fn device_run_ids(&self, name: &str) -> Vec<&str> {
        self.catalog.device(name).map(model::DeviceProfile::run_ids).unwrap_or_default()
    }

    /// The cases that a device profile's figures were found from, as a JSON list; none for an
    /// unknown name.
    fn device_calibration_cases(&self, name: &str) -> String {
        let cases = self.catalog.device(name).map(|device| &*device.calibration_cases);
        // Strings and numbers: serialisation cannot fail.
        serde_json::to_string(cases.unwrap_or_default()).unwrap_or_default()
    }

    /// The library whose recipes a device's messages may be lowered by, where there are any; none
    /// for an unknown name.
    fn device_library(&self, name: &str) -> Option<&str> {
        let library = self.catalog.device(name)?.machine.library.as_deref()?;
        self.catalog.recipe(library).map(|recipes| recipes.name.as_str())
    }

    fn __repr__(&self) -> String {
        format!("Study({:?}, {} cases)", self.study.name, self.study.cases.len())
    }
}

#[pymethods]
impl CaseView {
    #[getter]
    fn id(&self) -> String {
        self.case().id().0
    }

    #[getter]
    fn json(&self) -> String {
        self.case().canonical()
    }

    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        settings_of(py, self.case())
    }

    /// The kernel that the TCP of each end is of: setting, profile, release.
    #[getter]
    fn kernels(&self) -> Vec<(&'static str, &str, Option<Release>)> {
        let ends =
            self.case().stack.tcp().map(|tcp| {
                [("device.tcp", tcp.device.as_str()), ("server.tcp", tcp.server.as_str())]
            });
        let of = |name| self.catalog.tcp(name).and_then(|profile| profile.kernel);
        let ends = ends.into_iter().flatten();
        ends.map(|(setting, name)| (setting, name, of(name).map(release))).collect()
    }

    #[getter]
    fn label(&self) -> String {
        self.study.label(self.index)
    }

    fn __repr__(&self) -> String {
        format!("CaseView({}: {})", self.id(), self.label())
    }
}

impl CaseView {
    pub(crate) fn case(&self) -> &model::Case {
        // Made by `Study::cases` alone, for the indices that there are.
        &self.study.cases[self.index]
    }
}

/// Every mistake of a study, one line each, in the order of the text; none for a good one.
#[pyfunction]
#[pyo3(signature = (text, file, profiles, overrides=Vec::new()))]
pub(crate) fn mistakes(
    text: &str,
    file: &str,
    profiles: Vec<ProfileText>,
    overrides: Vec<(String, String)>,
) -> Vec<String> {
    let checked = match catalog(&profiles) {
        Ok(catalog) => model::Study::check(text, file, &overrides, &catalog),
        Err(error) => Err(vec![error]),
    };
    let errors = checked.err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

/// The first mistake of a profile, one line that begins with the key; none for a good one. Raises
/// WarifuError for a kind of profile that there is not.
#[pyfunction]
pub(crate) fn profile_mistake(profile: ProfileText) -> PyResult<Option<String>> {
    let (_, name, text, file) = &profile;
    let kind = kind_of(&profile).map_err(warifu_error)?;
    let Err(error) = Catalog::default().add(kind, name, text, file) else { return Ok(None) };
    let model::Error { key, message, .. } = error;
    Ok(Some(if key.is_empty() { message } else { format!("{key} {message}") }))
}

/// A figure as tables take it.
pub(crate) fn figure(py: Python<'_>, input: model::Input) -> PyResult<Bound<'_, PyDict>> {
    [
        ("name", input.name()),
        ("value", input.value.text),
        ("unit", input.unit),
        ("source", input.source),
        ("kind", input.kind.name().to_owned()),
        ("evidence", input.evidence.map_or(String::new(), |of| of.name().to_owned())),
    ]
    .into_py_dict(py)
}

/// The release of a kernel as `uname -r` says it; none for what is no release of Linux.
#[pyfunction]
pub(crate) fn kernel_release(text: &str) -> Option<Release> {
    text.parse().ok().map(release)
}

fn release(of: model::KernelRelease) -> Release {
    (of.major, of.minor, of.patch)
}

/// A case's trace as text that a person can read.
#[pyfunction]
pub(crate) fn trace_text(study: &Study, index: usize) -> PyResult<String> {
    let case = case(&study.study, index)?;
    let scenario =
        scenario(case).map_err(|error| warifu_error(format!("{}: {error}", study.study.file)))?;
    Ok(warifu_trace::render(case, &scenario))
}

/// The HTTP request as the device sends it.
#[pyfunction]
pub(crate) fn request_text(case: &CaseView) -> PyResult<String> {
    let case = case.case();
    let tls = case.stack.tls().ok_or_else(|| {
        let protocol = case.stack.protocol().name();
        warifu_error(format!("stack.protocol is {protocol}: it has no HTTP request"))
    })?;
    Ok(warifu_trace::https::request_text(tls, &case.pattern))
}

pub(crate) fn case(study: &model::Study, index: usize) -> PyResult<&model::Case> {
    study.cases.get(index).ok_or_else(|| {
        let count = study.cases.len();
        PyIndexError::new_err(format!("case {index}: expected a number below {count}"))
    })
}

fn catalog(profiles: &[ProfileText]) -> Result<Catalog, model::Error> {
    let mut catalog = Catalog::default();
    for profile in profiles {
        let (_, name, text, file) = profile;
        catalog.add_or_keep_mistake(kind_of(profile)?, name, text, file);
    }
    Ok(catalog)
}

fn kind_of((kind, name, _, file): &ProfileText) -> Result<ProfileKind, model::Error> {
    ProfileKind::from_name(kind).ok_or_else(|| {
        let kinds = ProfileKind::ALL.map(ProfileKind::name).join(", ");
        model::Error::new(file, name, format!("is of kind {kind:?}: expected one of {kinds}"))
    })
}
