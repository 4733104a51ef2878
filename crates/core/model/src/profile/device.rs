// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device profile: what each operation costs on a machine.

use std::collections::BTreeMap;

use toml::Value;

use super::condition::{Condition, Mismatch};
use super::figure::{Input, Provenance, distribution, non_empty, show_distribution};
use crate::case::Stack;
use crate::distribution::Distribution;
use crate::error::Error;
use crate::kind::Kind;
use crate::operation::Operation;
use crate::reader::{self, Mistakes, Section};
use crate::units::Nanos;

/// The idle threshold of a device that states cold costs but no threshold; without a source.
const IDLE_THRESHOLD: Nanos = Nanos::from_millis(5);

/// What each operation costs on a machine.
#[derive(Clone, Debug)]
pub struct DeviceProfile {
    /// Its name, the file's without ending.
    pub name: String,
    /// The file it was read from, for errors.
    pub file: String,
    /// What the machine is.
    pub description: String,
    /// A processor idle for longer works at its cold costs until its program waits again.
    pub idle_threshold: Nanos,
    /// What the figures cover, for errors about what they do not.
    scope: Option<String>,
    idle_provenance: Provenance,
    entries: BTreeMap<Operation, Vec<Entry>>,
}

/// The cost of one operation, as [`DeviceProfile::cost`] finds it.
#[derive(Clone, Copy, Debug)]
pub struct Cost<'a> {
    /// With warm caches.
    pub warm: &'a Distribution,
    /// After the processor was idle for longer than the profile's threshold.
    pub cold: &'a Distribution,
    /// Additional time for each byte, ns.
    pub per_byte_ns: f64,
    /// Additional time for the bytes asked about.
    pub bytes_cost: Nanos,
    /// Where the figure comes from.
    pub source: Option<&'a str>,
    /// Its kind.
    pub kind: Kind,
    /// The calibration run it comes from.
    pub run_id: Option<&'a str>,
}

#[derive(Clone, Debug)]
struct Entry {
    when: Condition,
    warm: Distribution,
    cold: Option<Distribution>,
    per_byte_ns: f64,
    provenance: Provenance,
}

impl DeviceProfile {
    /// Reads a profile; `file` is the name to give in errors.
    pub fn parse(name: &str, text: &str, file: &str) -> Result<DeviceProfile, Error> {
        let mistakes = Mistakes::new(file);
        let profile = mistakes.parse(text).and_then(|table| read(name, &table, file, &mistakes));
        mistakes.first_or(profile)
    }

