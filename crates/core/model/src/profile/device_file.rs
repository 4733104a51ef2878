// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading a device profile.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::OnceLock;

use toml::Value;

use super::calibrated;
use super::calibration_case::CalibrationCase;
use super::condition::Condition;
use super::device::{DeviceProfile, Entry};
use super::figure::{FigureOf, Figures, Provenance, distribution, non_empty};
use super::heading::heading;
use super::lowering::Sums;
use super::machine::{Code, Machine};
use super::rate::Rate;
use super::speed::Speed;
use crate::distribution::Distribution;
use crate::error::Error;
use crate::operation::Operation;
use crate::primitive::Primitive;
use crate::reader::{self, Mistakes, Section};
use crate::units::Nanos;

/// The idle threshold of a device that states cold costs but no threshold; without a source.
const IDLE_THRESHOLD: Nanos = Nanos::from_millis(5);

/// The rest threshold of a device that states rested costs but no threshold; without a source.
const REST_THRESHOLD: Nanos = Nanos::from_millis(500);

impl DeviceProfile {
    /// Reads a profile; `file` is the name to give in errors.
    pub fn parse(name: &str, text: &str, file: &str) -> Result<DeviceProfile, Error> {
        // Every mistake is for TOML's parser to meet, so that it is told in the same way anywhere.
        if let Some(profile) = parse_calibrated(name, text, file) {
            return Ok(profile);
        }
        parse_any(name, text, file)
    }
}

/// Reads a profile in the form that calibrations write; `None` for any other, or with a mistake.
fn parse_calibrated(name: &str, text: &str, file: &str) -> Option<DeviceProfile> {
    let (head, list) = calibrated::split(text)?;
    let mistakes = Mistakes::new(file);
    let table = mistakes.parse(head)?;
    if table.contains_key("operation") {
        return None;
    }
    let root = Section::root(&table, &mistakes);
    read(name, file, &root, &mistakes, |around| {
        let mut entries = BTreeMap::new();
        for (operation, entry) in calibrated::entries(list, around)? {
            add(&mut entries, operation, entry).ok()?;
        }
        Some(entries)
    })
}

/// Reads any profile.
fn parse_any(name: &str, text: &str, file: &str) -> Result<DeviceProfile, Error> {
    let mistakes = Mistakes::new(file);
    let profile = mistakes.parse(text).and_then(|table| {
        let root = Section::root(&table, &mistakes);
        read(name, file, &root, &mistakes, |around| {
            let mut entries = BTreeMap::new();
            for section in root.sections("operation") {
                let Some((operation, entry)) = read_entry(&section, around) else { continue };
                if let Err(mistake) = add(&mut entries, operation, entry) {
                    section.refuse("name", mistake);
                }
            }
            Some(entries)
        })
    });
    mistakes.first_or(profile)
}

type Entries = BTreeMap<Operation, Vec<Entry>>;

fn read(
    name: &str,
    file: &str,
    root: &Section<'_>,
    mistakes: &Mistakes<'_>,
    read_entries: impl FnOnce(&Provenance) -> Option<Entries>,
) -> Option<DeviceProfile> {
    let description = heading(root, name);
    let scope = root.read("scope", non_empty);
    let around = Provenance::read(root, &Provenance::NONE);
    let mut figures = Figures::new(FigureOf::Device, name, root, &around);
    let idle = figures.read("idle_threshold", "ns", reader::duration);
    let idle_input = figures.inputs.pop();
    let rest = figures.read("rest_threshold", "ns", reader::duration);
    let idle_provenance = idle_input.map_or(Provenance::NONE, |input| Provenance {
        source: Some(input.source).filter(|source| !source.is_empty()),
        kind: input.kind,
        run_id: around.run_id.clone(),
    });
    let machine = Machine::read(name, root, &around);
    let speed = Speed::read(root, &around);
    let calibration_cases = CalibrationCase::read_all(root);
    let entries = read_entries(&around)?;
    let mut primitives = BTreeMap::new();
    for section in root.sections("primitive") {
        let expected = "expected a primitive such as \"ecdh.derive.x25519\"";
        let Some((primitive, entry)) = read_primitive(&section, expected, &around) else {
            continue;
        };
        if primitives.insert(primitive, entry).is_some() {
            section.refuse("name", format!("is {primitive} again"));
        }
    }
    root.refuse_unknown();
    if entries.is_empty() && primitives.is_empty() && !mistakes.any() {
        let expected =
            "is missing: a device profile states costs in [[operation]] or [[primitive]]";
        root.refuse("operation", expected);
    }
    (!mistakes.any()).then(|| DeviceProfile {
        name: name.into(),
        file: file.into(),
        description,
        scope,
        idle_threshold: idle.unwrap_or(IDLE_THRESHOLD),
        rest_threshold: rest.unwrap_or(REST_THRESHOLD),
        speed,
        calibration_cases,
        idle_provenance,
        machine,
        entries,
        primitives,
        sums: Sums::default(),
        rested: OnceLock::new(),
    })
}

