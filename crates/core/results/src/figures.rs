// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The figures that the cases of a study use, each once.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use warifu_model::{Evidence, FigureOf, Input, Kind};

use crate::seal::sha256;

/// A figure that cases use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureUsed {
    /// The first 16 hexadecimal digits of the SHA-256 of name, value, unit, source and kind.
    pub id: String,
    /// What people call it: `gr-peach client.send.ClientHello`, `lte-m rtt`.
    pub name: String,
    /// The same for programs; `None` where the writer was older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<What>,
    /// Its value as people write it, with the unit.
    pub value: String,
    /// The number of units, of a distribution the mean; `None` for what is no single number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
    /// The size of the last digit that a time is written with, ns; `None` for other values and for
    /// zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_digit_ns: Option<u64>,
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

/// What a figure is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct What {
    /// What it belongs to.
    pub of: FigureOf,
    /// The profile's name; `link` for what the study chose; a carrier's name.
    pub owner: String,
    /// What it is there: an operation, a PKCS#11 call, a setting, a kernel's constant.
    pub key: String,
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
        let name = input.name();
        let Input { of, owner, key, value, unit, source, kind, evidence } = input;
        let mut figure = FigureUsed {
            id: String::new(),
            name,
            what: Some(What { of, owner, key }),
            value: value.text,
            number: value.number,
            last_digit_ns: value.last_digit.map(|size| size.0),
            unit,
            source,
            kind,
            evidence,
            cases: None,
        };
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

#[cfg(test)]
mod tests {
    use warifu_model::Distribution;

    use super::*;

    #[test]
    fn figure_for_people_and_for_programs() {
        let law = Distribution::constant(warifu_model::Nanos(2_500_000));
        let what = (FigureOf::KeyStoreCall, "sim", "C_Sign");
        let figure = FigureUsed::from(Input::of_law(what, &law, String::new(), Kind::Assumed));
        assert_eq!((figure.name.as_str(), figure.value.as_str()), ("sim C_Sign", "2.5 ms"));
        assert_eq!((figure.number, figure.last_digit_ns), (Some(2_500_000.0), Some(100_000)));
        let json = serde_json::to_value(&figure).unwrap();
        let what = serde_json::json!({"of": "key_store_call", "owner": "sim", "key": "C_Sign"});
        assert_eq!(json["what"], what);
        assert_eq!(serde_json::from_value::<FigureUsed>(json).unwrap(), figure);
    }

    /// Manifests of version 2 had no more than this at first.
    #[test]
    fn figure_of_an_older_writer() {
        let text = r#"{"id": "0", "name": "lte-m rtt", "value": "75 ms", "unit": "ns",
            "source": "s", "kind": "published", "evidence": "published"}"#;
        let figure: FigureUsed = serde_json::from_str(text).unwrap();
        assert_eq!((figure.what, figure.number, figure.last_digit_ns), (None, None, None));
    }
}
