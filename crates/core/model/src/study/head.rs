// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The head of a study: its name, its seed, how many trials.

use super::assignment::{Item, Parts};
use crate::reader::{self, Mistakes, show};

/// Seed of a study that states none; any number would do.
const SEED: u64 = 1;
/// Measured trials a case where the study states none: enough for a median within a few percent.
const TRIALS: u32 = 200;
/// Simulated trials are cheap; with these, P99 rests on 200 of them.
const PREDICT_TRIALS: u32 = 20_000;
/// A case at this many trials takes a machine an hour and more.
const MOST_TRIALS: u64 = 1_000_000_000;

/// The head of a study.
pub(crate) struct Head {
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) trials: u32,
    pub(crate) predict_trials: u32,
}

impl Head {
    /// Reads it; `None` after a mistake.
    pub(crate) fn read(
        parts: &Parts,
        in_file: &Mistakes<'_>,
        in_flags: &Mistakes<'_>,
    ) -> Option<Head> {
        let find = |key: &str| parts.head.iter().find(|item| item.key == key);
        let name = match find("name") {
            Some(item) => name(item, in_file, in_flags),
            None => {
                in_file.add(
                    "name",
                    "is missing: expected a short name, such as name = \"first-loop\"",
                );
                None
            }
        };
        let number = |key: &str, range, default: u64| match find(key) {
            None => Some(default),
            Some(item) => match reader::integer(&item.value, range) {
                Ok(number) => Some(number),
                Err(expected) => refuse(item, expected, in_file, in_flags),
            },
        };
        // TOML's whole numbers end at 2^63 - 1.
        let seed = number("seed", 0..=i64::MAX as u64, SEED);
        let trials = number("trials", 1..=MOST_TRIALS, u64::from(TRIALS));
        let least = trials.map_or(PREDICT_TRIALS, |trials| PREDICT_TRIALS.max(trials as u32));
        let predict_trials = number("predict_trials", 1..=MOST_TRIALS, u64::from(least));
        Some(Head {
            name: name?,
            seed: seed?,
            trials: trials? as u32,
            predict_trials: predict_trials? as u32,
        })
    }
}

/// A name becomes a folder, so it must not lead elsewhere or need quoting in a shell.
fn name(item: &Item, in_file: &Mistakes<'_>, in_flags: &Mistakes<'_>) -> Option<String> {
    let name = item.value.as_str().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && name.len() <= 64 && name.chars().all(plain) {
        return Some(name.into());
    }
    let expected =
        "expected at most 64 letters, digits, '-', '_' or '.', beginning with a letter or digit";
    refuse(item, expected.into(), in_file, in_flags)
}

fn refuse<T>(
    item: &Item,
    expected: String,
    in_file: &Mistakes<'_>,
    in_flags: &Mistakes<'_>,
) -> Option<T> {
    let mistakes = if item.by_flag { in_flags } else { in_file };
    mistakes.add(&item.key, format!("is {}: {expected}", show(&item.value)));
    None
}
