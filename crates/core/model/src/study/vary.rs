// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cases that a study spans: the cartesian product of what it varies.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use super::assignment::{Assignment, Axis, Parts, more_than_most};
use super::draft::Draft;
use super::resolve::{self, Clash};
use super::settings;
use crate::case::{Authentication, Case, Tls};
use crate::keyword::Keyword;
use crate::profile::Catalog;
use crate::reader::Mistakes;

/// Every case, the first axis changing slowest; `None` after a mistake.
pub(crate) fn cases(
    parts: &Parts,
    catalog: &Catalog,
    in_file: &Mistakes<'_>,
    in_flags: &Mistakes<'_>,
) -> Option<Vec<Case>> {
    if in_file.any() || in_flags.any() {
        return None;
    }
    let sizes: Vec<usize> = parts.vary.iter().map(|axis| axis.choices.len()).collect();
    if let Some(message) = more_than_most(&sizes) {
        let by_flag = parts.vary.iter().any(|axis| axis.by_flag);
        (if by_flag { in_flags } else { in_file }).add("vary", message);
        return None;
    }
    let count = sizes.iter().product();
    let mut base = Draft::default();
    apply(&mut base, &parts.base);
    let mut cases = Vec::with_capacity(count);
    let mut known: HashMap<u64, Vec<usize>> = HashMap::with_capacity(count);
    for index in 0..count {
        let mut draft = base.clone();
        let choices = digits(index, &parts.vary);
        for (axis, &choice) in parts.vary.iter().zip(&choices) {
            apply(&mut draft, &axis.choices[choice].0);
        }
        let case = match resolve::case(&draft, catalog) {
            Ok(case) => case,
            Err(clashes) => {
                name_clashes(clashes, parts, &choices, in_file, in_flags);
                return None;
            }
        };
        let mut hasher = DefaultHasher::new();
        hasher.write(case.canonical().as_bytes());
        let twins = known.entry(hasher.finish()).or_default();
        if let Some(&twin) = twins.iter().find(|&&twin| cases[twin] == case) {
            // What the case has no layer for makes twins; that says more.
            let other = digits(twin, &parts.vary);
            if let Some(assignment) = without_effect(&case, parts, &choices, &other) {
                let protocol = case.stack.protocol();
                let message = format!(
                    "has no effect: {} (in the case {}); remove it, or study {} in a file of its \
                     own",
                    assignment.setting.layer.missing_from(protocol),
                    label(parts, &choices),
                    protocol.name()
                );
                let mistakes = if assignment.by_flag { in_flags } else { in_file };
                mistakes.add(&assignment.key, message);
                return None;
            }
            let (this, that) = (label(parts, &choices), label(parts, &other));
            let message = format!("makes the same case of {that} and of {this}: keep one");
            in_file.add("vary", message);
            return None;
        }
        twins.push(index);
        cases.push(case);
    }
    if refuse_without_effect(parts, &cases, in_file, in_flags) { None } else { Some(cases) }
}

/// A varied setting that sets two equal cases apart, of a layer that they do not have.
fn without_effect<'a>(
    case: &Case,
    parts: &'a Parts,
    these: &[usize],
    others: &[usize],
) -> Option<&'a Assignment> {
    let choices = parts.vary.iter().zip(these.iter().zip(others));
    let different = choices.filter(|(_, (this, other))| this != other);
    different
        .flat_map(|(axis, (&this, _))| &axis.choices[this].0)
        .find(|assignment| !case.stack.has(assignment.setting.layer))
}

/// Names settings of layers that no case has, and a key store that no case asks; whether there were
/// any.
fn refuse_without_effect(
    parts: &Parts,
    cases: &[Case],
    in_file: &Mistakes<'_>,
    in_flags: &Mistakes<'_>,
) -> bool {
    let varied = || parts.vary.iter().flat_map(|axis| &axis.choices).flat_map(|(list, _)| list);
    let every = || parts.base.iter().chain(varied());
    let mut named: Vec<&str> = Vec::new();
    for assignment in every() {
        let layer = assignment.setting.layer;
        if cases.iter().any(|case| case.stack.has(layer)) || named.contains(&&*assignment.key) {
            continue;
        }
        named.push(&assignment.key);
        let Some(case) = cases.first() else { continue };
        let message = format!(
            "has no effect: {}; remove it, or choose another stack.protocol",
            layer.missing_from(case.stack.protocol())
        );
        (if assignment.by_flag { in_flags } else { in_file }).add(&assignment.key, message);
    }
    let by_key = |tls: &Tls| tls.authentication == Authentication::Psk;
    let nobody_signs = cases.iter().all(|case| case.stack.tls().is_some_and(by_key))
        && cases.iter().any(|case| case.key_store.profile != resolve::KEY_STORE);
    let key_store = every().find(|assignment| assignment.setting.path.starts_with("key_store"));
    if let Some(assignment) = key_store.filter(|_| nobody_signs) {
        named.push(&assignment.key);
        let message = "has no effect: a key from outside lies with the device's software, and \
                       nobody signs; remove it, or use stack.authentication = \"mutual\"";
        (if assignment.by_flag { in_flags } else { in_file }).add(&assignment.key, message);
    }
    !named.is_empty()
}

/// Which choice of each axis a case takes: its index in mixed radix.
fn digits(index: usize, axes: &[Axis]) -> Vec<usize> {
    let mut rest = index;
    let mut digits: Vec<usize> = Vec::with_capacity(axes.len());
    for axis in axes.iter().rev() {
        digits.push(rest % axis.choices.len());
        rest /= axis.choices.len();
    }
    digits.reverse();
    digits
}

fn apply(draft: &mut Draft, assignments: &[Assignment]) {
    for assignment in assignments {
        assignment.edit.apply(draft);
    }
}

fn label(parts: &Parts, choices: &[usize]) -> String {
    let named = parts.vary.iter().zip(choices).map(|(axis, &choice)| {
        format!("{} = {}", axis.path, settings::shown(&axis.choices[choice].1))
    });
    let list: Vec<String> = named.collect();
    list.join(", ")
}

/// Names each clash where its setting was written, and in which case it was met.
fn name_clashes(
    clashes: Vec<Clash>,
    parts: &Parts,
    choices: &[usize],
    in_file: &Mistakes<'_>,
    in_flags: &Mistakes<'_>,
) {
    let place = label(parts, choices);
    let mut named: Vec<(String, String)> = Vec::new();
    for (path, message) in clashes {
        let full = if path.contains('.') { path.to_string() } else { format!("{path}.profile") };
        let at = |assignment: &&Assignment| assignment.setting.path == full;
        let axis = parts
            .vary
            .iter()
            .find(|axis| axis.choices.iter().flat_map(|(list, _)| list).any(|a| at(&a)));
        let base = parts.base.iter().find(at);
        let by_flag = axis.map_or_else(|| base.is_some_and(|a| a.by_flag), |axis| axis.by_flag);
        // A key that stands for several settings is named as it was written, and once.
        let written = match (axis, base) {
            (Some(axis), _) => Some(axis.path.as_str()),
            (None, base) => base.map(|assignment| assignment.key.as_str()),
        };
        let path = written.filter(|key| settings::both(key).is_some()).unwrap_or(path);
        if named.iter().any(|(key, other)| key == path && *other == message) {
            continue;
        }
        named.push((path.into(), message.clone()));
        let mistakes = if by_flag { in_flags } else { in_file };
        if place.is_empty() {
            mistakes.add(path, message);
        } else {
            mistakes.add(path, format!("{message} (in the case {place})"));
        }
    }
}
