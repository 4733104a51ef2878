// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A library's recipes: which calls of cryptography it makes for each TLS message, and how many
//! instructions it executes beside them. Together with a device's figures of these calls they give
//! what a message costs there, see [`super::lowering`]. `profiles/recipes/README.md` says what
//! each key means.

use std::collections::BTreeMap;

use toml::Value;

use super::condition::{Choice, Condition};
use super::figure::{Provenance, non_empty};
use super::heading::heading;
use crate::case::Tls;
use crate::error::Error;
use crate::operation::Operation;
use crate::primitive::{Cipher, HashAlgorithm, Primitive, SignatureAlgorithm};
use crate::reader::{Mistakes, Section, integer};

/// What no message of TLS needs more of, so that a slip of the keys gives a mistake and no number:
/// calls, bytes, bytes for each byte, instructions, instructions for each byte.
const MOST_CALLS: u64 = 10_000;
const MOST_BYTES: f64 = 1e8;
const MOST_BYTES_PER_BYTE: f64 = 1e4;
const MOST_INSTRUCTIONS: f64 = 1e12;
const MOST_INSTRUCTIONS_PER_BYTE: f64 = 1e6;
/// Recipes of a file, and calls of a recipe.
const MOST_RECIPES: usize = 2_000;
const MOST_KINDS_OF_CALLS: usize = 100;

/// A library's recipes.
#[derive(Clone, Debug)]
pub struct RecipeProfile {
    /// Its name, the file's without ending.
    pub name: String,
    /// The file it was read from, for errors.
    pub file: String,
    /// Which library it is of.
    pub description: String,
    /// The plaintext that a record holds at most, B.
    pub(super) record_bytes: u32,
    pub(super) recipes: BTreeMap<Operation, Vec<Recipe>>,
    /// What primitives take in the library's own code, where a device has no figure of them.
    pub(super) primitives: BTreeMap<Primitive, InstructionCount>,
}

/// What a message takes, and the conditions under which that holds.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) when: Condition,
    pub(super) calls: Vec<RecipeCall>,
    /// Outside of the calls.
    pub(super) instructions: InstructionCount,
    pub(super) provenance: Provenance,
    /// As reports show it; made once, since every case's inputs have it.
    pub(super) shown: String,
}

/// Instructions of the library's own code.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct InstructionCount {
    pub(super) fixed: f64,
    pub(super) per_byte: f64,
}

/// Calls of one kind that a message takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RecipeCall {
    pub(super) called: Called,
    /// Calls of each message, and for each certificate and record of it.
    pub(super) count: u32,
    pub(super) per_certificate: u32,
    pub(super) per_record: u32,
    /// Bytes of each call, whatever the message.
    pub(super) bytes: f64,
    /// Bytes over all calls for each byte of the message.
    pub(super) per_message_byte: f64,
}

/// A primitive, or a family of them whose member follows from the case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Called {
    Exactly(Primitive),
    Family(Family),
}

/// Primitives of which a case's choices give one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    EcdhKeygen,
    EcdhDerive,
    Sign,
    Verify,
    Hash,
    Hmac,
    Hkdf,
    Prf,
    Seal,
    Open,
}

/// How many calls a message takes, and of how many bytes together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CallCount {
    pub(super) primitive: Primitive,
    pub(super) calls: u32,
    pub(super) bytes: f64,
}

impl RecipeProfile {
    /// Reads a profile; `file` is the name to give in errors.
    pub fn parse(name: &str, text: &str, file: &str) -> Result<RecipeProfile, Error> {
        let mistakes = Mistakes::new(file);
        let profile = mistakes.parse(text).and_then(|table| read(name, &table, file, &mistakes));
        mistakes.first_or(profile)
    }

    /// The operations that it has recipes for, in order.
    pub fn operations(&self) -> impl Iterator<Item = Operation> + '_ {
        self.recipes.keys().copied()
    }
}