/// Adds an entry; the error is for a second one under the same conditions.
fn add(entries: &mut Entries, operation: Operation, entry: Entry) -> Result<(), String> {
    let others = entries.entry(operation).or_default();
    let twice = others.iter().any(|other| other.when == entry.when);
    others.push(entry);
    if twice { Err(format!("is {operation} under the same conditions again")) } else { Ok(()) }
}

fn read_entry(section: &Section<'_>, around: &Provenance) -> Option<(Operation, Entry)> {
    let when = match section.get("when") {
        None => Some(Condition::ALWAYS),
        Some(_) => section.section("when").map(|when| Condition::read(&when)),
    };
    let expected = "expected an operation such as \"client.send.ClientHello\"";
    let (operation, entry) = read_named::<Operation>(section, expected, around)?;
    Some((operation, Entry { when: when?, ..entry }))
}

/// A primitive; an instruction takes a time that may be finer than a nanosecond, for each.
fn read_primitive(
    section: &Section<'_>,
    expected: &str,
    around: &Provenance,
) -> Option<(Primitive, Entry)> {
    let code = section.read("code", reader::keyword::<Code>);
    if section.table.get("name").and_then(Value::as_str) != Some("instruction") {
        let (primitive, entry) = read_named::<Primitive>(section, expected, around)?;
        return Some((primitive, Entry { code, ..entry }));
    }
    section.get("name");
    let time = section.read("warm", Rate::read);
    if section.table.get("warm").is_none() {
        section.refuse("warm", "is missing: expected its time, such as \"0.8 ns\"");
    }
    let provenance = Provenance::read(section, around);
    section.get("note");
    section.refuse_unknown();
    let entry = Entry {
        when: Condition::ALWAYS,
        warm: Distribution::constant(Nanos::ZERO),
        cold: None,
        rested: None,
        per_byte: time?,
        code,
        provenance,
    };
    Some((Primitive::Instruction, entry))
}

