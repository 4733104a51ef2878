// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a study and its flags assign to which setting. Every value is checked here, once.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher};

use toml::Value;

use super::draft::Draft;
use super::settings::{self, Edit, SECTIONS, Setting};
use super::{MOST_CASES, words};
use crate::reader::{Mistakes, show, shown_key, unknown};

/// The keys of a study beside its sections.
pub(crate) const HEAD: [&str; 4] = ["name", "seed", "trials", "predict_trials"];

/// A value for a setting.
#[derive(Clone)]
pub(crate) struct Assignment {
    pub(crate) setting: &'static Setting,
    /// Its value, read once.
    pub(crate) edit: Edit,
    /// The key as written, which may stand for several settings.
    pub(crate) key: String,
    pub(crate) by_flag: bool,
}

/// A key of `[vary]`.
pub(crate) struct Axis {
    /// The path as written.
    pub(crate) path: String,
    /// What each of its values assigns, and the value as written.
    pub(crate) choices: Vec<(Vec<Assignment>, Value)>,
    pub(crate) by_flag: bool,
}

/// A key of the head or of `[require]` with its value.
pub(crate) struct Item {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) by_flag: bool,
}

/// A study, taken apart.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) head: Vec<Item>,
    pub(crate) base: Vec<Assignment>,
    pub(crate) vary: Vec<Axis>,
    pub(crate) require: Vec<Item>,
}

impl Axis {
    /// Its values as written.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.choices.iter().map(|(_, value)| settings::shown(value)).collect()
    }

    /// The paths of the settings that its values assign, each once.
    fn paths(&self) -> Vec<&'static str> {
        let all = self.choices.iter().flat_map(|(list, _)| list);
        let paths: BTreeSet<&str> = all.map(|assignment| assignment.setting.path).collect();
        paths.into_iter().collect()
    }
}

impl Parts {
    /// Takes a study's table apart; `flags` may replace what it varies.
    pub(crate) fn of_file(
        table: &toml::Table,
        flags: &[(String, String)],
        mistakes: &Mistakes<'_>,
    ) -> Parts {
        let replaced = flags
            .iter()
            .any(|(path, _)| !HEAD.contains(&path.as_str()) && !path.starts_with("require."));
        let mut parts = Parts::default();
        for (key, value) in table {
            let item = || Item { key: key.clone(), value: value.clone(), by_flag: false };
            match (key.as_str(), value) {
                (head, _) if HEAD.contains(&head) => parts.head.push(item()),
                (section, Value::Table(keys)) if SECTIONS.contains(&section) => {
                    for (key, value) in keys {
                        parts.base.extend(expand(
                            &format!("{section}.{key}"),
                            value,
                            Place { vary: false, by_flag: false },
                            mistakes,
                        ));
                    }
                }
                (section, _) if SECTIONS.contains(&section) => {
                    parts.base.extend(expand(
                        section,
                        value,
                        Place { vary: false, by_flag: false },
                        mistakes,
                    ));
                }
                ("vary", Value::Table(axes)) => {
                    let axes = flatten(axes);
                    // Before each of millions of values is read.
                    if let Some(message) = too_many_cases(&axes).filter(|_| !replaced) {
                        mistakes.add("vary", message);
                        continue;
                    }
                    for (path, value) in axes {
                        parts.vary.extend(axis(&path, value, false, mistakes));
                    }
                }
                ("require", Value::Table(bounds)) => {
                    for (key, value) in flatten(bounds) {
                        parts.require.push(Item { key, value: value.clone(), by_flag: false });
                    }
                }
                ("vary" | "require", _) => {
                    mistakes.add(key, format!("is {}: expected a table", show(value)));
                }
                _ => {
                    let known = HEAD.into_iter().chain(SECTIONS).chain(["vary", "require"]);
                    mistakes.add(shown_key(key), unknown(key, known));
                }
            }
        }
        parts.refuse_twice(mistakes);
        parts
    }

    /// Lets flags replace what the file says, and what it varies.
    pub(crate) fn override_by(&mut self, flags: &[(String, String)], mistakes: &Mistakes<'_>) {
        let mut given = Parts::default();
        for (path, text) in flags {
            let text_value = || Value::String(text.clone());
            if HEAD.contains(&path.as_str()) {
                let value = if path == "name" { text_value() } else { bare(text) };
                given.head.push(Item { key: path.clone(), value, by_flag: true });
            } else if let Some(path) = path.strip_prefix("vary.") {
                given.vary.extend(axis(path, &list(text, is_text(path)), true, mistakes));
            } else if let Some(metric) = path.strip_prefix("require.") {
                let (key, value) = (metric.to_string(), text_value());
                given.require.push(Item { key, value, by_flag: true });
            } else {
                let plain = settings::find(path).is_some_and(|setting| !setting.text);
                // A loss by bursts is a table, and tables are never words.
                let value = if plain || text.starts_with('{') { bare(text) } else { text_value() };
                given.base.extend(expand(
                    path,
                    &value,
                    Place { vary: false, by_flag: true },
                    mistakes,
                ));
            }
        }
        given.refuse_twice(mistakes);
        let own = given.base.iter().map(|assignment| assignment.setting.path);
        let paths: Vec<&str> = own.chain(given.vary.iter().flat_map(Axis::paths)).collect();
        let replaced = |path: &str| paths.iter().any(|given| overlap(given, path));
        self.base.retain(|old| !replaced(old.setting.path));
        self.vary.retain(|axis| !axis.paths().into_iter().any(replaced));
        let again = |list: &[Item], key: &str| list.iter().any(|item| item.key == key);
        self.head.retain(|old| !again(&given.head, &old.key));
        self.require.retain(|old| !again(&given.require, &old.key));
        self.head.extend(given.head);
        self.base.extend(given.base);
        self.vary.extend(given.vary);
        self.require.extend(given.require);
    }

