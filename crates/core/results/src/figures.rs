// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The figures that the cases of a study use, each once.

use std::collections::HashMap;

use warifu_model::Input;

use crate::manifest::FigureUsed;
use crate::seal::sha256;

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
