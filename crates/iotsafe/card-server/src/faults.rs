// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults as text: rates under a seed, or a script with a line for each command.
//!
//! Rates are one line, for example `lost=1%, late=2%, late_by=300ms, removed=0.5%, seed=7`; its
//! keys are `lost`, `late`, `late_by`, `flipped`, `wrong_status`, `removed`, `reset`, `power_cut`,
//! `seed`.
//!
//! A script begins with the line `script` and has for each command of the card in turn one of `ok`,
//! `lost`, `late 300ms`, `flipped`, `wrong_status`, `removed 2` (how many commands it misses),
//! `reset`, `power_cut_before_write`, `power_cut_after_write`. After its last line nothing goes
//! wrong. `#` begins a comment.

use std::collections::VecDeque;

use warifu_card::faults::{Fault, Plan, Rates};
use warifu_model::{Nanos, Probability};

use crate::error::ServerError;
use crate::host::Faults;

const KEYS: &str = "lost, late, late_by, flipped, wrong_status, removed, reset, power_cut, seed";
const ENTRIES: &str = "ok, lost, late TIME, flipped, wrong_status, removed COMMANDS, reset, \
                       power_cut_before_write, power_cut_after_write";

/// Reads faults; `name` is what to call the text in errors.
///
/// # Errors
/// [`ServerError::Request`], one line that names the position and how to fix it.
///
/// ```
/// use warifu_card_server::faults::parse;
/// assert_eq!(parse("lost=1%, seed=7", "--faults").unwrap().seed, 7);
/// assert!(parse("lost=lots", "--faults").is_err());
/// ```
pub fn parse(text: &str, name: &str) -> Result<Faults, ServerError> {
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.split('#').next().unwrap_or_default().trim()))
        .filter(|(_, line)| !line.is_empty())
        .peekable();
    if lines.next_if(|(_, line)| *line == "script").is_none() {
        return rates(lines.flat_map(|(_, line)| line.split(',')), name);
    }
    let script: Result<VecDeque<_>, _> = lines
        .map(|(number, line)| {
            entry(line).map_err(|expected| {
                ServerError::Request(format!("{name}: line {number} is {line:?}: {expected}"))
            })
        })
        .collect();
    Ok(Faults { plan: Plan::Script(script?), seed: 0 })
}

fn entry(line: &str) -> Result<Option<Fault>, String> {
    let (word, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim();
    let alone = |fault| if argument.is_empty() { Ok(Some(fault)) } else { Err(expected()) };
    match word {
        "ok" if argument.is_empty() => Ok(None),
        "lost" => alone(Fault::LostAnswer),
        "late" => {
            argument.parse().map(|by| Some(Fault::LateAnswer { by })).map_err(|error| error.0)
        }
        "flipped" => alone(Fault::FlippedBit),
        "wrong_status" => alone(Fault::WrongStatus),
        "removed" => {
            match argument.parse() {
                Ok(commands) if commands > 0 => Ok(Some(Fault::Removed { commands })),
                _ => Err("expected the number of commands without a card, such as \"removed 2\""
                    .to_owned()),
            }
        }
        "reset" => alone(Fault::Reset),
        "power_cut_before_write" => alone(Fault::PowerCutBeforeWrite),
        "power_cut_after_write" => alone(Fault::PowerCutAfterWrite),
        _ => Err(expected()),
    }
}

fn expected() -> String {
    format!("expected one of {ENTRIES}")
}

fn rates<'a>(parts: impl Iterator<Item = &'a str>, name: &str) -> Result<Faults, ServerError> {
    let refuse = |text: String| ServerError::Request(format!("{name}: {text}"));
    let (mut rates, mut seed, mut found) = (Rates::default(), 0, false);
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        found = true;
        let (key, value) = part
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()))
            .ok_or_else(|| refuse(format!("{part:?}: expected KEY=VALUE, KEY of {KEYS}")))?;
        let rate = match key {
            "lost" => &mut rates.lost,
            "late" => &mut rates.late,
            "flipped" => &mut rates.flipped,
            "wrong_status" => &mut rates.wrong_status,
            "removed" => &mut rates.removed,
            "reset" => &mut rates.reset,
            "power_cut" => &mut rates.power_cut,
            "late_by" => {
                let by: Result<Nanos, _> = value.parse();
                rates.late_by =
                    by.map_err(|error| refuse(format!("late_by is {value}: {}", error.0)))?;
                continue;
            }
            "seed" => {
                let number = || refuse(format!("seed is {value}: expected a whole number"));
                seed = value.parse().map_err(|_| number())?;
                continue;
            }
            _ => return Err(refuse(format!("{key} is unknown; the keys are {KEYS}"))),
        };
        let probability: Result<Probability, _> = value.parse();
        *rate = probability.map_err(|error| refuse(format!("{key} is {value}: {}", error.0)))?.0;
    }
    let Rates { lost, late, flipped, wrong_status, removed, reset, power_cut, .. } = rates;
    let sum = lost + late + flipped + wrong_status + removed + reset + power_cut;
    if !found {
        return Err(refuse(format!("is empty: expected KEY=VALUE, KEY of {KEYS}, or a script")));
    }
    if sum > 1.0 {
        return Err(refuse(format!("the rates add up to {sum}: expected at most 1")));
    }
    if late > 0.0 && rates.late_by == Nanos::ZERO {
        return Err(refuse("late_by is missing: expected, for example, late_by=300ms".to_owned()));
    }
    Ok(Faults { plan: Plan::Rates(rates), seed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_rates() {
        let faults = parse("lost=1%, late = 2 %,late_by=300ms\nreset=0.5%, seed=7 # a week", "f");
        let faults = faults.unwrap();
        let Plan::Rates(rates) = faults.plan else { panic!() };
        assert_eq!((rates.lost, rates.late, rates.reset), (0.01, 0.02, 0.005));
        assert_eq!((rates.late_by, faults.seed), (Nanos(300_000_000), 7));
    }

    #[test]
    fn parse_script() {
        let faults =
            parse("script\nok # SELECT\n\nlate 5 ms\nremoved 3\npower_cut_before_write", "f");
        let Plan::Script(script) = faults.unwrap().plan else { panic!() };
        let expected = [
            None,
            Some(Fault::LateAnswer { by: Nanos(5_000_000) }),
            Some(Fault::Removed { commands: 3 }),
            Some(Fault::PowerCutBeforeWrite),
        ];
        assert_eq!(script, expected);
    }

    #[test]
    fn errors_name_position_and_fix() {
        for (text, begins) in [
            ("", "f: is empty: expected"),
            ("lost", "f: \"lost\": expected KEY=VALUE"),
            ("last=1%", "f: last is unknown; the keys are lost"),
            ("lost=2", "f: lost is 2: expected"),
            ("lost=60%,reset=60%", "f: the rates add up to 1.2"),
            ("late=1%", "f: late_by is missing"),
            ("late_by=3", "f: late_by is 3: expected"),
            ("seed=-1", "f: seed is -1: expected"),
            ("script\nok\nlost 3", "f: line 3 is \"lost 3\": expected one of"),
            ("script\nremoved 0", "f: line 2 is \"removed 0\": expected the number"),
            ("script\nlate", "f: line 2 is \"late\": expected"),
        ] {
            let error = parse(text, "f").unwrap_err().to_string();
            assert!(error.starts_with(begins) && error.lines().count() == 1, "{text}: {error}");
        }
    }
}