    /// Names settings that are said twice, by whatever keys.
    fn refuse_twice(&self, mistakes: &Mistakes<'_>) {
        let mut said: Vec<(&str, String)> = Vec::new();
        let mut say = |path: &'static str, key: String| match said
            .iter()
            .find(|(old, old_key)| overlap(old, path) && *old_key != key)
        {
            Some((_, old)) => mistakes.add(key, format!("sets the same as {old}: keep one")),
            None => said.push((path, key)),
        };
        for assignment in &self.base {
            say(assignment.setting.path, assignment.key.clone());
        }
        for axis in &self.vary {
            let paths = axis.paths();
            // One line for an axis, however many settings it shares with another key.
            let clash = paths.iter().find(|path| {
                self.base.iter().any(|old| overlap(old.setting.path, path))
                    || self
                        .vary
                        .iter()
                        .take_while(|other| !std::ptr::eq(*other, axis))
                        .any(|other| other.paths().into_iter().any(|old| overlap(old, path)))
            });
            match clash {
                Some(path) => say(path, format!("vary.{}", axis.path)),
                None => paths.into_iter().for_each(|path| say(path, format!("vary.{}", axis.path))),
            }
        }
        for (index, item) in self.head.iter().enumerate() {
            if self.head[..index].iter().any(|other| other.key == item.key) {
                mistakes.add(&item.key, "is given twice: keep one");
            }
        }
    }
}

/// Whether two paths decide the same choice of a case.
fn overlap(one: &str, other: &str) -> bool {
    const SUITE: [&str; 2] = ["stack.aead", "stack.cipher_suite"];
    one == other || (SUITE.contains(&one) && SUITE.contains(&other))
}

/// Where a key was written.
#[derive(Clone, Copy)]
struct Place {
    vary: bool,
    by_flag: bool,
}

/// The settings that a key stands for, with their values checked.
fn expand(path: &str, value: &Value, place: Place, mistakes: &Mistakes<'_>) -> Vec<Assignment> {
    let (prefix, by_flag) = (if place.vary { "vary." } else { "" }, place.by_flag);
    let key = format!("{prefix}{}", shown_key(path));
    let refuse = |expected: String| {
        mistakes.add(&key, format!("is {}: {expected}", show(value)));
        Vec::new()
    };
    let list: Vec<(String, Value)> = match (path, value) {
        ("stack", Value::String(text)) => match words::stack(text) {
            Ok(list) => {
                list.into_iter().map(|(path, word)| (path.into(), Value::String(word))).collect()
            }
            Err(expected) => return refuse(expected),
        },
        ("pattern", Value::String(_)) => vec![("pattern.kind".into(), value.clone())],
        (section, Value::String(_)) if SECTIONS.contains(&section) => {
            vec![(format!("{section}.profile"), value.clone())]
        }
        (section, _) if SECTIONS.contains(&section) => {
            return refuse("expected a text or a table".into());
        }
        _ => match settings::both(path) {
            Some(paths) => paths.map(|path| (path.into(), value.clone())).to_vec(),
            None => vec![(path.into(), value.clone())],
        },
    };
    let mut assignments = Vec::new();
    for (path, value) in list {
        let Some(setting) = settings::find(&path) else {
            mistakes.add(&key, settings::unknown_path(&path));
            return Vec::new();
        };
        match (setting.read)(&value) {
            Ok(edit) => assignments.push(Assignment { setting, edit, key: key.clone(), by_flag }),
            Err(expected) => return refuse(expected),
        }
    }
    assignments
}