/// Something with a name and a cost, under all conditions.
fn read_named<T: FromStr<Err = String>>(
    section: &Section<'_>,
    expected: &str,
    around: &Provenance,
) -> Option<(T, Entry)> {
    let name = section.read("name", |value| value.as_str().unwrap_or_default().parse::<T>());
    if section.table.get("name").is_none() {
        section.refuse("name", format!("is missing: {expected}"));
    }
    let warm = section.read("warm", distribution);
    if section.table.get("warm").is_none() {
        section.refuse("warm", "is missing: expected its time, such as \"1.5 ms\"");
    }
    let cold = section.read("cold", distribution);
    let rested = section.read("rested", distribution);
    let per_byte = section.read("per_byte", Rate::read).unwrap_or_else(Rate::zero);
    let provenance = Provenance::read(section, around);
    section.get("note");
    section.refuse_unknown();
    let when = Condition::ALWAYS;
    let entry = Entry { when, warm: warm?, cold, rested, per_byte, code: None, provenance };
    Some((name?, entry))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The largest profile that comes with Warifu.
    const SHIPPED: &str = include_str!("../../../../../profiles/devices/xeon-2-5-ghz-vm.toml");

    const CALIBRATED: &str = r#"# Written by `warifu calibrate host`
name = "d"
description = "a device"
source = "warifu calibrate host"
kind = "simulated"
run_id = "calibrated-1"
idle_threshold = "5000000 ns"

[[operation]]
name = "client.send.ClientHello"
when = { tls = "1.3", session = ["full", "ticket"], chain_length = 1 }
warm = { quantiles = [0, 10, 25], unit = "us" }
cold = { quantiles = "20 30 45", unit = "us" }
rested = { quantiles = [25, 35, 50], unit = "us" }
per_byte = "0.093 ns"
source = "a bench, 3.0"
kind = "measured"
note = "a note"

[[operation]]
name = "server.sign"
warm = "1500 ns"

[[operation]]
name = "server.send.DdsProtectedPayload"
when = { crypto = ["builtin", "warifu"] }
warm = "700 ns"
"#;

    /// The profile by both ways, which must not differ; whether the quick one took it.
    fn both_ways(text: &str) -> Result<bool, TestCaseError> {
        let shown = |profile: DeviceProfile| format!("{profile:?}");
        let Some(quick) = parse_calibrated("d", text, "d.toml").map(shown) else {
            return Ok(false);
        };
        let any = parse_any("d", text, "d.toml").map(shown);
        prop_assert_eq!(any.map_err(|error| error.to_string()), Ok(quick));
        Ok(true)
    }

    #[test]
    fn calibrated_form_as_toml_reads_it() {
        assert!(both_ways(CALIBRATED).unwrap());
        assert!(both_ways(&CALIBRATED.replace('\n', "\r\n")).is_ok());
        assert!(both_ways(&SHIPPED.replace("xeon-2-5-ghz-vm", "d")).unwrap());
    }

    #[test]
    fn primitives_beside_operations_and_alone() {
        let primitive = "[[primitive]]\nname = \"hash.sha-512\"\nwarm = \"9 us\"\n";
        let (head, _) = CALIBRATED.split_once("\n[[operation]]").unwrap();
        assert!(both_ways(&CALIBRATED.replace("\n[[op", &format!("\n{primitive}\n[[op"))).is_ok());
        for text in [format!("{CALIBRATED}{primitive}"), format!("{head}\n{primitive}")] {
            assert_eq!(parse_any("d", &text, "d.toml").unwrap().primitives.len(), 1);
        }
        let refused = |text: &str| {
            let text = format!("{head}\n{text}");
            parse_any("d", &text, "d.toml").unwrap_err().to_string()
        };
        for (text, expected) in [
            ("", "operation is missing: a device profile states costs in [[operation]] or"),
            (&primitive.replace("512", "51"), "did you mean \"hash.sha-512\"?"),
            (&primitive.repeat(2), "is hash.sha-512 again"),
            (&format!("{primitive}when = {{ tls = \"1.3\" }}\n"), "when"),
            ("[[primitive]]\nname = \"random\"\n", "warm is missing"),
            ("[[primitive]]\nwarm = \"1 us\"\n", "name is missing: expected a primitive"),
        ] {
            let error = refused(text);
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn other_forms_are_left_to_toml() {
        for (from, to) in [
            ("[[operation]]\nname", "[[ operation ]]\nname"),
            ("warm = \"1500 ns\"", "warm = \"1500 ns\" # a comment"),
            ("warm = \"1500 ns\"", "warm = '1500 ns'"),
            ("[0, 10, 25]", "[0, 10, 25,]"),
            ("[0, 10, 25]", "[0, 1_0, 25]"),
            ("[0, 10, 25]", "[0, 10.5, 25]"),
            (
                "unit = \"us\" }\ncold",
                "unit = \"us\", tail = { probability = 0.1, quantiles = [1] } }\ncold",
            ),
            ("a note", "a \\\"note\\\""),
            ("note = \"a note\"", "note = \"\"\"\na\nnote\"\"\""),
        ] {
            let text = CALIBRATED.replace(from, to);
            assert_ne!(text, CALIBRATED, "{from}");
            assert!(parse_any("d", &text, "d.toml").is_ok(), "{to}");
            assert!(parse_calibrated("d", &text, "d.toml").is_none(), "{to}");
        }
    }

    /// Where a piece of text is put, how much goes there, and the piece.
    fn change() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
        (any::<prop::sample::Index>(), 0_usize..12, "[-\\[\\]{}=,. \"'#\\\\a-z0-9\n\t\r]{0,3}")
    }

    proptest! {
        /// Whatever is changed: a text is left to TOML, or means the same to both.
        #[test]
        fn changed_calibrated_form(
            changes in prop::collection::vec(change(), 1..4),
        ) {
            let mut text = CALIBRATED.to_owned();
            for (at, length, put) in changes {
                let start = at.index(text.len());
                let end = (start + length).min(text.len());
                text.replace_range(start..end, &put);
            }
            both_ways(&text)?;
        }

        /// The same of whole lines, which come twice, are exchanged or go.
        #[test]
        fn moved_lines_of_calibrated_form(
            moves in prop::collection::vec(
                any::<(prop::sample::Index, prop::sample::Index, bool)>(),
                1..4,
            ),
        ) {
            let mut lines: Vec<&str> = CALIBRATED.lines().collect();
            for (from, to, keep) in moves {
                let line = lines[from.index(lines.len())];
                if !keep {
                    lines.remove(from.index(lines.len()));
                }
                lines.insert(to.index(lines.len() + 1), line);
            }
            both_ways(&(lines.join("\n") + "\n"))?;
        }
    }

    fn parse(operations: &str) -> Result<DeviceProfile, String> {
        let text = format!("name = \"d\"\ndescription = \"a device\"\n{operations}");
        DeviceProfile::parse("d", &text, "d.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn mistakes_in_an_entry() {
        let entry =
            |body: &str| format!("[[operation]]\nname = \"client.send.ClientHello\"\n{body}");
        for (text, expected) in [
            (
                "[[operation]]\nname = \"client.send.ClientHelo\"\nwarm = \"1 ms\"".into(),
                "d.toml: operation[0].name is \"client.send.ClientHelo\": expected an operation; \
                 did you mean \"client.send.ClientHello\"?",
            ),
            (
                entry(""),
                "d.toml: operation[0].warm is missing: expected its time, such as \
                 \"1.5 ms\"",
            ),
            (
                entry("warm = \"1 kB\""),
                "d.toml: operation[0].warm is \"1 kB\": expected a duration",
            ),
            (
                entry("warm = \"1 ms\"\nwhen = { tsl = \"1.3\" }"),
                "d.toml: operation[0].when.tsl is unknown; did you mean tls?",
            ),
            (
                entry("warm = \"1 ms\"\nwhen = { tls = \"1.4\" }"),
                "d.toml: operation[0].when.tls is \"1.4\": expected \"1.2\" or \"1.3\"",
            ),
            (
                entry("warm = \"1 ms\"\nkind = \"measured\""),
                "d.toml: operation[0].kind is \"measured\": expected a source beside it",
            ),
            (
                entry("warm = \"1 ms\"\nper_byte = \"-1 ns\""),
                "d.toml: operation[0].per_byte is \"-1 ns\": expected a time per byte",
            ),
            (String::new(), "d.toml: operation is missing"),
            (
                entry("warm = \"1 ms\"\n").repeat(2),
                "d.toml: operation[1].name is client.send.ClientHello under the same conditions",
            ),
        ] {
            let message = parse(&text).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
            assert_eq!(message.lines().count(), 1);
        }
    }

    #[test]
    fn two_thousand_entries() {
        let list: Vec<String> = (0..21).map(|k| format!("{}.5", 10 * k)).collect();
        let law = format!("{{ quantiles = [{}], unit = \"us\" }}", list.join(", "));
        let mut text = String::new();
        let mut count = 0;
        'all: for operation in Operation::all() {
            for group in ["secp256r1", "x25519"] {
                for session in ["full", "ticket", "psk_dhe_ke", "psk_ke", "0-rtt"] {
                    for chain in 1..=3 {
                        text += &format!(
                            "[[operation]]\nname = \"{operation}\"\nwarm = {law}\ncold = {law}\n\
                             when = {{ group = \"{group}\", session = \"{session}\", chain_length \
                             = {chain} }}\n"
                        );
                        count += 1;
                        if count == 2000 {
                            break 'all;
                        }
                    }
                }
            }
        }
        let profile = parse(&text).unwrap();
        assert_eq!(profile.entries.values().map(Vec::len).sum::<usize>(), count);
    }
}
