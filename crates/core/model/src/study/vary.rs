// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cases that a study spans: the cartesian product of what it varies.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use super::assignment::{Assignment, Axis, Parts};
use super::draft::Draft;
use super::resolve::{self, Clash};
use super::{MOST_CASES, settings};
use crate::case::Case;
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
    let sizes = parts.vary.iter().map(|axis| axis.choices.len());
    let count = sizes.clone().try_fold(1_usize, |product, size| product.checked_mul(size));
    let Some(count) = count.filter(|&count| count <= MOST_CASES) else {
        let product: Vec<String> = sizes.map(|size| size.to_string()).collect();
        let message = format!(
            "spans {} cases: expected at most {MOST_CASES}; shorten a list",
            product.join(" x ")
        );
        let by_flag = parts.vary.iter().any(|axis| axis.by_flag);
        (if by_flag { in_flags } else { in_file }).add("vary", message);
        return None;
    };
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
            let (this, that) = (label(parts, &choices), label(parts, &digits(twin, &parts.vary)));
            let message = format!("makes the same case of {that} and of {this}: keep one");
            in_file.add("vary", message);
            return None;
        }
        twins.push(index);
        cases.push(case);
    }
    Some(cases)
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
        // Every value was checked when the study was taken apart.
        let _ = (assignment.setting.apply)(draft, &assignment.value);
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
    for (path, message) in clashes {
        let full = if path.contains('.') { path.to_string() } else { format!("{path}.profile") };
        let axis = parts.vary.iter().find(|axis| {
            axis.choices.iter().flat_map(|(list, _)| list).any(|a| a.setting.path == full)
        });
        let by_flag = axis.map_or_else(
            || parts.base.iter().any(|a| a.setting.path == full && a.by_flag),
            |axis| axis.by_flag,
        );
        let mistakes = if by_flag { in_flags } else { in_file };
        if place.is_empty() {
            mistakes.add(path, message);
        } else {
            mistakes.add(path, format!("{message} (in the case {place})"));
        }
    }
}
