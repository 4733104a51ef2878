// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A timing profile: TOML in, laws out, every error names file, key and how to fix it.

use toml::{Table, Value};
use warifu_model::{Distribution, Error, FigureOf, Input, Keyword, Kind, Nanos, Probability};

use super::Operation;

/// What a card takes for each exchange, byte and operation.
#[derive(Clone, Debug, PartialEq)]
pub struct CardProfile {
    /// Its name, the file's without ending.
    pub name: String,
    /// What it is.
    pub description: String,
    /// What each exchange takes, whatever it is about.
    pub exchange: Distribution,
    /// What each byte takes, of commands, answers and status words.
    pub byte: Nanos,
    /// The figures with their sources and kinds, as a report lists them.
    pub figures: Vec<Input>,
    operations: Vec<Distribution>,
}

impl CardProfile {
    /// Reads a profile; `file` is the name to give in errors.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(name: &str, text: &str, file: &str) -> Result<CardProfile, Error> {
        let table = text.parse::<Table>().map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = 1 + text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count();
            let message = error.message().lines().next().unwrap_or("no message").to_owned();
            Error::new(file, format!("line {line}"), format!("is not TOML: {message}"))
        })?;
        Reader { file, profile: name, figures: Vec::new() }.read(&table)
    }

    /// The law of an operation.
    #[must_use]
    pub fn operation(&self, operation: Operation) -> &Distribution {
        &self.operations[operation as usize]
    }
}

struct Reader<'a> {
    file: &'a str,
    profile: &'a str,
    figures: Vec<Input>,
}

const KEYS: [&str; 7] = ["name", "description", "source", "kind", "exchange", "byte", "operation"];
const FIGURE_KEYS: [&str; 4] = ["value", "source", "kind", "note"];
const LAW_KEYS: [&str; 3] = ["quantiles", "unit", "tail"];
const TAIL_KEYS: [&str; 2] = ["probability", "quantiles"];

