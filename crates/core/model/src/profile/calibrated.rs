// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The entries of a calibrated device profile, read without a tree of all their numbers.
//!
//! `warifu calibrate` writes hundreds of entries with tens of thousands of quantiles. TOML's parser
//! makes two values of each number, which was nine tenths of the time that a study took to be read.
//! Entries in exactly the form that calibrations write (`Entry.toml` in
//! `python/warifu/calibrate/profile.py`) are therefore read here, a line at a time. It is a part of
//! TOML, and whatever is written in any other way, or is a mistake, is left to TOML's parser.

use super::condition::Condition;
use super::device::Entry;
use super::figure::{Provenance, distribution, per_byte, scale};
use super::rate::Rate;
use crate::distribution::Distribution;
use crate::keyword::Keyword;
use crate::kind::Kind;
use crate::operation::Operation;
use crate::units::Nanos;

const HEADER: &str = "[[operation]]";

/// The last whole number that f64 holds exactly: up to it, whole numbers give what TOML's do.
const MOST: u64 = 1 << 53;

/// A profile's text as what stands before its entries, and those.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let (head, _) = text.split_once("\n[[operation]]\n")?;
    // In a text over several lines the header would be no header.
    let several_lines = head.contains("\"\"\"") || head.contains("'''");
    (!several_lines).then(|| text.split_at(head.len() + 1))
}

/// The entries, where what they do not say holds as `around` says; `None` where the text has
/// another form than calibrations write.
pub(super) fn entries(list: &str, around: &Provenance) -> Option<Vec<(Operation, Entry)>> {
    let mut entries = Vec::new();
    let mut draft: Option<Draft<'_>> = None;
    for line in list.lines() {
        match line {
            "" => {}
            HEADER => {
                if let Some(draft) = draft.replace(Draft::default()) {
                    entries.push(draft.entry(around)?);
                }
            }
            _ => draft.as_mut()?.read_line(line)?,
        }
    }
    entries.push(draft?.entry(around)?);
    Some(entries)
}

/// The keys of an entry.
#[derive(Default)]
struct Draft<'a> {
    name: Option<Operation>,
    when: Option<Condition>,
    warm: Option<Distribution>,
    cold: Option<Distribution>,
    rested: Option<Distribution>,
    per_byte_ns: Option<f64>,
    source: Option<&'a str>,
    kind: Option<Kind>,
    note: Option<&'a str>,
}

impl<'a> Draft<'a> {
    fn read_line(&mut self, line: &'a str) -> Option<()> {
        let (key, value) = assignment(line)?;
        let twice = match key {
            "name" => self.name.replace(text(value)?.parse().ok()?).is_some(),
            "when" => self.when.replace(condition(value)?).is_some(),
            "warm" => self.warm.replace(law(value)?).is_some(),
            "cold" => self.cold.replace(law(value)?).is_some(),
            "rested" => self.rested.replace(law(value)?).is_some(),
            "per_byte" => self.per_byte_ns.replace(per_byte(text(value)?).ok()?).is_some(),
            "source" => self.source.replace(text(value)?).is_some(),
            "kind" => self.kind.replace(Kind::from_word(text(value)?).ok()?).is_some(),
            "note" => self.note.replace(text(value)?).is_some(),
            _ => return None,
        };
        (!twice).then_some(())
    }

    fn entry(self, around: &Provenance) -> Option<(Operation, Entry)> {
        let provenance = match (self.source, self.kind) {
            (None, None) => around.clone(),
            (Some(source), Some(kind)) if !source.trim().is_empty() => {
                Provenance { source: Some(source.into()), kind, run_id: around.run_id.clone() }
            }
            _ => return None,
        };
        let entry = Entry {
            when: self.when.unwrap_or(Condition::ALWAYS),
            warm: self.warm?,
            cold: self.cold,
            rested: self.rested,
            per_byte: Rate::constant(self.per_byte_ns.unwrap_or(0.0)),
            code: None,
            provenance,
        };
        Some((self.name?, entry))
    }
}

/// `"1500 ns"` or `{ quantiles = [1, 2, 3], unit = "ns" }`, where the numbers may be one text.
fn law(value: &str) -> Option<Distribution> {
    let Some(value) = value.strip_prefix("{ quantiles = ") else {
        return distribution(&text(value)?.into()).ok();
    };
    let is_list = value.starts_with('[');
    let end = if is_list { ']' } else { '"' };
    let (numbers, unit) = value.strip_prefix(['[', '"'])?.split_once(end)?;
    let unit = match unit.strip_prefix(", unit = ")?.strip_suffix(" }")? {
        "\"ns\"" => 1,
        unit => scale(&text(unit)?.into()).ok()? as u64,
    };
    Distribution::from_quantiles(nanos(numbers.as_bytes(), is_list, unit)?).ok()
}

/// Numbers of `unit` ns, with a comma and a space between them or with a space alone.
fn nanos(mut numbers: &[u8], is_list: bool, unit: u64) -> Option<Vec<Nanos>> {
    // As many as calibrations write.
    let mut list = Vec::with_capacity(21);
    loop {
        let (first, rest) = number(numbers)?;
        list.push(Nanos(first.checked_mul(unit).filter(|&nanos| nanos <= MOST)?));
        numbers = match rest {
            [] => return Some(list),
            [b',', b' ', rest @ ..] if is_list => rest,
            [b' ', rest @ ..] if !is_list => rest,
            _ => return None,
        };
    }
}

/// The whole number that `text` begins with, and the rest.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    let mut length = 0;
    while let Some(digit @ b'0'..=b'9') = text.get(length) {
        number = number * 10 + u64::from(digit - b'0');
        length += 1;
        if number > MOST {
            return None;
        }
    }
    let leading_zero = length > 1 && text[0] == b'0';
    (length > 0 && !leading_zero).then(|| (number, &text[length..]))
}

/// `{ tls = "1.3", session = ["full", "ticket"], chain_length = 1 }`
fn condition(value: &str) -> Option<Condition> {
    let mut condition = Condition::ALWAYS;
    let mut rest = value.strip_prefix("{ ")?.strip_suffix(" }")?;
    loop {
        let (key, after) = assignment(rest)?;
        let end = match after.strip_prefix('[') {
            Some(list) => {
                let words = list.split_once(']')?.0;
                condition.allow(key, words.split(", ").map(text))?;
                words.len() + 2
            }
            None => {
                let word = after.split(',').next()?;
                let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
                condition.allow(key, [if is_number { Some(word) } else { text(word) }])?;
                word.len()
            }
        };
        match &after[end..] {
            "" => return Some(condition),
            more => rest = more.strip_prefix(", ")?,
        }
    }
}

/// `KEY = VALUE`, with a space on either side.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once('=')?;
    Some((key.strip_suffix(' ')?, value.strip_prefix(' ')?))
}

/// What a text in quotes says that needs no escapes.
fn text(value: &str) -> Option<&str> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    let plain = |byte: u8| byte >= b' ' && byte != 0x7f && byte != b'"' && byte != b'\\';
    inner.bytes().all(plain).then_some(inner)
}