impl Recipe {
    /// The calls that a message of so many bytes takes; none is without a call and a byte.
    pub(super) fn counts(
        &self,
        tls: &Tls,
        record_bytes: u32,
        message_bytes: u32,
    ) -> impl Iterator<Item = CallCount> + '_ {
        let certificates = u32::from(tls.chain_length);
        let records = message_bytes.div_ceil(record_bytes).max(1);
        let tls = tls.clone_choices();
        self.calls.iter().filter_map(move |call| {
            let calls = u64::from(call.count)
                + u64::from(call.per_certificate) * u64::from(certificates)
                + u64::from(call.per_record) * u64::from(records);
            let calls = u32::try_from(calls).unwrap_or(u32::MAX);
            let bytes =
                call.bytes * f64::from(calls) + call.per_message_byte * f64::from(message_bytes);
            let primitive = call.called.of(&tls);
            (calls > 0 || bytes > 0.0).then_some(CallCount { primitive, calls, bytes })
        })
    }

    /// `2 verify, 3 hash of 40 B and the message; 21000 instructions and 3.2 a byte`
    fn described(&self) -> String {
        let calls: Vec<String> = self.calls.iter().map(RecipeCall::shown).collect();
        let mut text = calls.join(", ");
        if self.instructions.fixed > 0.0 || self.instructions.per_byte > 0.0 {
            let separator = if text.is_empty() { "" } else { "; " };
            text = format!("{text}{separator}{} instructions", self.instructions.fixed);
            if self.instructions.per_byte > 0.0 {
                text = format!("{text} and {} a byte", self.instructions.per_byte);
            }
        }
        if text.is_empty() { "nothing".into() } else { text }
    }
}

impl RecipeCall {
    fn shown(&self) -> String {
        let counts = [
            (self.count, ""),
            (self.per_certificate, " a certificate"),
            (self.per_record, " a record"),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, of)| format!("{count}{of}"))
            .collect();
        let mut text = match counts.len() {
            0 => self.called.name(),
            _ => format!("{} {}", counts.join(" and "), self.called.name()),
        };
        let of_message = match self.per_message_byte {
            0.0 => String::new(),
            1.0 => "the message".to_owned(),
            bytes => format!("{bytes} times the message"),
        };
        match (self.bytes > 0.0, of_message.is_empty()) {
            (true, true) => text = format!("{text} of {} B", self.bytes),
            (true, false) => text = format!("{text} of {} B and {of_message}", self.bytes),
            (false, true) => {}
            (false, false) => text = format!("{text} of {of_message}"),
        }
        text
    }
}

impl Called {
    pub(super) fn of(self, tls: &TlsChoices) -> Primitive {
        let family = match self {
            Called::Exactly(primitive) => return primitive,
            Called::Family(family) => family,
        };
        match family {
            Family::EcdhKeygen => Primitive::EcdhKeygen(tls.group),
            Family::EcdhDerive => Primitive::EcdhDerive(tls.group),
            Family::Sign => Primitive::Sign(tls.signature),
            Family::Verify => Primitive::Verify(tls.signature),
            Family::Hash => Primitive::Hash(tls.hash),
            Family::Hmac => Primitive::Hmac(tls.hash),
            Family::Hkdf => Primitive::Hkdf(tls.hash),
            Family::Prf => Primitive::Prf(tls.hash),
            Family::Seal => Primitive::Seal(tls.cipher),
            Family::Open => Primitive::Open(tls.cipher),
        }
    }

    fn name(self) -> String {
        match self {
            Called::Exactly(primitive) => primitive.to_string(),
            Called::Family(family) => family.name().into(),
        }
    }

    fn read(value: &Value) -> Result<Called, String> {
        let text = value.as_str().unwrap_or_default();
        if let Some(family) = Family::ALL.into_iter().find(|family| family.name() == text) {
            return Ok(Called::Family(family));
        }
        match text.parse::<Primitive>() {
            Ok(Primitive::Instruction) => {
                Err("expected a call: state instructions = beside the operation".into())
            }
            Ok(primitive) => Ok(Called::Exactly(primitive)),
            Err(expected) => {
                let families = Family::ALL.map(Family::name).join(", ");
                Err(format!("{expected}, or a family whose algorithm the case gives: {families}"))
            }
        }
    }
}