/// One key of `[vary]` with its list.
fn axis(path: &str, value: &Value, by_flag: bool, mistakes: &Mistakes<'_>) -> Option<Axis> {
    let key = format!("vary.{}", shown_key(path));
    if !settings::is_path(path) {
        mistakes.add(key, settings::unknown_path(path));
        return None;
    }
    let list = value.as_array().filter(|list| !list.is_empty());
    let Some(list) = list else {
        mistakes.add(key, format!("is {}: expected a list with at least one value", show(value)));
        return None;
    };
    let mut choices: Vec<(Vec<Assignment>, Value)> = Vec::with_capacity(list.len());
    let mut known = Drafts::default();
    for value in list {
        let assignments = expand(path, value, Place { vary: true, by_flag }, mistakes);
        if assignments.is_empty() {
            return None;
        }
        let mut draft = Draft::default();
        for assignment in &assignments {
            assignment.edit.apply(&mut draft);
        }
        if !known.insert(draft) {
            mistakes.add(key, format!("holds {} twice: keep one", show(value)));
            return None;
        }
        choices.push((assignments, value.clone()));
    }
    Some(Axis { path: path.into(), choices, by_flag })
}

/// The mistake of lists whose product is more than a study may span.
fn too_many_cases(axes: &[(String, &Value)]) -> Option<String> {
    let sizes = axes.iter().map(|(_, value)| value.as_array().map_or(1, Vec::len).max(1));
    more_than_most(&sizes.collect::<Vec<_>>())
}

/// The mistake of a product of more than [`MOST_CASES`].
pub(crate) fn more_than_most(sizes: &[usize]) -> Option<String> {
    let count = sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    if count.is_some_and(|count| count <= MOST_CASES) {
        return None;
    }
    let product: Vec<String> = sizes.iter().map(usize::to_string).collect();
    Some(format!(
        "spans {} cases: expected at most {MOST_CASES}; shorten a list",
        product.join(" x ")
    ))
}

/// Drafts that differ. Those of equal values are found by a hash: a list may have as many values as
/// a study has cases, and each would have to be held against all others.
#[derive(Default)]
struct Drafts(HashMap<u64, Vec<Draft>>);

impl Drafts {
    /// Whether it is new.
    fn insert(&mut self, draft: Draft) -> bool {
        let mut text = Hashed(DefaultHasher::new());
        // A hasher takes any text. Equal drafts have equal texts: no probability is -0.
        let _ = write!(text, "{draft:?}");
        let alike = self.0.entry(text.0.finish()).or_default();
        let new = !alike.contains(&draft);
        if new {
            alike.push(draft);
        }
        new
    }
}

/// Hashes what is written to it.
struct Hashed(DefaultHasher);

impl fmt::Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// Dotted keys of a table as one level, quoted or not: `"link.rtt"` and `link.rtt` are the same.
fn flatten(table: &toml::Table) -> Vec<(String, &Value)> {
    let mut list = Vec::new();
    for (key, value) in table {
        match value {
            // An empty table stays, so that it is refused and not overlooked.
            Value::Table(inner) if !inner.is_empty() => {
                let below = flatten(inner).into_iter();
                list.extend(below.map(|(path, value)| (format!("{key}.{path}"), value)));
            }
            _ => list.push((key.clone(), value)),
        }
    }
    list
}

/// Whether a key's values are words or quantities, which a flag need not quote.
fn is_text(path: &str) -> bool {
    SECTIONS.contains(&path)
        || settings::both(path).is_some()
        || settings::find(path).is_some_and(|setting| setting.text)
}

/// A flag's text as TOML, as a list whose words lack their quotes, or as a word.
fn bare(text: &str) -> Value {
    let list = || bracketed(text).map(|inner| items(&split(inner), false));
    toml_value(text).or_else(list).unwrap_or_else(|| Value::String(text.into()))
}

/// A flag's list: `["a", "b"]`, or as a shell leaves it, `[a, b]` or `a,b`. Where `words` are
/// expected, what has no quotes is one whatever else it could be: `1.3` of `stack.tls`.
fn list(text: &str, words: bool) -> Value {
    let parts = split(text);
    match parts.as_slice() {
        [whole] => items(&bracketed(whole).map_or_else(|| vec![*whole], split), words),
        several => items(several, words),
    }
}

fn items(parts: &[&str], words: bool) -> Value {
    let value = |text: &str| match text.chars().next() {
        // A list within a list holds no other.
        Some('[') => toml_value(text).or_else(|| Some(list_of_words(bracketed(text)?))),
        Some('"' | '\'' | '{') => toml_value(text),
        _ if words => None,
        _ => toml_value(text),
    };
    // What is no TOML is refused by whoever reads it, as it was written.
    let word = |text: &&str| value(text).unwrap_or_else(|| Value::String((*text).into()));
    Value::Array(parts.iter().map(word).collect())
}

fn list_of_words(text: &str) -> Value {
    let word = |text: &str| toml_value(text).unwrap_or_else(|| Value::String(text.into()));
    Value::Array(split(text).into_iter().map(word).collect())
}

fn bracketed(text: &str) -> Option<&str> {
    text.trim().strip_prefix('[')?.strip_suffix(']')
}

/// The parts of a list's text between commas outside of quotes and brackets; a comma at the end
/// begins no part.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_u32);
    let mut quote: Option<char> = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    parts
}

fn toml_value(text: &str) -> Option<Value> {
    let parsed: Option<toml::Table> = format!("value = {text}").parse().ok();
    parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"))
}
