// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A figure of a profile: value, source, kind.

use serde::{Deserialize, Serialize};
use toml::Value;

use super::shown::{Show, Shown};
use crate::distribution::Distribution;
use crate::evidence::Evidence;
use crate::kind::Kind;
use crate::reader::{self, Section, show};
use crate::units::{Nanos, Probability};

/// What a figure belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureOf {
    /// A device, as client or server: what its operations cost.
    Device,
    /// A library's recipe: what a message calls there.
    Recipe,
    /// A call to a key store: what it takes.
    KeyStoreCall,
    /// A key store's limits: how often it signs, when it falls asleep.
    KeyStore,
    /// The link.
    Link,
    /// A TCP implementation: constants of its source, which are exact.
    Tcp,
    /// A carrier's own, whatever the profiles.
    Carrier,
    /// A virtual card's timing.
    Card,
    /// An accelerator: what a call of a cipher takes.
    Accelerator,
}

/// A figure as a report lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// What it belongs to.
    pub of: FigureOf,
    /// The profile's name; `link` for what the study chose; a carrier's name.
    pub owner: String,
    /// What it is there: an operation, a PKCS#11 call, a setting (`rtt`), a kernel's constant.
    pub key: String,
    /// Its value.
    pub value: Shown,
    /// The unit alone, `1` for pure numbers, empty for words.
    pub unit: String,
    /// Where it comes from; empty if nowhere.
    pub source: String,
    /// Its kind.
    pub kind: Kind,
    /// What it rests on; `None` for a condition that the study sets, which is part of the question.
    pub evidence: Option<Evidence>,
}

impl Input {
    /// What people call it: `gr-peach client.send.ClientHello`, `lte-m rtt`.
    pub fn name(&self) -> String {
        format!("{} {}", self.owner, self.key)
    }

    /// A distribution of times.
    pub fn of_law(
        (of, owner, key): (FigureOf, &str, &str),
        law: &Distribution,
        source: String,
        kind: Kind,
    ) -> Input {
        let (owner, key) = (owner.to_owned(), key.to_owned());
        let (value, unit, evidence) = (law.shown("ns"), "ns".into(), Some(kind.evidence()));
        Input { of, owner, key, value, unit, source, kind, evidence }
    }
}

/// Where a figure comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Provenance {
    pub(crate) source: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) run_id: Option<String>,
}

impl Provenance {
    /// Of a figure about which nothing is said.
    pub(crate) const NONE: Provenance =
        Provenance { source: None, kind: Kind::Assumed, run_id: None };

    /// Reads `source`, `kind` and `run_id`; what is not said there holds as `around` says.
    /// A figure without a source is assumed, whatever else it claims.
    pub(crate) fn read(section: &Section<'_>, around: &Provenance) -> Provenance {
        let source = section.read("source", non_empty);
        let kind = section.read("kind", reader::keyword::<Kind>);
        let run_id = section.read("run_id", non_empty).or_else(|| around.run_id.clone());
        match (source, kind) {
            (None, None) => Provenance { run_id, ..around.clone() },
            (None, Some(Kind::Assumed)) => Provenance::NONE,
            (None, Some(kind)) => {
                if around.source.is_none() {
                    let expected = "expected a source beside it, or \"assumed\"";
                    section.refuse("kind", format!("is \"{}\": {expected}", kind.name()));
                }
                Provenance { source: around.source.clone(), kind, run_id }
            }
            (Some(source), Some(kind)) => Provenance { source: Some(source), kind, run_id },
            (Some(source), None) => {
                if around.source.is_none() && section.get("kind").is_none() {
                    let expected = "expected \"published\" or \"measured\" beside a source";
                    section.refuse("kind", format!("is missing: {expected}"));
                }
                Provenance { source: Some(source), kind: around.kind, run_id }
            }
        }
    }

    pub(crate) fn input(
        &self,
        of: FigureOf,
        (owner, key): (&str, &str),
        value: Shown,
        unit: &str,
    ) -> Input {
        let source = self.source.clone().unwrap_or_default();
        let (kind, evidence) = (self.kind, Some(self.kind.evidence()));
        let (owner, key, unit) = (owner.to_owned(), key.to_owned(), unit.to_owned());
        Input { of, owner, key, value, unit, source, kind, evidence }
    }
}

/// The figures of one profile file, collected while they are read.
pub(crate) struct Figures<'a> {
    of: FigureOf,
    profile: &'a str,
    section: &'a Section<'a>,
    around: &'a Provenance,
    pub(crate) inputs: Vec<Input>,
}

