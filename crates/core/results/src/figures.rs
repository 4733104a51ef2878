// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The figures that the cases of a study use, each once.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use warifu_model::{Evidence, Input, Kind};

use crate::seal::sha256;

/// A figure that cases use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureUsed {
    /// The first 16 hexadecimal digits of the SHA-256 of what follows, without the cases.
    pub id: String,
    /// What it is: `gr-peach client.send.ClientHello`, `lte-m rtt`.
    pub name: String,
    /// Its value as people write it.
    pub value: String,
    /// The unit alone, `1` for pure numbers, empty for words.
    pub unit: String,
    /// Where it comes from; empty if nowhere.
    pub source: String,
    /// Its kind.
    pub kind: Kind,
    /// What it rests on; `None` for a condition that the study sets.
    pub evidence: Option<Evidence>,
    /// The cases that use it, by their ids; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Vec<String>>,
}

/// Figures as they come, case by case, in the order in which each was first met.
#[derive(Default)]
pub(crate) struct Figures {
    list: Vec<FigureUsed>,
    places: HashMap<String, usize>,
}

impl Figures {
    /// Adds a figure of a case.
    pub(crate) fn add(&mut self, figure: FigureUsed, case_id: &str) {
        let place = *self.places.entry(figure.id.clone()).or_insert_with(|| {
            self.list.push(figure);
            self.list.len() - 1
        });
        self.list[place].cases.get_or_insert_default().push(case_id.to_owned());
    }

    /// All of them; one that every one of `cases` uses does not list them.
    pub(crate) fn into_list(mut self, cases: usize) -> Vec<FigureUsed> {
        for figure in &mut self.list {
            figure.cases = figure.cases.take().filter(|users| users.len() < cases);
        }
        self.list
    }
}

impl From<Input> for FigureUsed {
    fn from(input: Input) -> FigureUsed {
        let Input { name, value, unit, source, kind, evidence } = input;
        let id = String::new();
        let mut figure = FigureUsed { id, name, value, unit, source, kind, evidence, cases: None };
        figure.id = figure_id(&figure);
        figure
    }
}

/// See [`FigureUsed::id`].
pub(crate) fn figure_id(figure: &FigureUsed) -> String {
    let FigureUsed { name, value, unit, source, kind, .. } = figure;
    let text = [name, value, unit, source, kind.name()].join("\n");
    sha256(text.as_bytes())[..16].to_owned()
}
