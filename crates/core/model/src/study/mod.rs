// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A study: the text that a person writes, and the cases that it spans.

mod assignment;
mod draft;
mod head;
mod require;
mod resolve;
mod settings;
mod vary;
mod words;

pub use require::{Operator, Requirement, Statistic};

use sha2::{Digest, Sha256};

use crate::case::Case;
use crate::error::Error;
use crate::profile::Catalog;
use crate::reader::Mistakes;

/// The most cases that one study may span.
pub const MOST_CASES: usize = 1_000_000;
/// The most connections that a case is predicted with: 250 B of memory each.
const MOST_CONNECTIONS: u64 = 20_000_000;
/// The file name in errors about flags.
pub const COMMAND_LINE: &str = "command line";

/// A study, checked as a whole: every case of it can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Its name, also of its results folder.
    pub name: String,
    /// The name of its file for errors.
    pub file: String,
    /// What all randomness comes from.
    pub seed: u64,
    /// Measured trials a case.
    pub trials: u32,
    /// Simulated trials a case.
    pub predict_trials: u32,
    /// The cases: the cartesian product of `vary`, its first key changing slowest.
    pub cases: Vec<Case>,
    /// Where each case stands in that product, if only some of them are here.
    pub positions: Option<Vec<usize>>,
    /// What varies: dotted path and values as written.
    pub vary: Vec<(String, Vec<String>)>,
    /// Bounds that results are judged by.
    pub require: Vec<Requirement>,
    /// SHA-256 of the text and the overrides, hexadecimal.
    pub text_hash: String,
}

impl Study {
    /// Reads a study; `file` is the name to give in errors.
    ///
    /// # Errors
    /// The first mistake, see [`Study::check`] for all of them.
    pub fn parse(text: &str, file: &str, catalog: &Catalog) -> Result<Study, Error> {
        Study::parse_with(text, file, &[], catalog)
    }

    /// Reads a study whose settings flags override: pairs of dotted path and value
    /// (`link.rtt`, `60 ms`). A flag replaces what the study says and what it varies there.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse_with(
        text: &str,
        file: &str,
        overrides: &[(String, String)],
        catalog: &Catalog,
    ) -> Result<Study, Error> {
        Study::check(text, file, overrides, catalog).map_err(|mut list| {
            // A failed check names at least one mistake.
            if list.is_empty() { Error::new(file, "", "cannot be read") } else { list.remove(0) }
        })
    }

    /// A question that needs no file: every setting by flags, the rest by default.
    ///
    /// # Errors
    /// The first mistake.
    pub fn from_choices(choices: &[(String, String)], catalog: &Catalog) -> Result<Study, Error> {
        Study::parse_with("name = \"question\"\n", COMMAND_LINE, choices, catalog)
    }

    /// The same as [`Study::parse_with`], with every mistake that was found, in the order of
    /// the text.
    ///
    /// # Errors
    /// All mistakes, at least one.
    pub fn check(
        text: &str,
        file: &str,
        overrides: &[(String, String)],
        catalog: &Catalog,
    ) -> Result<Study, Vec<Error>> {
        let in_file = Mistakes::new(file);
        let in_flags = Mistakes::new(COMMAND_LINE);
        let study = read(text, overrides, catalog, &in_file, &in_flags);
        let list: Vec<Error> =
            in_file.into_list().into_iter().chain(in_flags.into_list()).collect();
        match study {
            Some(study) if list.is_empty() => Ok(study),
            _ => Err(list),
        }
    }

    /// The study of those cases alone for which `keep` is so; each keeps its label.
    pub fn only(&self, keep: impl Fn(&Case) -> bool) -> Study {
        let kept: Vec<usize> =
            (0..self.cases.len()).filter(|&index| keep(&self.cases[index])).collect();
        let position = |&index: &usize| self.positions.as_ref().map_or(index, |all| all[index]);
        Study {
            cases: kept.iter().map(|&index| self.cases[index].clone()).collect(),
            positions: Some(kept.iter().map(position).collect()),
            ..self.clone()
        }
    }

    /// What sets a case apart from the others of its study: `rtt 60 ms, tls 1.3`; empty when
    /// nothing varies or there is no such case.
    pub fn label(&self, index: usize) -> String {
        let choices = self.choices(index);
        let name = |path| {
            let short = short_name(path);
            let shared = choices.iter().filter(|(other, _)| short_name(other) == short).count() > 1;
            if shared { path } else { short }
        };
        let parts = choices.iter().map(|(path, value)| format!("{} {value}", name(path)));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// What a case has on each axis of `vary`: dotted path and value, as written; empty when
    /// nothing varies or there is no such case.
    pub fn choices(&self, index: usize) -> Vec<(&str, &str)> {
        if index >= self.cases.len() {
            return Vec::new();
        }
        let mut rest = self.positions.as_ref().map_or(index, |positions| positions[index]);
        let mut choices = Vec::with_capacity(self.vary.len());
        for (path, values) in self.vary.iter().rev() {
            let value = values.get(rest % values.len().max(1)).map_or("", String::as_str);
            choices.push((path.as_str(), value));
            rest /= values.len().max(1);
        }
        choices.reverse();
        choices
    }
}

/// The last part of a path, or the section's where that would say `profile`.
fn short_name(path: &str) -> &str {
    match path.rsplit_once('.') {
        Some((section, "profile")) => section,
        Some((_, key)) => key,
        None => path,
    }
}

fn read(
    text: &str,
    overrides: &[(String, String)],
    catalog: &Catalog,
    in_file: &Mistakes<'_>,
    in_flags: &Mistakes<'_>,
) -> Option<Study> {
    let table = in_file.parse(text)?;
    let mut parts = assignment::Parts::of_file(&table, overrides, in_file);
    parts.override_by(overrides, in_flags);
    let head = head::Head::read(&parts, in_file, in_flags);
    let require = require::read(&parts.require, in_file, in_flags);
    let cases = vary::cases(&parts, catalog, in_file, in_flags)?;
    require::refuse_without_effect(&parts.require, &cases, in_file, in_flags);
    let head = head?;
    refuse_too_many_connections(&head, &cases, in_file);
    let vary = parts.vary.iter().map(|axis| (axis.path.clone(), axis.shown())).collect();
    Some(Study {
        name: head.name,
        file: in_file.file().to_string(),
        seed: head.seed,
        trials: head.trials,
        predict_trials: head.predict_trials,
        cases,
        vary,
        require,
        positions: None,
        text_hash: hash(text, overrides),
    })
}

/// What every connection of a case gave is held until the case is stored.
fn refuse_too_many_connections(head: &head::Head, cases: &[Case], in_file: &Mistakes<'_>) {
    let most = cases.iter().map(|case| u64::from(case.pattern.concurrent.max(1))).max();
    let (most, trials) = (most.unwrap_or(1), u64::from(head.predict_trials));
    if trials * most > MOST_CONNECTIONS {
        let fits = MOST_CONNECTIONS / most;
        let of_trial = match most {
            1 => String::new(),
            _ => format!("with {most} connections in a trial "),
        };
        let message = format!(
            "is {trials}: {of_trial}at most {fits}, since no case is predicted with more than \
             {MOST_CONNECTIONS} connections"
        );
        in_file.add("predict_trials", message);
    }
}

fn hash(text: &str, overrides: &[(String, String)]) -> String {
    let mut digest = Sha256::new();
    digest.update(text.as_bytes());
    for (path, value) in overrides {
        // No text holds a zero byte, so nothing else hashes to the same.
        digest.update(format!("\0{path}\0{value}").as_bytes());
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