    /// The cost of an operation in a stack; of the entries whose conditions hold, the one with
    /// the most conditions. `bytes` scales the part per byte.
    ///
    /// # Errors
    /// The profile has no entry for it, or two with equally many conditions.
    pub fn cost(&self, operation: Operation, stack: &Stack, bytes: u32) -> Result<Cost<'_>, Error> {
        let entry = self.entry(operation, stack)?;
        Ok(Cost {
            warm: &entry.warm,
            cold: entry.cold.as_ref().unwrap_or(&entry.warm),
            per_byte_ns: entry.per_byte_ns,
            bytes_cost: Nanos((entry.per_byte_ns * f64::from(bytes)).round() as u64),
            source: entry.provenance.source.as_deref(),
            kind: entry.provenance.kind,
            run_id: entry.provenance.run_id.as_deref(),
        })
    }

    /// The calibration runs that its figures come from, sorted.
    pub fn run_ids(&self) -> Vec<&str> {
        let entries = self.entries.values().flatten().map(|entry| &entry.provenance);
        let all = entries.chain([&self.idle_provenance]).filter_map(|p| p.run_id.as_deref());
        let sorted: std::collections::BTreeSet<&str> = all.collect();
        sorted.into_iter().collect()
    }

    /// The figures that apply to a stack, of those operations that `uses` asks for.
    pub(crate) fn inputs(&self, stack: &Stack, uses: impl Fn(Operation) -> bool) -> Vec<Input> {
        let mut inputs = Vec::new();
        for &operation in self.entries.keys().filter(|&&operation| uses(operation)) {
            let Ok(entry) = self.entry(operation, stack) else { continue };
            let name = format!("{} {operation}", self.name);
            let mut value = show_distribution(&entry.warm);
            if let Some(cold) = &entry.cold {
                value = format!("{value}; cold {}", show_distribution(cold));
            }
            if entry.per_byte_ns > 0.0 {
                value = format!("{value}; {} ns per B", entry.per_byte_ns);
            }
            inputs.push(entry.provenance.input(name, value, "ns"));
        }
        if self.entries.values().flatten().any(|entry| entry.cold.is_some()) {
            let name = format!("{} idle_threshold", self.name);
            inputs.push(self.idle_provenance.input(name, self.idle_threshold.to_string(), "ns"));
        }
        inputs
    }

    fn entry(&self, operation: Operation, stack: &Stack) -> Result<&Entry, Error> {
        let entries = self.entries.get(&operation).map_or(&[][..], Vec::as_slice);
        let point = Condition::point(stack);
        let mut best: Option<&Entry> = None;
        let mut twin = false;
        for entry in entries.iter().filter(|entry| entry.when.holds(&point)) {
            let terms = best.map_or(0, |best| best.when.terms() + 1);
            match (entry.when.terms() + 1).cmp(&terms) {
                std::cmp::Ordering::Greater => (best, twin) = (Some(entry), false),
                std::cmp::Ordering::Equal => twin = true,
                std::cmp::Ordering::Less => {}
            }
        }
        match best {
            Some(entry) if !twin => Ok(entry),
            Some(entry) => {
                let message = format!(
                    "has two costs for {point} with equally many conditions ({}): add a \
                     condition to the one that should win",
                    entry.when
                );
                Err(Error::new(&self.file, operation.to_string(), message))
            }
            None => Err(self.missing(&[operation], &point)),
        }
    }

    /// What it lacks of these operations for a stack, all of it in one error.
    pub fn lacks(&self, operations: &[Operation], stack: &Stack) -> Option<Error> {
        let missing = self.missing_operations(operations, stack);
        (!missing.is_empty()).then(|| self.missing(&missing, &Condition::point(stack)))
    }

    /// Which of these operations have no cost for a stack, each once.
    pub fn missing_operations(&self, operations: &[Operation], stack: &Stack) -> Vec<Operation> {
        let point = Condition::point(stack);
        let mut missing: Vec<Operation> = Vec::new();
        for &operation in operations {
            let entries = self.entries.get(&operation).map_or(&[][..], Vec::as_slice);
            let has = entries.iter().any(|entry| entry.when.holds(&point));
            if !has && !missing.contains(&operation) {
                missing.push(operation);
            }
        }
        missing
    }

    /// Names what is missing, and what to change so that none of it is needed.
    fn missing(&self, operations: &[Operation], point: &Condition) -> Error {
        let mut changes: Vec<String> = Vec::new();
        let mut must_be_added = false;
        for &operation in operations {
            let entries = self.entries.get(&operation).map_or(&[][..], Vec::as_slice);
            let nearest = entries
                .iter()
                .map(|entry| entry.when.mismatches(point))
                .min_by_key(Vec::len)
                .map(|mismatches| mismatches.iter().map(Mismatch::mend).collect::<Vec<_>>());
            let mends = match nearest {
                Some(mends) => mends,
                None if operation.needs_client_certificate() => {
                    vec!["stack.authentication = \"server\"".into()]
                }
                None => {
                    must_be_added = true;
                    Vec::new()
                }
            };
            for mend in mends {
                if !changes.contains(&mend) {
                    changes.push(mend);
                }
            }
        }
        // What no change of the study avoids makes the other changes vain.
        let mend = match (must_be_added, operations.len()) {
            (false, _) => format!("use {}", changes.join(" and ")),
            (true, 1) => "add it to the profile".into(),
            (true, _) => "add them to the profile".into(),
        };
        let scope = self.scope.as_ref().map_or(String::new(), |scope| format!(" ({scope})"));
        let have = if operations.len() == 1 { "has" } else { "have" };
        let message = format!("{have} no cost for {point}{scope}: {mend}, or calibrate the device");
        let names: Vec<String> = operations.iter().map(ToString::to_string).collect();
        Error::new(&self.file, names.join(", "), message)
    }
}