impl Reader<'_> {
    fn read(mut self, table: &Table) -> Result<CardProfile, Error> {
        self.known(table, "", &KEYS)?;
        let name = self.text(table, "name")?.ok_or_else(|| self.missing("name"))?;
        if name != self.profile {
            let message = format!("is {name:?}: expected {:?}, the name of the file", self.profile);
            return Err(self.error("name", message));
        }
        let description =
            self.text(table, "description")?.ok_or_else(|| self.missing("description"))?;
        let around = self.provenance(table, "", &(String::new(), Kind::Assumed))?;
        let exchange = self.figure(table, "exchange", "exchange", &around)?;
        let byte = self.figure(table, "byte", "byte", &around)?;
        if byte.min() != byte.max() {
            return Err(self.error("byte", "is a law: expected one time, such as \"40 us\""));
        }
        let operations = match table.get("operation") {
            Some(Value::Table(operations)) => operations,
            Some(_) => return Err(self.error("operation", "is no table: expected [operation]")),
            None => return Err(self.missing("operation")),
        };
        self.known(operations, "operation.", &Operation::ALL.map(Operation::name))?;
        let mut laws = Vec::with_capacity(Operation::ALL.len());
        for operation in Operation::ALL {
            let path = format!("operation.{}", operation.name());
            laws.push(self.figure(operations, operation.name(), &path, &around)?);
        }
        Ok(CardProfile {
            name,
            description,
            exchange,
            byte: byte.min(),
            figures: self.figures,
            operations: laws,
        })
    }

    /// One figure: a law, or a table with `value`, `source` and `kind`.
    fn figure(
        &mut self,
        table: &Table,
        key: &str,
        path: &str,
        around: &(String, Kind),
    ) -> Result<Distribution, Error> {
        let given = table.get(key).ok_or_else(|| self.missing(path))?;
        let (value, at, (source, kind)) = match given.as_table() {
            Some(figure) if figure.contains_key("value") => {
                self.known(figure, &format!("{path}."), &FIGURE_KEYS)?;
                let provenance = self.provenance(figure, &format!("{path}."), around)?;
                (&figure["value"], format!("{path}.value"), provenance)
            }
            _ => (given, path.to_owned(), around.clone()),
        };
        let law = self.law(value, &at)?;
        let what = (FigureOf::Card, self.profile, path);
        self.figures.push(Input::of_law(what, &law, source, kind));
        Ok(law)
    }

    /// Source and kind; a figure without a source is assumed, and nothing else.
    fn provenance(
        &self,
        table: &Table,
        path: &str,
        around: &(String, Kind),
    ) -> Result<(String, Kind), Error> {
        let source = self.text(table, "source")?;
        let kind = match self.text(table, "kind")? {
            None => None,
            Some(word) => Some(Kind::from_word(&word).map_err(|expected| {
                self.error(format!("{path}kind"), format!("is {word:?}: {expected}"))
            })?),
        };
        match (source, kind) {
            (None, None) => Ok(around.clone()),
            (None, Some(Kind::Assumed)) => Ok((String::new(), Kind::Assumed)),
            (None, Some(kind)) if around.0.is_empty() => {
                let message =
                    format!("is {:?} without a source: name one, or say \"assumed\"", kind.name());
                Err(self.error(format!("{path}kind"), message))
            }
            (None, Some(kind)) => Ok((around.0.clone(), kind)),
            (Some(source), Some(kind)) => Ok((source, kind)),
            (Some(_), None) => {
                let message = "is missing: expected \"published\" or \"measured\" beside a source";
                Err(self.error(format!("{path}kind"), message))
            }
        }
    }

    /// `"1.5 ms"`, or `{ quantiles = [..], unit = "ms" }`, perhaps with
    /// `tail = { probability = "4 %", quantiles = [..] }`.
    fn law(&self, value: &Value, path: &str) -> Result<Distribution, Error> {
        let Some(table) = value.as_table() else {
            let text = value.as_str().unwrap_or_default();
            let time: Result<Nanos, _> = text.parse();
            return time
                .map(Distribution::constant)
                .map_err(|error| self.error(path, format!("is {}: {}", shown(value), error.0)));
        };
        self.known(table, &format!("{path}."), &LAW_KEYS)?;
        let unit_path = format!("{path}.unit");
        let unit = table.get("unit").and_then(Value::as_str).unwrap_or_default();
        let scale: Nanos = format!("1 {unit}")
            .parse()
            .map_err(|_| self.error(unit_path, format!("is {unit:?}: expected ns, us, ms or s")))?;
        let body = self.quantiles(table, scale, path)?;
        let law = Distribution::from_quantiles(body).map_err(|expected| {
            self.error(format!("{path}.quantiles"), format!("fall: {expected}"))
        })?;
        let tail_path = format!("{path}.tail");
        let tail = match table.get("tail") {
            None => return Ok(law),
            Some(tail) => tail.as_table().ok_or_else(|| {
                self.error(&*tail_path, "is no table: expected { probability, quantiles }")
            })?,
        };
        self.known(tail, &format!("{tail_path}."), &TAIL_KEYS)?;
        let probability = match tail.get("probability") {
            Some(Value::String(text)) => {
                text.parse().map_err(|error: warifu_model::UnitError| error.0)
            }
            Some(Value::Float(number)) => Probability::new(*number).map_err(|error| error.0),
            _ => Err("expected a probability, such as \"4 %\"".to_owned()),
        };
        let probability = probability.map_err(|expected| {
            self.error(format!("{tail_path}.probability"), format!("is wrong: {expected}"))
        })?;
        let quantiles = self.quantiles(tail, scale, &tail_path)?;
        law.with_tail(probability, quantiles).map_err(|expected| {
            self.error(format!("{tail_path}.quantiles"), format!("fall: {expected}"))
        })
    }

    fn quantiles(&self, table: &Table, scale: Nanos, path: &str) -> Result<Vec<Nanos>, Error> {
        let path = format!("{path}.quantiles");
        let list = table.get("quantiles").and_then(Value::as_array);
        let list =
            list.ok_or_else(|| self.error(&*path, "are missing: expected a list of numbers"))?;
        list.iter()
            .map(|value| {
                let number = value.as_float().or(value.as_integer().map(|number| number as f64));
                let nanos = number.map_or(f64::NAN, |number| (number * scale.0 as f64).round());
                // 2^53 ns are 104 days, and the last whole number that f64 holds exactly.
                if (0.0..=9_007_199_254_740_992.0).contains(&nanos) {
                    Ok(Nanos(nanos as u64))
                } else {
                    let message =
                        format!("have {}: expected numbers from 0 to 100 days", shown(value));
                    Err(self.error(&*path, message))
                }
            })
            .collect()
    }

    fn text(&self, table: &Table, key: &str) -> Result<Option<String>, Error> {
        match table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
            Some(value) => {
                let message = format!("is {}: expected a text that is not empty", shown(value));
                Err(self.error(key, message))
            }
        }
    }

    fn known(&self, table: &Table, path: &str, keys: &[&str]) -> Result<(), Error> {
        match table.keys().find(|key| !keys.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                let key: String = key.chars().filter(|c| !c.is_control()).take(60).collect();
                let message = format!("is unknown; the keys here are {}", keys.join(", "));
                Err(self.error(format!("{path}{key}"), message))
            }
        }
    }

    fn missing(&self, key: &str) -> Error {
        self.error(key, "is missing: a profile states every figure")
    }

    fn error(&self, key: impl Into<String>, message: impl Into<String>) -> Error {
        Error::new(self.file, key, message)
    }
}

