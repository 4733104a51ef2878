// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading TOML with every mistake named: the file, the key and what to do.

use std::cell::RefCell;

use toml::Value;

use crate::error::Error;
use crate::keyword::Keyword;
use crate::nearest::nearest;
use crate::units::{ByteCount, Nanos, Probability};

/// The mistakes found in one file, in the order found.
pub(crate) struct Mistakes<'a> {
    file: &'a str,
    list: RefCell<Vec<Error>>,
}

/// A table of the file, that remembers which keys were asked for.
pub(crate) struct Section<'a> {
    pub(crate) table: &'a toml::Table,
    /// Its dotted path; empty for the file itself.
    pub(crate) path: String,
    mistakes: &'a Mistakes<'a>,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Mistakes<'a> {
    pub(crate) fn new(file: &'a str) -> Self {
        Mistakes { file, list: RefCell::default() }
    }

    /// The file's name.
    pub(crate) fn file(&self) -> &str {
        self.file
    }

    /// Adds one; `message` begins with a verb.
    pub(crate) fn add(&self, key: impl Into<String>, message: impl Into<String>) {
        self.list.borrow_mut().push(Error::new(self.file, key, one_line(&message.into())));
    }

    pub(crate) fn any(&self) -> bool {
        !self.list.borrow().is_empty()
    }

    /// What was read, or the first mistake. Every way to read nothing names its mistake.
    pub(crate) fn first_or<T>(self, read: Option<T>) -> Result<T, Error> {
        let file = self.file;
        match (self.list.into_inner().into_iter().next(), read) {
            (Some(error), _) => Err(error),
            (None, Some(read)) => Ok(read),
            (None, None) => Err(Error::new(file, "", "cannot be read")),
        }
    }

    pub(crate) fn into_list(self) -> Vec<Error> {
        self.list.into_inner()
    }

    /// The whole file as a table. A syntax error is named by its line.
    pub(crate) fn parse(&self, text: &str) -> Option<toml::Table> {
        match text.parse::<toml::Table>() {
            Ok(table) => Some(table),
            Err(error) => {
                let (key, message) = syntax_error(text, &error);
                self.add(key, message);
                None
            }
        }
    }
}

/// Where a text is no TOML, by its key or else its line, and what to do.
fn syntax_error(text: &str, error: &toml::de::Error) -> (String, String) {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = 1 + text.as_bytes()[..start].iter().filter(|&&b| b == b'\n').count();
    let said = error.message();
    let twice = said.starts_with("duplicate key");
    let number = too_large(said, text, error.span());
    match (key_at(text, start), number) {
        (Some(key), _) if twice => {
            let header = text[start..].starts_with('[') || text[..start].ends_with('[');
            let keep = if header { format!(", [{key}] or {key} = ...") } else { String::new() };
            (key, format!("is given twice, in line {line} again: keep one{keep}"))
        }
        (Some(key), Some(number)) => {
            (key, format!("is {number}, in line {line}: expected a number of at most {}", i64::MAX))
        }
        (None, Some(number)) => (
            format!("line {line}"),
            format!("holds {number}: expected a number of at most {}", i64::MAX),
        ),
        _ => (format!("line {line}"), format!("is not TOML: {said}")),
    }
}

/// The number that no integer type of the parser has room for.
fn too_large<'a>(
    said: &'a str,
    text: &'a str,
    span: Option<std::ops::Range<usize>>,
) -> Option<&'a str> {
    let named = || {
        let (number, rest) = said.strip_prefix("invalid type: integer `")?.split_once('`')?;
        rest.contains("128").then_some(number)
    };
    let digits = |text: &&str| {
        let text = text.strip_prefix(['-', '+']).unwrap_or(text);
        text.len() > 18 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    named().or_else(|| text.get(span?).filter(digits))
}

/// The dotted key that the line of a place in a text sets, or its table's name; `None` where it
/// does neither, as within a list of several lines.
fn key_at(text: &str, place: usize) -> Option<String> {
    let plain = |key: &str| {
        let key: String = key.chars().filter(|letter| !" \t\"'".contains(*letter)).collect();
        let known = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        (!key.is_empty() && key.chars().all(known)).then_some(key)
    };
    let table = |line: &str| plain(line.trim().strip_prefix('[')?.split_once(']')?.0);
    let begin = text.get(..place)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text[begin..].lines().next()?;
    if let Some(name) = table(line) {
        return Some(name);
    }
    let key = plain(line.split_once('=')?.0)?;
    Some(match text[..begin].lines().rev().find_map(table) {
        Some(table) => format!("{table}.{key}"),
        None => key,
    })
}

impl<'a> Section<'a> {
    pub(crate) fn root(table: &'a toml::Table, mistakes: &'a Mistakes<'a>) -> Self {
        Section::at(table, String::new(), mistakes)
    }

    pub(crate) fn at(table: &'a toml::Table, path: String, mistakes: &'a Mistakes<'a>) -> Self {
        // Most sections have fewer keys: calibrated profiles have some hundred sections.
        let known = RefCell::new(Vec::with_capacity(12));
        Section { table, path, mistakes, known }
    }