impl Family {
    const ALL: [Family; 10] = [
        Family::EcdhKeygen,
        Family::EcdhDerive,
        Family::Sign,
        Family::Verify,
        Family::Hash,
        Family::Hmac,
        Family::Hkdf,
        Family::Prf,
        Family::Seal,
        Family::Open,
    ];

    const fn name(self) -> &'static str {
        match self {
            Family::EcdhKeygen => "ecdh.keygen",
            Family::EcdhDerive => "ecdh.derive",
            Family::Sign => "sign",
            Family::Verify => "verify",
            Family::Hash => "hash",
            Family::Hmac => "hmac",
            Family::Hkdf => "hkdf",
            Family::Prf => "prf",
            Family::Seal => "aead.seal",
            Family::Open => "aead.open",
        }
    }
}

/// What of a case's TLS gives a family's member.
#[derive(Clone, Copy, Debug)]
pub(super) struct TlsChoices {
    group: crate::case::Group,
    signature: SignatureAlgorithm,
    hash: HashAlgorithm,
    cipher: Cipher,
}

impl Tls {
    pub(super) fn clone_choices(&self) -> TlsChoices {
        let aead = self.cipher_suite.aead();
        TlsChoices {
            group: self.group,
            signature: SignatureAlgorithm::Certificate(self.certificate),
            hash: HashAlgorithm::of_suite(aead),
            cipher: Cipher::Tls(aead),
        }
    }
}

fn read(
    name: &str,
    table: &toml::Table,
    file: &str,
    mistakes: &Mistakes<'_>,
) -> Option<RecipeProfile> {
    let root = Section::root(table, mistakes);
    let description = heading(&root, name);
    let around = Provenance::read(&root, &Provenance::NONE);
    // RFC 8446 section 5.1 and RFC 5246 section 6.2.1: 2^14 B.
    let record_bytes =
        root.read("record_bytes", |value| integer(value, 64..=16_384)).unwrap_or(16_384);
    let mut recipes: BTreeMap<Operation, Vec<Recipe>> = BTreeMap::new();
    let sections = root.sections("recipe");
    if sections.len() > MOST_RECIPES {
        root.refuse(
            "recipe",
            format!("is a list of {}: expected {MOST_RECIPES} at most", sections.len()),
        );
        return None;
    }
    for section in sections {
        let Some((operation, recipe)) = read_recipe(&section, &around) else { continue };
        let others = recipes.entry(operation).or_default();
        if others.iter().any(|other| other.when == recipe.when) {
            let message = format!("is {operation} under the same conditions again");
            section.refuse("operation", message);
        }
        others.push(recipe);
    }
    let mut primitives = BTreeMap::new();
    for section in root.sections("primitive") {
        let primitive =
            section.read("name", |value| value.as_str().unwrap_or_default().parse::<Primitive>());
        if section.table.get("name").is_none() {
            section.refuse("name", "is missing: expected a primitive such as \"x509.parse\"");
        }
        let instructions = read_instructions(&section);
        section.get("note");
        section.refuse_unknown();
        let (Some(primitive), Some(instructions)) = (primitive, instructions) else { continue };
        if primitive == Primitive::Instruction {
            section.refuse("name", "is \"instruction\": its time is a device's");
        } else if primitives.insert(primitive, instructions).is_some() {
            section.refuse("name", format!("is {primitive} again"));
        }
    }
    root.refuse_unknown();
    if recipes.is_empty() && !mistakes.any() {
        root.refuse("recipe", "is missing: state what messages take in [[recipe]]");
    }
    (!mistakes.any()).then(|| RecipeProfile {
        name: name.into(),
        file: file.into(),
        description,
        record_bytes: record_bytes as u32,
        recipes,
        primitives,
    })
}

