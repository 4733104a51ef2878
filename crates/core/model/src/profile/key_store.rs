// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key-store profile: what each PKCS#11 call takes.

use toml::Value;

use super::figure::{FigureOf, Figures, Input, Provenance, distribution, non_empty};
use super::heading::heading;
use crate::distribution::Distribution;
use crate::error::Error;
use crate::operation::KeyStoreCall;
use crate::reader::{self, Mistakes, Section};
use crate::units::Nanos;

/// What each call to a key store takes. It serves one call at a time.
#[derive(Clone, Debug)]
pub struct KeyStoreProfile {
    /// Its name, the file's without ending.
    pub name: String,
    /// The file it was read from, for errors.
    pub file: String,
    /// What it is.
    pub description: String,
    /// Whether the key lies in the device's memory: no calls, the device's own `client.sign`
    /// is its cost.
    pub software: bool,
    /// How many signatures it makes in a time, if limited.
    pub throttle: Option<Throttle>,
    /// How it falls asleep, if it does.
    pub sleep: Option<Sleep>,
    /// What the lab runs in its place, if it can run anything.
    pub stand_in: Option<StandIn>,
    calls: Vec<(KeyStoreCall, Distribution)>,
    figures: Vec<Input>,
}

/// A limit: at most `calls` C_Sign may begin within any `window`; the next waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// How many.
    pub calls: u32,
    /// Within which time.
    pub window: Nanos,
}

/// A key store that has had no call for longer than `after` needs `wake` before its next one.
/// Before the first call of a trial it has been idle for longer.
#[derive(Clone, Debug, PartialEq)]
pub struct Sleep {
    /// How long it stays awake.
    pub after: Nanos,
    /// What waking takes.
    pub wake: Distribution,
}

/// A virtual card that the lab runs for a key store that nobody has at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// How slow it is: a profile of `profiles/cards`.
    pub card: String,
    /// Whether an agent keeps its session, so that no program opens one of its own.
    pub agent: bool,
}

impl KeyStoreProfile {
    /// Reads a profile; `file` is the name to give in errors.
    pub fn parse(name: &str, text: &str, file: &str) -> Result<KeyStoreProfile, Error> {
        let mistakes = Mistakes::new(file);
        let profile = mistakes.parse(text).and_then(|table| read(name, &table, file, &mistakes));
        mistakes.first_or(profile)
    }

    /// What a call takes.
    ///
    /// # Errors
    /// The key is in software, where there are no calls.
    pub fn call(&self, call: KeyStoreCall) -> Result<&Distribution, Error> {
        self.calls.iter().find(|(known, _)| *known == call).map(|(_, law)| law).ok_or_else(|| {
            let message = "has no cost: add it to [call], or use a key store that has it";
            Error::new(&self.file, format!("call.{}", call.name()), message)
        })
    }

    /// Its figures, of those calls that `uses` asks for.
    pub(crate) fn inputs(&self, uses: impl Fn(KeyStoreCall) -> bool) -> Vec<Input> {
        let unused: Vec<&str> = KeyStoreCall::ALL
            .into_iter()
            .filter(|&call| !uses(call))
            .map(KeyStoreCall::name)
            .collect();
        let is_unused = |figure: &&Input| {
            figure.of == FigureOf::KeyStoreCall && unused.contains(&figure.key.as_str())
        };
        self.figures.iter().filter(|figure| !is_unused(figure)).cloned().collect()
    }
}