/// A value on one line and short.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    };
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> String {
        let mut text = "name = \"t\"\ndescription = \"a card\"\nsource = \"a paper\"\n\
            kind = \"published\"\nexchange = \"1 ms\"\nbyte = \"10 us\"\n[operation]\n"
            .to_owned();
        for operation in Operation::ALL {
            text += &format!("{} = \"0 ms\"\n", operation.name());
        }
        text
    }

    fn mistake(text: &str) -> String {
        CardProfile::parse("t", text, "t.toml").unwrap_err().to_string()
    }

    #[test]
    fn distributions_and_their_sources() {
        let law = "{ kind = \"assumed\", value = { unit = \"ms\", quantiles = [1, 3], \
            tail = { probability = \"4 %\", quantiles = [9] } } }";
        let text = text().replace("select = \"0 ms\"", &format!("select = {law}"));
        let profile = CardProfile::parse("t", &text, "t.toml").unwrap();
        let select = profile.operation(Operation::Select);
        assert_eq!((select.min(), select.max()), (Nanos(1_000_000), Nanos(9_000_000)));
        assert_eq!(profile.figures.len(), 2 + Operation::ALL.len());
        let kinds = profile.figures.iter().map(|figure| figure.kind);
        assert_eq!(kinds.filter(|kind| *kind == Kind::Assumed).count(), 1);
        for operation in Operation::ALL {
            let law = profile.operation(operation);
            assert_eq!(law.max().0 > 0, operation == Operation::Select, "{operation:?}");
        }
    }

    #[test]
    fn errors_name_file_key_and_fix() {
        for (old, new, expected) in [
            ("name = \"t\"", "name = \"u\"", "t.toml: name is \"u\": expected \"t\""),
            ("byte = \"10 us\"\n", "", "t.toml: byte is missing"),
            ("byte = \"10 us\"", "byte = 10", "t.toml: byte is 10: expected a duration"),
            ("derive = \"0 ms\"\n", "", "t.toml: operation.derive is missing"),
            ("derive", "drive", "t.toml: operation.drive is unknown; the keys here are"),
            (
                "derive = \"0 ms\"",
                "derive = { unit = \"ms\", quantiles = [2, 1] }",
                "t.toml: operation.derive.quantiles fall",
            ),
            (
                "derive = \"0 ms\"",
                "derive = { unit = \"m\", quantiles = [1] }",
                "t.toml: operation.derive.unit is \"m\": expected ns, us, ms or s",
            ),
            (
                "derive = \"0 ms\"",
                "derive = { unit = \"s\", quantiles = [-1] }",
                "t.toml: operation.derive.quantiles have -1",
            ),
            (
                "derive = \"0 ms\"",
                "derive = { value = \"0 ms\", source = \"x\" }",
                "t.toml: operation.derive.kind is missing",
            ),
            ("kind = \"published\"", "kind = \"known\"", "t.toml: kind is \"known\""),
            ("source = \"a paper\"\n", "", "t.toml: kind is \"published\" without a source"),
            ("exchange = \"1 ms\"", "exchange = ", "t.toml: line 5 is not TOML"),
        ] {
            let message = mistake(&text().replacen(old, new, 1));
            assert!(message.starts_with(expected), "{new}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(text: String) {
            let _ = CardProfile::parse("t", &text, "t.toml");
        }
    }
}