fn read_recipe(section: &Section<'_>, around: &Provenance) -> Option<(Operation, Recipe)> {
    let operation = section.read("operation", |value| {
        let operation: Operation = value.as_str().unwrap_or_default().parse()?;
        match operation {
            Operation::Tls(..) | Operation::Sign(_) => Ok(operation),
            _ => Err("expected a message of TLS or a signature: others have no recipes".into()),
        }
    });
    if section.table.get("operation").is_none() {
        let expected = "is missing: expected an operation such as \"client.send.ClientHello\"";
        section.refuse("operation", expected);
    }
    let when = match section.get("when") {
        None => Some(Condition::ALWAYS),
        Some(_) => section.section("when").map(|when| Condition::read(&when)),
    };
    let instructions = read_instructions(section);
    let sections = section.sections("call");
    if sections.len() > MOST_KINDS_OF_CALLS {
        let message =
            format!("is a list of {}: expected {MOST_KINDS_OF_CALLS} at most", sections.len());
        section.refuse("call", message);
        return None;
    }
    let calls = sections.iter().filter_map(read_call).collect();
    let provenance = Provenance::read(section, around);
    section.read("note", non_empty);
    section.refuse_unknown();
    let (operation, when) = (operation?, when?);
    // The messages of both versions that share a name are made in other ways.
    if operation.is_of_both_versions() && !when.says(Choice::Tls) {
        section.refuse(
            "when",
            format!(
                "says nothing of tls, on which {operation} depends: add when = \
                 {{ tls = \"1.3\" }}, or [\"1.2\", \"1.3\"] if it is the same in both"
            ),
        );
    }
    let instructions = instructions?;
    let mut recipe = Recipe { when, calls, instructions, provenance, shown: String::new() };
    recipe.shown = recipe.described();
    Some((operation, recipe))
}

fn read_instructions(section: &Section<'_>) -> Option<InstructionCount> {
    let most = MOST_INSTRUCTIONS;
    let fixed = section.read("instructions", |value| number(value, most)).unwrap_or(0.0);
    let most = MOST_INSTRUCTIONS_PER_BYTE;
    let per_byte =
        section.read("instructions_per_byte", |value| number(value, most)).unwrap_or(0.0);
    Some(InstructionCount { fixed, per_byte })
}

fn read_call(section: &Section<'_>) -> Option<RecipeCall> {
    let called = section.read("primitive", Called::read);
    if section.table.get("primitive").is_none() {
        let expected = "is missing: expected a primitive such as \"verify\" or \"hash.sha-256\"";
        section.refuse("primitive", expected);
    }
    let count = |key| {
        section.read(key, |value| integer(value, 0..=MOST_CALLS)).map_or(0, |count| count as u32)
    };
    let call = RecipeCall {
        called: called?,
        count: count("count"),
        per_certificate: count("per_certificate"),
        per_record: count("per_record"),
        bytes: section.read("bytes", |value| number(value, MOST_BYTES)).unwrap_or(0.0),
        per_message_byte: section
            .read("per_message_byte", |value| number(value, MOST_BYTES_PER_BYTE))
            .unwrap_or(0.0),
    };
    section.read("note", non_empty);
    section.refuse_unknown();
    let never = call.count == 0 && call.per_certificate == 0 && call.per_record == 0;
    if never && call.per_message_byte == 0.0 {
        section.refuse("count", "is missing: expected how many calls a message takes, such as 1");
    }
    Some(call)
}