fn read(
    name: &str,
    table: &toml::Table,
    file: &str,
    mistakes: &Mistakes<'_>,
) -> Option<KeyStoreProfile> {
    let root = Section::root(table, mistakes);
    let description = heading(&root, name);
    let around = Provenance::read(&root, &Provenance::NONE);
    let software = root.read("software", reader::boolean).unwrap_or(false);
    let mut figures = Vec::new();
    let mut calls = Vec::new();
    if let Some(section) = root.section("call") {
        let mut reading = Figures::new(FigureOf::KeyStoreCall, name, &section, &around);
        for call in KeyStoreCall::ALL {
            let law = if software {
                reading.read(call.name(), "ns", law)
            } else {
                reading.need(call.name(), "ns", law)
            };
            calls.extend(law.map(|law| (call, law)));
        }
        figures.append(&mut reading.inputs);
        section.refuse_unknown();
    }
    match (software, calls.is_empty()) {
        (true, false) => root.refuse("call", "is given: a key in software has no calls; remove it"),
        (false, true) if !mistakes.any() => {
            root.refuse("call", "is missing: state every call in [call], or software = true");
        }
        _ => {}
    }
    let throttle = root.section("throttle").and_then(|section| {
        let mut reading = Figures::new(FigureOf::KeyStore, name, &section, &around);
        let calls = reading.need("calls", "1", count);
        let window = reading.need("window", "ns", reader::duration);
        figures.append(&mut reading.inputs);
        section.refuse_unknown();
        Some(Throttle { calls: calls?, window: window? })
    });
    let sleep = root.section("sleep").and_then(|section| {
        let mut reading = Figures::new(FigureOf::KeyStore, name, &section, &around);
        let after = reading.need("after", "ns", reader::duration);
        let wake = reading.need("wake", "ns", law);
        figures.append(&mut reading.inputs);
        section.refuse_unknown();
        Some(Sleep { after: after?, wake: wake? })
    });
    let stand_in = root.section("stand_in").and_then(|section| {
        let card = section.read("card", non_empty);
        let agent = section.read("agent", reader::boolean).unwrap_or(false);
        if section.get("card").is_none() {
            section.refuse("card", "is missing: name a profile of profiles/cards");
        }
        section.refuse_unknown();
        Some(StandIn { card: card?, agent })
    });
    if software && stand_in.is_some() {
        root.refuse("stand_in", "is given: a key in software needs none; remove it");
    }
    root.refuse_unknown();
    (!mistakes.any()).then(|| KeyStoreProfile {
        name: name.into(),
        file: file.into(),
        description,
        software,
        throttle,
        sleep,
        stand_in,
        calls,
        figures,
    })
}

fn law(value: &Value) -> Result<Distribution, String> {
    distribution(value)
}

fn count(value: &Value) -> Result<u32, String> {
    reader::integer(value, 1..=u64::from(u32::MAX)).map(|number| number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<KeyStoreProfile, String> {
        let text = format!("name = \"k\"\ndescription = \"a key store\"\n{text}");
        KeyStoreProfile::parse("k", &text, "k.toml").map_err(|error| error.to_string())
    }

    const CALLS: &str = "[call]\nC_OpenSession = \"1 ms\"\nC_Login = \"2 ms\"\n\
        C_FindObjects = \"3 ms\"\nC_SignInit = \"4 ms\"\n\
        C_Sign = { value = { quantiles = [5, 6], unit = \"ms\" }, source = \"a paper\", kind = \
        \"published\" }\n";

    #[test]
    fn calls_throttle_and_sleep() {
        let extra = "[throttle]\ncalls = 10\nwindow = \"1 s\"\n[sleep]\nafter = \"30 s\"\n\
                     wake = \"120 ms\"\n";
        let card = parse(&format!("{CALLS}{extra}")).unwrap();
        assert_eq!(card.call(KeyStoreCall::Login).unwrap().mean(), Nanos::from_millis(2));
        assert_eq!(card.throttle, Some(Throttle { calls: 10, window: Nanos::from_secs(1) }));
        assert_eq!(card.sleep.as_ref().unwrap().after, Nanos::from_secs(30));
        let inputs = card.inputs(|call| call == KeyStoreCall::Sign);
        assert_eq!(inputs.len(), 1 + 2 + 2);
        assert_eq!(inputs[0].kind, crate::Kind::Published);
        assert_eq!(inputs[1].kind, crate::Kind::Assumed);
    }

    #[test]
    fn software_has_no_calls() {
        let software = parse("software = true").unwrap();
        assert!(software.software);
        assert!(software.call(KeyStoreCall::Sign).unwrap_err().to_string().contains("call.C_Sign"));
        assert!(parse(&format!("software = true\n{CALLS}")).unwrap_err().contains("remove it"));
    }

    #[test]
    fn virtual_card_as_stand_in() {
        let card = parse(&format!("{CALLS}[stand_in]\ncard = \"sim\"\nagent = true\n")).unwrap();
        assert_eq!(card.stand_in, Some(StandIn { card: "sim".into(), agent: true }));
        let none = parse(&format!("{CALLS}[stand_in]\nagent = true\n")).unwrap_err();
        assert_eq!(none, "k.toml: stand_in.card is missing: name a profile of profiles/cards");
        let software = parse("software = true\n[stand_in]\ncard = \"sim\"\n").unwrap_err();
        assert!(software.contains("remove it"), "{software}");
    }

    #[test]
    fn missing_call() {
        let text = CALLS.replace("C_Login = \"2 ms\"\n", "");
        assert_eq!(
            parse(&text).unwrap_err(),
            "k.toml: call.C_Login is missing: a profile states every figure"
        );
        assert!(parse("").unwrap_err().contains("software = true"));
    }
}