fn read(
    name: &str,
    table: &toml::Table,
    file: &str,
    mistakes: &Mistakes<'_>,
) -> Option<DeviceProfile> {
    let root = Section::root(table, mistakes);
    let description = super::catalog::heading(&root, name);
    let scope = root.read("scope", non_empty);
    let around = Provenance::read(&root, &Provenance::NONE);
    let mut figures = super::figure::Figures::new(name, &root, &around);
    let idle = figures.read("idle_threshold", "ns", reader::duration, Nanos::to_string);
    let idle_input = figures.inputs.pop();
    let idle_provenance = idle_input.map_or(Provenance::NONE, |input| Provenance {
        source: Some(input.source).filter(|source| !source.is_empty()),
        kind: input.kind,
        run_id: around.run_id.clone(),
    });
    let mut entries: BTreeMap<Operation, Vec<Entry>> = BTreeMap::new();
    for section in root.sections("operation") {
        let Some((operation, entry)) = read_entry(&section, &around) else { continue };
        let twins = entries.entry(operation).or_default();
        if twins.iter().any(|twin| twin.when == entry.when) {
            section.refuse("name", format!("is {operation} under the same conditions again"));
        }
        twins.push(entry);
    }
    root.refuse_unknown();
    if entries.is_empty() && !mistakes.any() {
        root.refuse("operation", "is missing: a device profile states costs in [[operation]]");
    }
    (!mistakes.any()).then(|| DeviceProfile {
        name: name.into(),
        file: file.into(),
        description,
        scope,
        idle_threshold: idle.unwrap_or(IDLE_THRESHOLD),
        idle_provenance,
        entries,
    })
}

fn read_entry(section: &Section<'_>, around: &Provenance) -> Option<(Operation, Entry)> {
    let operation =
        section.read("name", |value| value.as_str().unwrap_or_default().parse::<Operation>());
    if section.table.get("name").is_none() {
        section.refuse(
            "name",
            "is missing: expected an operation such as \"client.send.ClientHello\"",
        );
    }
    let when = match section.get("when") {
        None => Some(Condition::ALWAYS),
        Some(_) => section.section("when").map(|when| Condition::read(&when)),
    };
    let warm = section.read("warm", distribution);
    if section.table.get("warm").is_none() {
        section.refuse("warm", "is missing: expected the operation's time, such as \"1.5 ms\"");
    }
    let cold = section.read("cold", distribution);
    let per_byte_ns = section.read("per_byte", per_byte).unwrap_or(0.0);
    let provenance = Provenance::read(section, around);
    section.get("note");
    section.refuse_unknown();
    Some((operation?, Entry { when: when?, warm: warm?, cold, per_byte_ns, provenance }))
}