/// A number from 0 to `most`.
fn number(value: &Value, most: f64) -> Result<f64, String> {
    let number = match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    };
    number
        .filter(|number| (0.0..=most).contains(number))
        // Adding zero turns -0.0, which prints differently, into 0.0.
        .map(|number| number + 0.0)
        .ok_or_else(|| format!("expected a number from 0 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<RecipeProfile, String> {
        let text = format!("name = \"lib-1\"\ndescription = \"a library\"\n{body}");
        RecipeProfile::parse("lib-1", &text, "lib-1.toml").map_err(|error| error.to_string())
    }

    fn recipe(keys: &str) -> String {
        format!("[[recipe]]\noperation = \"client.receive.EncryptedExtensions\"\n{keys}\n")
    }

    #[test]
    fn recipe_as_a_report_shows_it() {
        let text = recipe(
            "instructions = 21000\ninstructions_per_byte = 3.2\ncall = [{ primitive = \"verify\", \
             per_certificate = 1 }, { primitive = \"hash.sha-256\", count = 2, per_record = 1, \
             bytes = 40, per_message_byte = 0.5 }]",
        );
        let profile = parse(&text).unwrap();
        let shown = profile.recipes.values().flatten().next().unwrap().shown.clone();
        assert_eq!(
            shown,
            "1 a certificate verify, 2 and 1 a record hash.sha-256 of 40 B and 0.5 times the \
             message; 21000 instructions and 3.2 a byte"
        );
        assert_eq!(profile.operations().count(), 1);
        assert_eq!(
            parse(&recipe("")).unwrap().recipes.values().flatten().next().unwrap().shown.clone(),
            "nothing"
        );
    }

    #[test]
    fn mistakes_in_recipes() {
        let call = |keys: &str| recipe(&format!("[[recipe.call]]\n{keys}"));
        for (text, expected) in [
            (String::new(), "lib-1.toml: recipe is missing: state what messages take"),
            ("recipe = 3".into(), "lib-1.toml: recipe is 3: expected [[tables]]"),
            (
                "[[recipe]]\noperation = \"client.recieve.Finished\"".into(),
                "recipe[0].operation is \"client.recieve.Finished\": expected an operation; did \
                 you mean \"client.receive.Finished\"?",
            ),
            (
                "[[recipe]]\noperation = \"client.system.wake\"".into(),
                "expected a message of TLS or a signature: others have no recipes",
            ),
            ("[[recipe]]\n".into(), "recipe[0].operation is missing"),
            (
                "[[recipe]]\noperation = \"client.send.Finished\"".into(),
                "recipe[0].when says nothing of tls, on which client.send.Finished depends: add \
                 when = { tls = \"1.3\" }",
            ),
            (
                recipe("").repeat(2),
                "recipe[1].operation is client.receive.EncryptedExtensions under",
            ),
            (recipe("instructions = -1"), "instructions is -1: expected a number from 0 to"),
            (recipe("instructions = 1e300"), "expected a number from 0 to 1000000000000"),
            (recipe("instructions = nan"), "expected a number from 0 to"),
            (recipe("instructions_per_byte = \"3\""), "expected a number from 0 to 1000000"),
            (recipe("cycles = 3"), "cycles is unknown"),
            (call("count = 1"), "recipe[0].call[0].primitive is missing"),
            (
                call("primitive = \"verfy\"\ncount = 1"),
                "or a family whose algorithm the case gives: ecdh.keygen,",
            ),
            (call("primitive = \"instruction\"\ncount = 1"), "state instructions = beside"),
            (call("primitive = \"verify\""), "count is missing: expected how many calls"),
            (call("primitive = \"verify\"\nbytes = 3"), "count is missing"),
            (call("primitive = \"verify\"\ncount = 1.5"), "count is 1.5: expected a whole number"),
            (
                call("primitive = \"verify\"\ncount = 99999999999"),
                "count is 99999999999: expected a whole number from 0 to 10000",
            ),
            (call("primitive = \"hash\"\ncount = 1\nbytes = 1e9"), "expected a number from 0 to"),
            (call("primitive = \"hash\"\nper_message_byte = -0.5"), "expected a number from 0 to"),
            (
                call("primitive = \"hash\"\ncount = 1\nper_certficate = 1"),
                "did you mean per_certificate?",
            ),
            (
                format!("{}[[primitive]]\nname = \"instruction\"\n", recipe("")),
                "primitive[0].name is \"instruction\": its time is a device's",
            ),
            (
                format!("{0}{1}{1}", recipe(""), "[[primitive]]\nname = \"random\"\n"),
                "primitive[1].name is random again",
            ),
            (format!("record_bytes = 0\n{}", recipe("")), "record_bytes is 0: expected a whole"),
            (
                recipe(&format!("call = [{}]", "{ primitive = \"hash\", count = 1 },".repeat(101))),
                "call is a list of 101: expected 100 at most",
            ),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.starts_with("lib-1.toml: ") && error.contains(expected), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }
}