impl<'a> Figures<'a> {
    pub(crate) fn new(
        of: FigureOf,
        profile: &'a str,
        section: &'a Section<'a>,
        around: &'a Provenance,
    ) -> Self {
        Figures { of, profile, section, around, inputs: Vec::new() }
    }

    /// One figure: the bare value, or a table with `value`, `source` and `kind`.
    pub(crate) fn read<T: Show>(
        &mut self,
        key: &'static str,
        unit: &str,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.section.get(key)?;
        let figure = value.as_table().filter(|table| table.contains_key("value"));
        let (found, provenance) = match figure {
            Some(_) => {
                let figure = self.section.section(key)?;
                let found = figure.read("value", &read);
                let provenance = Provenance::read(&figure, self.around);
                figure.get("note");
                figure.refuse_unknown();
                (found?, provenance)
            }
            // A bare value says nothing of a source, so it takes the file's.
            None => (self.section.read(key, &read)?, self.around.clone()),
        };
        let input = provenance.input(self.of, (self.profile, key), found.shown(unit), unit);
        self.inputs.push(input);
        Some(found)
    }

    /// The same, and its absence is a mistake.
    pub(crate) fn need<T: Show>(
        &mut self,
        key: &'static str,
        unit: &str,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<T> {
        if self.section.get(key).is_none() {
            self.section.refuse(key, "is missing: a profile states every figure");
        }
        self.read(key, unit, read)
    }
}

pub(crate) fn non_empty(value: &Value) -> Result<String, String> {
    reader::text(value)
        .ok()
        .filter(|text| !text.trim().is_empty())
        .ok_or("expected a text in quotes that is not empty".into())
}

/// A law of durations: `"1.5 ms"`, or `{ quantiles = [..], unit = "ms" }`, or with
/// `tail = { probability = "4 %", quantiles = [..] }` beside the quantiles.
pub(crate) fn distribution(value: &Value) -> Result<Distribution, String> {
    let Some(table) = value.as_table() else {
        let nanos = reader::duration(value)
            .map_err(|expected| format!("{expected} or {{ quantiles = [..], unit = \"ms\" }}"))?;
        return within_bounds(nanos).map(Distribution::constant).ok_or_else(|| OUT_OF_RANGE.into());
    };
    for key in table.keys() {
        if !["quantiles", "unit", "tail"].contains(&key.as_str()) {
            let message = reader::unknown(key, ["quantiles", "unit", "tail"].into_iter());
            return Err(format!("{} {message}", reader::shown_key(key)));
        }
    }
    let unit = table.get("unit").map(scale).transpose()?;
    let body = quantiles(table.get("quantiles"), unit)?;
    let law = Distribution::from_quantiles(body)?;
    match table.get("tail") {
        None => Ok(law),
        Some(tail) => {
            let tail = tail.as_table().ok_or("tail: expected { probability, quantiles }")?;
            const KEYS: [&str; 2] = ["probability", "quantiles"];
            if let Some(key) = tail.keys().find(|key| !KEYS.contains(&key.as_str())) {
                let message = reader::unknown(key, KEYS.into_iter());
                return Err(format!("tail.{} {message}", reader::shown_key(key)));
            }
            let probability: Probability = tail
                .get("probability")
                .ok_or_else(|| "tail.probability is missing".to_string())
                .and_then(|value| {
                    reader::probability(value).map_err(|expected| {
                        format!("tail.probability is {}: {expected}", show(value))
                    })
                })?;
            law.with_tail(probability, quantiles(tail.get("quantiles"), unit)?)
                .map_err(|message| format!("tail: {message}"))
        }
    }
}

/// `"0.8 ns"`, which may be finer than 1 ns.
pub(super) fn per_byte(text: &str) -> Result<f64, String> {
    let expected = || "expected a time per byte such as \"0.8 ns\"".to_string();
    let number = text.trim().strip_suffix("ns").ok_or_else(expected)?.trim();
    number
        .parse()
        .ok()
        // A second per byte is no rate of computation.
        .filter(|value: &f64| (0.0..1e9).contains(value))
        .ok_or_else(expected)
}

/// 2^53 ns are 104 days, and the last whole number that f64 holds exactly.
const MOST: Nanos = Nanos(1 << 53);
const OUT_OF_RANGE: &str = "expected 0 to 100 days";

/// A number of units of `scale` ns each, rounded to 1 ns; `None` where it is out of range.
fn nanos_of(number: f64, scale: f64) -> Option<Nanos> {
    let nanos = (number * scale).round();
    (0.0..=MOST.0 as f64).contains(&nanos).then_some(Nanos(nanos as u64))
}

/// The same duration; `None` where sums of many would be beyond all measure.
fn within_bounds(nanos: Nanos) -> Option<Nanos> {
    (nanos <= MOST).then_some(nanos)
}

/// The number of nanoseconds in a unit of time.
pub(super) fn scale(value: &Value) -> Result<f64, String> {
    let unit = value.as_str().unwrap_or_default();
    format!("1 {unit}")
        .parse()
        .map(|nanos: Nanos| nanos.0 as f64)
        .map_err(|_| format!("unit is {}: expected ns, us, ms or s", show(value)))
}

/// A list of numbers in `unit`, or of durations, or one text of numbers: a calibrated profile holds
/// some 80,000 of them, and one text of them is read in about half the time.
fn quantiles(value: Option<&Value>, unit: Option<f64>) -> Result<Vec<Nanos>, String> {
    let refuse = |shown: &str, why: &str| -> Result<Nanos, String> {
        Err(format!("quantiles: {shown} {why}"))
    };
    let nanos = |number: f64, shown: &dyn Fn() -> String| match unit {
        None => refuse(&shown(), "has no unit: add unit = \"ms\" beside the quantiles"),
        Some(unit) => match nanos_of(number, unit) {
            Some(nanos) => Ok(nanos),
            None => refuse(&shown(), &format!("is out of range: {OUT_OF_RANGE}")),
        },
    };
    match value {
        Some(Value::String(text)) => text
            .split_whitespace()
            .map(|word| match word.parse() {
                Ok(number) => nanos(number, &|| show(&Value::String(word.into()))),
                Err(_) => refuse(&show(&Value::String(word.into())), "is not a number"),
            })
            .collect(),
        Some(Value::Array(list)) => list
            .iter()
            .map(|value| match value {
                Value::Integer(number) => nanos(*number as f64, &|| show(value)),
                Value::Float(number) => nanos(*number, &|| show(value)),
                other => match reader::duration(other) {
                    Ok(nanos) => within_bounds(nanos).map_or_else(
                        || refuse(&show(other), &format!("is out of range: {OUT_OF_RANGE}")),
                        Ok,
                    ),
                    Err(expected) => {
                        refuse(&show(other), &format!("is not a duration: {expected}"))
                    }
                },
            })
            .collect(),
        _ => Err("quantiles: expected a list of numbers".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(text: &str) -> Result<Distribution, String> {
        let table: toml::Table = format!("law = {text}").parse().unwrap();
        distribution(&table["law"])
    }

    #[test]
    fn duration_laws() {
        assert_eq!(law("\"172.69 ms\""), Ok(Distribution::constant(Nanos(172_690_000))));
        let three = law("{ quantiles = [1, 2.5, 4], unit = \"ms\" }").unwrap();
        assert_eq!(three.quantile(0.5), Nanos(2_500_000));
        assert_eq!(law("{ quantiles = [\"1 ms\", \"4 ms\"] }").unwrap().max(), Nanos(4_000_000));
        assert_eq!(law("{ quantiles = \"1 2.5 4\", unit = \"ms\" }"), Ok(three));
        let tailed = "{ quantiles = [1, 2], unit = \"s\", tail = { probability = \"4 %\", \
                      quantiles = [3, 4] } }";
        assert_eq!(law(tailed).unwrap().tail().unwrap().probability, Probability(0.04));
    }

    #[test]
    fn mistakes_in_a_law() {
        for (text, part) in [
            ("5", "expected a duration"),
            ("{ quantiles = [1, 2] }", "has no unit"),
            ("{ quantiles = [2, 1], unit = \"ms\" }", "ascending order"),
            ("{ quantiles = [], unit = \"ms\" }", "at least one"),
            ("{ quantiles = [-1], unit = \"ms\" }", "out of range"),
            ("\"18446744073709551615 ns\"", "0 to 100 days"),
            ("{ quantiles = [\"1 ms\", \"9007199254740993 ns\"] }", "out of range"),
            ("{ quantiles = [nan], unit = \"ms\" }", "out of range"),
            ("{ quantiles = [1], unit = \"kbit/s\" }", "unit is"),
            ("{ quantiles = \"1 x\", unit = \"ms\" }", "\"x\" is not a number"),
            ("{ quantiles = \"1 inf\", unit = \"ms\" }", "out of range"),
            ("{ quantiles = \"\", unit = \"ms\" }", "at least one"),
            ("{ quantile = [1], unit = \"ms\" }", "did you mean quantiles"),
            ("{ quantiles = [1], unit = \"ms\", tail = { quantiles = [1] } }", "tail.probability"),
            (
                "{ quantiles = [1], unit = \"ms\", tail = { probability = 2, quantiles = [1] } }",
                "from 0 to 1",
            ),
        ] {
            let message = law(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