/// `"0.8 ns"`, which may be finer than 1 ns.
fn per_byte(value: &Value) -> Result<f64, String> {
    let expected = || "expected a time per byte such as \"0.8 ns\"".to_string();
    let text = value.as_str().ok_or_else(expected)?;
    let number = text.trim().strip_suffix("ns").ok_or_else(expected)?.trim();
    number
        .parse()
        .ok()
        // A second per byte is no rate of computation.
        .filter(|value: &f64| (0.0..1e9).contains(value))
        .ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{any_tls, https};
    use crate::case::{Authentication, Group, Session, Tls, TlsVersion};
    use crate::operation::{Direction, HandshakeMessage, Role};

    /// One line says all that is to change, so that nobody mends a study a run at a time.
    #[test]
    fn all_that_a_profile_lacks_is_said_at_once() {
        let send = |message| Operation::Tls(Role::Client, Direction::Send, message);
        let verify = send(HandshakeMessage::CertificateVerify);
        let text = "[[operation]]\nname = \"client.send.ClientHello\"\nwarm = \"1 us\"\n\
                    when = { certificate = \"rsa-2048\" }\n";
        let profile = parse(text).unwrap();
        let stack = https(any_tls());
        let error = profile.lacks(&[HELLO, verify, HELLO], &stack).unwrap().to_string();
        let names = "d.toml: client.send.ClientHello, client.send.CertificateVerify have no cost";
        assert!(error.starts_with(names), "{error}");
        assert!(error.contains("certificate = \"rsa-2048\" and "), "{error}");
        assert!(error.contains("stack.authentication = \"server\", or calibrate"), "{error}");
        let free = parse("[[operation]]\nname = \"client.send.ClientHello\"\nwarm = \"1 us\"\n");
        assert!(free.unwrap().lacks(&[HELLO], &stack).is_none());
    }

    const HELLO: Operation =
        Operation::Tls(Role::Client, Direction::Send, HandshakeMessage::ClientHello);

    fn parse(operations: &str) -> Result<DeviceProfile, String> {
        let text = format!("name = \"d\"\ndescription = \"a device\"\n{operations}");
        DeviceProfile::parse("d", &text, "d.toml").map_err(|error| error.to_string())
    }

    fn tls() -> Tls {
        Tls { group: Group::X25519, ..any_tls() }
    }

    fn stack() -> Stack {
        https(tls())
    }

    #[test]
    fn the_most_specific_entry_wins_whatever_the_order() {
        let entries = [
            "[[operation]]\nname = \"client.send.ClientHello\"\nwarm = \"1 ms\"\n",
            "[[operation]]\nname = \"client.send.ClientHello\"\nwarm = \"2 ms\"\nwhen = { tls = \"1.3\" }\n",
            "[[operation]]\nname = \"client.send.ClientHello\"\nwarm = \"3 ms\"\n\
             when = { tls = \"1.3\", session = [\"full\", \"psk_dhe_ke\"] }\nper_byte = \"0.5 ns\"\n",
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let profile = parse(&order.map(|index| entries[index]).concat()).unwrap();
            let warm = |stack: &Stack| profile.cost(HELLO, stack, 100).unwrap().warm.mean();
            assert_eq!(warm(&stack()), Nanos::from_millis(3));
            assert_eq!(
                warm(&https(Tls { session: Session::EarlyData, ..tls() })),
                Nanos::from_millis(2)
            );
            assert_eq!(
                warm(&https(Tls { version: TlsVersion::Tls12, ..tls() })),
                Nanos::from_millis(1)
            );
            assert_eq!(profile.cost(HELLO, &stack(), 101).unwrap().bytes_cost, Nanos(51));
            assert_eq!(profile.cost(HELLO, &stack(), 0).unwrap().kind, Kind::Assumed);
        }
    }

    #[test]
    fn a_missing_operation_names_file_operation_choices_and_mend() {
        let profile = parse(
            "scope = \"server-only authentication\"\n[[operation]]\nname = \"client.send.ClientHello\"\n\
             warm = \"1 ms\"\nwhen = { tls = \"1.2\" }\n",
        )
        .unwrap();
        let message = profile.cost(HELLO, &stack(), 0).unwrap_err().to_string();
        assert!(
            message.starts_with("d.toml: client.send.ClientHello has no cost for tls=1.3"),
            "{message}"
        );
        assert!(message.ends_with("use stack.tls = \"1.2\", or calibrate the device"), "{message}");
        let verify =
            Operation::Tls(Role::Client, Direction::Send, HandshakeMessage::CertificateVerify);
        let mutual = https(Tls { authentication: Authentication::Mutual, ..tls() });
        let message = profile.cost(verify, &mutual, 0).unwrap_err().to_string();
        assert!(message.contains("(server-only authentication)"), "{message}");
        assert!(message.contains("use stack.authentication = \"server\""), "{message}");
        assert_eq!(message.lines().count(), 1);
    }

    #[test]
    fn two_equally_specific_entries_are_an_error_where_both_hold() {
        let profile = parse(
            "[[operation]]\nname = \"client.send.ClientHello\"\nwarm = \"1 ms\"\nwhen = { tls = \"1.3\" }\n\
             [[operation]]\nname = \"client.send.ClientHello\"\nwarm = \"2 ms\"\nwhen = { group = \"x25519\" }\n",
        )
        .unwrap();
        assert!(profile.cost(HELLO, &stack(), 0).unwrap_err().to_string().contains("two costs"));
        assert!(profile.cost(HELLO, &https(Tls { group: Group::Secp256r1, ..tls() }), 0).is_ok());
    }

    #[test]
    fn mistakes_are_one_line_with_file_key_and_mend() {
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
                "d.toml: operation[0].warm is missing: expected the operation's time, such as \"1.5 ms\"",
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
    fn a_calibrated_file_of_two_thousand_entries_is_read_whole() {
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
                             when = {{ group = \"{group}\", session = \"{session}\", chain_length = {chain} }}\n"
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