    /// The value of a key, which is known from now on.
    pub(crate) fn get(&self, key: &'static str) -> Option<&'a Value> {
        self.known.borrow_mut().push(key);
        self.table.get(key)
    }

    /// The dotted path of one of its keys.
    pub(crate) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }

    /// Names a mistake at one of its keys.
    pub(crate) fn refuse(&self, key: &str, message: impl Into<String>) {
        self.mistakes.add(self.key(key), message);
    }

    /// What a key says, read by `read`; a mistake is named and gives `None`.
    pub(crate) fn read<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.get(key)?;
        match read(value) {
            Ok(found) => Some(found),
            Err(expected) => {
                self.refuse(key, format!("is {}: {expected}", show(value)));
                None
            }
        }
    }

    /// A sub-table; anything else under the key is a mistake.
    pub(crate) fn section(&self, key: &'static str) -> Option<Section<'a>> {
        let table = self.read(key, |value| value.as_table().ok_or("expected a table".into()))?;
        Some(Section::at(table, self.key(key), self.mistakes))
    }

    /// An array of tables; anything else under the key is a mistake.
    pub(crate) fn sections(&self, key: &'static str) -> Vec<Section<'a>> {
        let list = self.read(key, |value| value.as_array().ok_or("expected [[tables]]".into()));
        let mut sections = Vec::new();
        for (index, value) in list.into_iter().flatten().enumerate() {
            let path = format!("{}[{index}]", self.key(key));
            match value.as_table() {
                Some(table) => sections.push(Section::at(table, path, self.mistakes)),
                None => self.mistakes.add(path, format!("is {}: expected a table", show(value))),
            }
        }
        sections
    }

    /// Names every key that nobody asked for, with the nearest that is known.
    pub(crate) fn refuse_unknown(&self) {
        let known = self.known.borrow();
        for key in self.table.keys().filter(|key| !known.contains(&key.as_str())) {
            self.refuse(&shown_key(key), unknown(key, known.iter().copied()));
        }
    }
}

/// `is not a key here; did you mean "rtt"?`
pub(crate) fn unknown<'a>(key: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(key, known.clone()) {
        Some(name) => format!("is unknown; did you mean {name}?"),
        None => {
            let mut names: Vec<&str> = known.collect();
            names.sort_unstable();
            names.dedup();
            format!("is unknown; the keys here are {}", names.join(", "))
        }
    }
}

/// A value as an error shows it: short, on one line.
pub(crate) fn show(value: &Value) -> String {
    let text = match value {
        Value::String(text) => format!("\"{text}\""),
        Value::Float(number) => number.to_string(),
        Value::Table(_) => "a table".into(),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().take(4).map(show).collect();
            let more = if list.len() > 4 { ", ..." } else { "" };
            format!("[{}{more}]", items.join(", "))
        }
        other => other.to_string(),
    };
    shorten(&one_line(&text), 80)
}

/// A key as an error shows it: short, on one line.
pub(crate) fn shown_key(key: &str) -> String {
    shorten(&one_line(key), 60)
}

fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.into();
    }
    text.chars().take(most).chain("...".chars()).collect()
}

/// Control characters, line ends among them, must not break the line or the terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

pub(crate) fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_string).ok_or("expected a text in quotes".into())
}

pub(crate) fn boolean(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or("expected true or false".into())
}

/// A whole number from `range`.
pub(crate) fn integer(value: &Value, range: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    value
        .as_integer()
        .and_then(|number| u64::try_from(number).ok())
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            if *range.end() >= i64::MAX as u64 {
                // A flag's value that is no number of TOML's is a text.
                let digits = value.as_str().is_some_and(|text| {
                    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i64>().is_err()
                });
                if digits {
                    return format!("expected a number of at most {}", i64::MAX);
                }
                format!("expected a whole number from {}", range.start())
            } else {
                format!("expected a whole number from {} to {}", range.start(), range.end())
            }
        })
}

/// A quantity with its unit; where text is expected, a bare number is a mistake.
fn quantity<T: std::str::FromStr<Err = crate::units::UnitError>>(
    value: &Value,
) -> Result<T, String> {
    // An empty text gives the sentence that says what is expected.
    value.as_str().unwrap_or_default().parse().map_err(|error: crate::units::UnitError| error.0)
}

pub(crate) fn duration(value: &Value) -> Result<Nanos, String> {
    quantity(value)
}

pub(crate) fn rate(value: &Value) -> Result<crate::units::BitsPerSecond, String> {
    quantity(value)
}

pub(crate) fn size(value: &Value) -> Result<ByteCount, String> {
    quantity(value)
}

pub(crate) fn probability(value: &Value) -> Result<Probability, String> {
    match value {
        Value::Float(number) => Probability::new(*number).map_err(|error| error.0),
        Value::Integer(number) => Probability::new(*number as f64).map_err(|error| error.0),
        other => quantity(other),
    }
}

pub(crate) fn keyword<T: Keyword>(value: &Value) -> Result<T, String> {
    // An empty text gives the sentence that lists the words.
    T::from_word(value.as_str().unwrap_or_default())
}
