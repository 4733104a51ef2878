// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that describe a chip. They may come from anyone: every size is bounded, unknown keys are
//! refused, and an error names the key and the fix.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Unexpected, Visitor};

use super::Chip;
use crate::flash::{Kept, LineBuffers};
use crate::memory::{Alias, Region};
use crate::peripherals::{Peripheral, Register, Uart, UartKind};
use crate::ports;

/// Bytes of a file at most.
const MAX_FILE: usize = 1 << 20;
/// Entries of each kind at most.
const MAX_ENTRIES: usize = 64;
/// Registers of a peripheral that differ at most.
const MAX_REGISTERS: usize = 1024;
/// Bytes of all memories at most.
const MAX_MEMORY: u64 = 256 << 20;
/// Bytes of a peripheral that keeps what is written at most; others need no memory.
const MAX_KEPT: u32 = 1 << 20;
/// Lines that a flash keeps at most.
const MAX_LINES: usize = 1024;

/// Why a chip's file is invalid: the key, and what is expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ChipError(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    name: String,
    source: String,
    priority_bits: Whole,
    vector_table: Whole,
    memory: Vec<MemoryEntry>,
    #[serde(default)]
    alias: Vec<AliasEntry>,
    #[serde(default)]
    peripheral: Vec<PeripheralEntry>,
    #[serde(default)]
    uart: Vec<UartEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table [[memory]]")]
struct MemoryEntry {
    name: String,
    address: Whole,
    bytes: Bytes,
    writable: bool,
    lines: Option<LinesEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(expecting = "{ bytes = 8, code = 2, data = 0, prefetch = true } or the like")]
struct LinesEntry {
    bytes: Whole,
    code: Option<Whole>,
    data: Option<Whole>,
    shared: Option<Whole>,
    prefetch: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table [[alias]]")]
struct AliasEntry {
    name: String,
    address: Whole,
    of: Whole,
    bytes: Bytes,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Writes {
    #[default]
    Kept,
    Ignored,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table [[peripheral]]")]
struct PeripheralEntry {
    name: String,
    address: Whole,
    bytes: Bytes,
    #[serde(default)]
    reads: Whole,
    writes: Writes,
    #[serde(default)]
    register: Vec<RegisterEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(expecting = "a table [[peripheral.register]]")]
struct RegisterEntry {
    name: String,
    offset: Whole,
    #[serde(default)]
    reads: Whole,
    #[serde(default)]
    writes: Writes,
    #[serde(default)]
    follows: BTreeMap<String, Whole>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table [[uart]]")]
struct UartEntry {
    name: String,
    address: Whole,
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    CmsdkApb,
}

/// A whole number; addresses have 32 bits.
#[derive(Clone, Copy, Default)]
struct Whole(u32);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Whole;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number from 0 to 0xffffffff, without quotes")
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Whole, E> {
                u32::try_from(value)
                    .map(Whole)
                    .map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
            }
        }
        deserializer.deserialize_any(Number).map_err(D::Error::custom)
    }
}

/// What serde calls the parts of a file, and what they are called in TOML.
const WORDS: [(&str, &str); 10] = [
    ("expected a sequence", "expected tables in double brackets, such as [[memory]]"),
    ("expected a map", "expected pairs of two bits, such as { 17 = 16 }"),
    ("expected a boolean", "expected true or false"),
    ("expected a string", "expected text in quotes"),
    ("invalid type: map", "invalid type: table"),
    ("invalid type: sequence", "invalid type: array"),
    ("missing field", "missing key"),
    ("unknown field", "unknown key"),
    ("unknown variant", "unknown word"),
    ("wanted string or table", "invalid type: expected a word in quotes"),
];

/// A parser's message in the file's terms, with its line and, for a value, its key.
fn explained(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or_default();
    let line = 1 + before.matches('\n').count();
    let mut message = error.message().trim().replace('\n', ", ");
    for (serde, ours) in WORDS {
        message = message.replace(serde, ours);
    }
    let is_key = |key: &&str| {
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let of_value = message.starts_with("invalid") || message.starts_with("unknown word");
    let key = text.lines().nth(line - 1).and_then(|whole| whole.split_once('='));
    match key.map(|(key, _)| key.trim()).filter(is_key).filter(|_| of_value) {
        Some(key) => format!("line {line}: {key}: {message}"),
        None => format!("line {line}: {message}"),
    }
}

/// A number of bytes, or one with its unit: `"64 KiB"`.
#[derive(Clone, Copy)]
struct Bytes(u32);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes such as 65536, or \"64 KiB\"")
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Bytes, E> {
                u32::try_from(value).map(Bytes).map_err(|_| {
                    E::custom(format!("{value} is not a size: expected 4 to 4294967295 bytes"))
                })
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bytes, E> {
                let expected = || E::custom(format!("\"{text}\" is not a size: write \"64 KiB\""));
                let (number, unit) = text.split_once(' ').ok_or_else(expected)?;
                let scale = match unit {
                    "B" => 1u32,
                    "KiB" => 1 << 10,
                    "MiB" => 1 << 20,
                    _ => return Err(expected()),
                };
                let number = number.parse::<u32>().map_err(|_| expected())?;
                number.checked_mul(scale).map(Bytes).ok_or_else(expected)
            }
        }
        deserializer.deserialize_any(Either).map_err(D::Error::custom)
    }
}

impl Chip {
    /// Reads a chip's file.
    ///
    /// # Errors
    /// [`ChipError`], in one line, if it is not valid.
    pub fn parse(text: &str) -> Result<Chip, ChipError> {
        if text.len() > MAX_FILE {
            return wrong(format!("has {} bytes: expected {MAX_FILE} at most", text.len()));
        }
        let file: File =
            toml::from_str(text).map_err(|error| ChipError(explained(text, &error)))?;
        file.checked()
    }
}

fn wrong<T>(message: String) -> Result<T, ChipError> {
    Err(ChipError(message))
}

impl File {
    fn checked(self) -> Result<Chip, ChipError> {
        named("name", &self.name)?;
        if !(1..=8).contains(&self.priority_bits.0) {
            return wrong(format!(
                "priority-bits is {}: expected 1 to 8 (3 or more on a Cortex-M3)",
                self.priority_bits.0
            ));
        }
        let counts = [
            ("memory", self.memory.len()),
            ("alias", self.alias.len()),
            ("peripheral", self.peripheral.len()),
            ("uart", self.uart.len()),
        ];
        for (key, count) in counts {
            let most = if key == "memory" { 16 } else { MAX_ENTRIES };
            if count > most {
                return wrong(format!("[[{key}]] is given {count} times: expected {most} at most"));
            }
        }
        let mut taken = Taken::default();
        let regions = self.regions(&mut taken)?;
        let aliases = self.aliases(&regions, &mut taken)?;
        let peripherals = self.peripherals(&mut taken)?;
        let uarts = self.uarts(&mut taken)?;
        let table = self.vector_table.0;
        let holds = |base: u32, bytes: u32| table.wrapping_sub(base) < bytes;
        let in_memory = regions.iter().any(|region| holds(region.base, region.bytes))
            || aliases.iter().any(|alias| holds(alias.base, alias.bytes));
        if !in_memory || !table.is_multiple_of(128) {
            return wrong(format!(
                "vector-table is {table:#x}: expected an address in a memory, a multiple of 128"
            ));
        }
        if !regions.iter().any(|region| region.writable) {
            return wrong("memory: none is writable: add RAM for the stack".to_owned());
        }
        Ok(Chip {
            name: self.name,
            source: self.source,
            regions,
            aliases,
            peripherals,
            uarts,
            priority_mask: !(0xff_u32 >> self.priority_bits.0) as u8,
            vector_table: self.vector_table.0,
        })
    }

    fn regions(&self, taken: &mut Taken) -> Result<Vec<Region>, ChipError> {
        let mut total = 0;
        let mut regions = Vec::new();
        for entry in &self.memory {
            taken.take("memory", &entry.name, entry.address.0, entry.bytes.0)?;
            total += u64::from(entry.bytes.0);
            if total > MAX_MEMORY {
                return wrong(format!(
                    "memory {}: all memories have more than {MAX_MEMORY} bytes: make them smaller",
                    entry.name
                ));
            }
            let lines = entry.lines.as_ref().map(|lines| lines.checked(&entry.name)).transpose()?;
            regions.push(Region {
                name: entry.name.clone(),
                base: entry.address.0,
                bytes: entry.bytes.0,
                writable: entry.writable,
                wait_states: 0,
                lines,
            });
        }
        Ok(regions)
    }

    fn aliases(&self, regions: &[Region], taken: &mut Taken) -> Result<Vec<Alias>, ChipError> {
        let mut aliases = Vec::new();
        for entry in &self.alias {
            let bytes = entry.bytes.0;
            taken.take("alias", &entry.name, entry.address.0, bytes)?;
            let within = |region: &Region| {
                let offset = entry.of.0.wrapping_sub(region.base);
                offset < region.bytes && bytes <= region.bytes - offset
            };
            if !regions.iter().any(within) {
                return wrong(format!(
                    "alias {}: of is {:#x}: expected an address in a memory that has {bytes} bytes \
                     from there on",
                    entry.name, entry.of.0
                ));
            }
            aliases.push(Alias { base: entry.address.0, of: entry.of.0, bytes });
        }
        Ok(aliases)
    }

    fn peripherals(&self, taken: &mut Taken) -> Result<Vec<Peripheral>, ChipError> {
        let mut peripherals = Vec::new();
        for entry in &self.peripheral {
            let (name, bytes) = (&entry.name, entry.bytes.0);
            taken.take("peripheral", name, entry.address.0, bytes)?;
            let keeps = entry.writes == Writes::Kept;
            if keeps && bytes > MAX_KEPT {
                return wrong(format!(
                    "peripheral {name}: bytes is {bytes}: expected {MAX_KEPT} at most with writes \
                     = \"kept\"; use \"ignored\" for more"
                ));
            }
            if entry.register.len() > MAX_REGISTERS {
                return wrong(format!(
                    "peripheral {name}: has {} registers: expected {MAX_REGISTERS} at most",
                    entry.register.len()
                ));
            }
            let mut registers = BTreeMap::new();
            for register in &entry.register {
                let (offset, checked) = register.checked(name, bytes)?;
                if registers.insert(offset, checked).is_some() {
                    return wrong(format!(
                        "peripheral {name}: register {}: another one has offset {offset:#x}: \
                         remove one",
                        register.name
                    ));
                }
            }
            peripherals.push(Peripheral {
                name: name.clone(),
                base: entry.address.0,
                bytes,
                reads: entry.reads.0,
                keeps,
                registers,
            });
        }
        Ok(peripherals)
    }

    fn uarts(&self, taken: &mut Taken) -> Result<Vec<Uart>, ChipError> {
        let mut uarts = Vec::new();
        for entry in &self.uart {
            let kind = match entry.kind {
                Kind::CmsdkApb => UartKind::CmsdkApb,
            };
            taken.take("uart", &entry.name, entry.address.0, kind.bytes())?;
            uarts.push(Uart { name: entry.name.clone(), base: entry.address.0, kind });
        }
        Ok(uarts)
    }
}

impl LinesEntry {
    fn checked(&self, memory: &str) -> Result<LineBuffers, ChipError> {
        let expected = |key: &str, value: &dyn fmt::Display, expected: &str| {
            wrong(format!("memory {memory}: lines.{key} is {value}: expected {expected}"))
        };
        let bytes = self.bytes.0;
        if !bytes.is_power_of_two() || !(4..=256).contains(&bytes) {
            return expected("bytes", &bytes, "4, 8, 16, 32, 64, 128 or 256");
        }
        let lines = |of: Option<Whole>| of.map(|Whole(lines)| lines as usize);
        let (code, data) = match (lines(self.code), lines(self.data), lines(self.shared)) {
            (None, None, Some(shared)) => (shared, Kept::Shared),
            (Some(code), data, None) => (code, Kept::Own(data.unwrap_or(0))),
            _ => {
                return wrong(format!(
                    "memory {memory}: lines: expected either shared, or code and data"
                ));
            }
        };
        if !(1..=MAX_LINES).contains(&code) {
            let key = if data == Kept::Shared { "shared" } else { "code" };
            return expected(key, &code, "1 to 1024 lines");
        }
        if let Kept::Own(data) = data
            && data > MAX_LINES
        {
            return expected("data", &data, "0 to 1024 lines");
        }
        Ok(LineBuffers { line_bytes: bytes, code, data, prefetch: self.prefetch })
    }
}

impl RegisterEntry {
    fn checked(&self, peripheral: &str, bytes: u32) -> Result<(u32, Register), ChipError> {
        let place = format!("peripheral {peripheral}: register {}", self.name);
        named(&place, &self.name)?;
        if !self.offset.0.is_multiple_of(4) || self.offset.0 >= bytes {
            return wrong(format!(
                "{place}: offset is {:#x}: expected a multiple of 4 below {bytes:#x}",
                self.offset.0
            ));
        }
        let mut follows = Vec::new();
        for (ready, Whole(enable)) in &self.follows {
            let ready = ready.parse::<u8>().ok().filter(|bit| *bit < 32);
            match (ready, enable) {
                (Some(ready), 0..32) if u32::from(ready) != *enable => {
                    follows.push((ready, *enable as u8))
                }
                _ => {
                    return wrong(format!(
                        "{place}: follows: expected pairs of two bits from 0 to 31, such as {{ 17 \
                         = 16 }}"
                    ));
                }
            }
        }
        let keeps = self.writes == Writes::Kept;
        Ok((self.offset.0, Register { reads: self.reads.0, keeps, follows }))
    }
}

/// What is already at which addresses.
#[derive(Default)]
struct Taken {
    ranges: Vec<(u32, u32, String)>,
}

impl Taken {
    fn take(&mut self, key: &str, name: &str, base: u32, bytes: u32) -> Result<(), ChipError> {
        named(key, name)?;
        let place = format!("{key} {name}");
        if !base.is_multiple_of(4) {
            return wrong(format!("{place}: address is {base:#x}: expected a multiple of 4"));
        }
        if bytes == 0 || !bytes.is_multiple_of(4) {
            return wrong(format!("{place}: bytes is {bytes}: expected a multiple of 4, not 0"));
        }
        let Some(last) = base.checked_add(bytes - 1) else {
            return wrong(format!(
                "{place}: ends beyond 0xffffffff: change its address or its bytes"
            ));
        };
        let reserved = [
            (0xe000_0000, 0xe00f_ffff, "the private peripheral bus".to_owned()),
            (ports::BASE, ports::BASE + 0xfff, "the simulator's ports".to_owned()),
        ];
        let others = self.ranges.iter().chain(&reserved);
        for (first, end, other) in others {
            if base <= *end && *first <= last {
                return wrong(format!(
                    "{place} and {other} overlap: change the address or the bytes of one"
                ));
            }
            if *other == place {
                return wrong(format!("{place}: is given twice: rename one"));
            }
        }
        self.ranges.push((base, last, place));
        Ok(())
    }
}

/// Refuses names that would not be one word in a message or a linker script.
fn named(key: &str, name: &str) -> Result<(), ChipError> {
    let known = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || name.len() > 64 || !name.chars().all(known) {
        let shown: String = name.chars().take(64).collect();
        return wrong(format!(
            "{key}: the name {shown:?} is not valid: expected 1 to 64 letters, digits, hyphens, \
             underscores and dots"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::Memory;

    const GOOD: &str = r#"
name = "board"
source = "its data sheet"
priority-bits = 4
vector-table = 0x08000000
[[memory]]
name = "flash"
address = 0x08000000
bytes = "64 KiB"
writable = false
lines = { bytes = 8, code = 2, data = 0, prefetch = true }
[[memory]]
name = "ram"
address = 0x20000000
bytes = 8192
writable = true
[[alias]]
name = "boot"
address = 0
of = 0x08000000
bytes = "64 KiB"
[[peripheral]]
name = "clock"
address = 0x40000000
bytes = 16
reads = 3
writes = "ignored"
[[peripheral.register]]
name = "CR"
offset = 4
follows = { 17 = 16 }
[[uart]]
name = "console"
address = 0x40004000
kind = "cmsdk-apb"
"#;

    #[test]
    fn file_gives_the_chip() {
        let chip = Chip::parse(GOOD).expect("valid");
        assert_eq!((chip.name.as_str(), chip.priority_mask), ("board", 0xf0));
        assert_eq!(chip.regions[0].bytes, 65_536);
        let lines = LineBuffers { line_bytes: 8, code: 2, data: Kept::Own(0), prefetch: true };
        assert_eq!(chip.regions[0].lines, Some(lines));
        assert_eq!(chip.aliases, [Alias { base: 0, of: 0x0800_0000, bytes: 65_536 }]);
        let clock = &chip.peripherals[0];
        assert_eq!((clock.reads, clock.keeps), (3, false));
        let control = Register { reads: 0, keeps: true, follows: vec![(17, 16)] };
        assert_eq!(clock.registers, BTreeMap::from([(4, control)]));
        assert_eq!(chip.uarts[0].base, 0x4000_4000);
    }

    #[test]
    fn invalid_files_name_key_and_fix() {
        for (from, to, words) in [
            ("name = \"board\"", "name = \"a b\"", "name: the name \"a b\" is not valid"),
            ("name = \"board\"", "nmae = \"board\"", "line 2: unknown key `nmae`, expected one"),
            ("priority-bits = 4", "priority-bits = 9", "priority-bits is 9: expected 1 to 8"),
            ("priority-bits = 4", "", "missing key `priority-bits`"),
            (
                "priority-bits = 4",
                "priority-bits = -1",
                "line 4: priority-bits: invalid value: integer `-1`",
            ),
            ("vector-table = 0x0", "vector-table = 0x3", "expected an address in a memory"),
            ("bytes = 8192", "bytes = 0", "memory ram: bytes is 0: expected a multiple of 4"),
            ("bytes = 8192", "bytes = -4", "line 15: -4 is not a size"),
            ("bytes = 8192", "bytes = \"8 KB\"", "\"8 KB\" is not a size: write \"64 KiB\""),
            ("bytes = 8192", "bytes = \"4096 MiB\"", "is not a size"),
            ("bytes = 8192", "bytes = \"512 MiB\"", "all memories have more than 268435456 bytes"),
            ("address = 0x20000000", "address = 0x20000001", "expected a multiple of 4"),
            ("address = 0x20000000", "address = 0xfffffffc", "ends beyond 0xffffffff"),
            ("address = 0x20000000", "address = 0xe0001000", "the private peripheral bus overlap"),
            ("address = 0x20000000", "address = 0xf0000000", "the simulator's ports overlap"),
            ("address = 0x20000000", "address = 0x0800fffc", "memory ram and memory flash overlap"),
            ("name = \"ram\"", "name = \"flash\"", "memory flash: is given twice: rename one"),
            ("writable = true", "writable = false", "none is writable: add RAM"),
            (
                "writable = true",
                "writable = 1",
                "line 16: writable: invalid type: integer `1`, expected true or false",
            ),
            (
                "address = 0\n",
                "address = \"0\"\n",
                "address: invalid type: string \"0\", expected a whole number from 0 to 0xffffffff",
            ),
            ("priority-bits = 4", "priority-bits = -4", "integer `-4`, expected a whole number"),
            ("code = 2,", "code = 1.5,", "lines: invalid type: floating point `1.5`, expected a w"),
            ("{ 17 = 16 }", "{ 17 = 300 }", "follows: expected pairs of two bits from 0 to 31"),
            ("{ 17 = 16 }", "5", "expected pairs of two bits, such as { 17 = 16 }"),
            ("[[uart]]", "[uart]", "expected tables in double brackets, such as [[memory]]"),
            ("lines = { bytes = 8,", "lines = { bytes = 12,", "lines.bytes is 12: expected 4, 8"),
            ("code = 2,", "code = 0,", "lines.code is 0: expected 1 to 1024"),
            ("code = 2,", "shared = 1,", "lines: expected either shared, or code and data"),
            ("data = 0,", "data = 2000,", "lines.data is 2000: expected 0 to 1024"),
            ("of = 0x08000000", "of = 0x08000004", "alias boot: of is 0x8000004: expected"),
            ("address = 0\n", "address = 0x2000\n", ""),
            ("offset = 4", "offset = 6", "register CR: offset is 0x6: expected a multiple of 4"),
            ("offset = 4", "offset = 16", "register CR: offset is 0x10: expected a multiple of 4"),
            ("{ 17 = 16 }", "{ 32 = 16 }", "follows: expected pairs of two bits from 0 to 31"),
            ("{ 17 = 16 }", "{ x = 16 }", "follows: expected pairs of two bits from 0 to 31"),
            ("{ 17 = 16 }", "{ 17 = 17 }", "follows: expected pairs of two bits from 0 to 31"),
            (
                "writes = \"ignored\"",
                "writes = \"lost\"",
                "writes: unknown word `lost`, expected `kept`",
            ),
            ("kind = \"cmsdk-apb\"", "kind = \"pl011\"", "kind: unknown word `pl011`"),
            ("[[uart]]", "[[uart]", "line 32:"),
        ] {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD, "{from}");
            match Chip::parse(&text) {
                Ok(_) => assert_eq!(words, "", "{to} is accepted"),
                Err(ChipError(error)) => {
                    assert!(!words.is_empty() && error.contains(words), "{to}: {error}");
                    assert!(!error.contains('\n'), "{error}");
                }
            }
        }
    }

    #[test]
    fn entries_and_sizes_are_bounded() {
        let entry = |index: usize| {
            let (name, address) = (format!("more{index}"), 0x3000_0000 + 0x100 * index);
            format!(
                "[[memory]]\nname = \"{name}\"\naddress = {address}\nbytes = 4\nwritable = true\n"
            )
        };
        let many: String = (0..15).map(entry).collect();
        let error = Chip::parse(&format!("{GOOD}{many}")).expect_err("17 memories").to_string();
        assert_eq!(error, "[[memory]] is given 17 times: expected 16 at most");
        let kept = GOOD.replace(
            "bytes = 16\nreads = 3\nwrites = \"ignored\"",
            "bytes = 2097152\nwrites = \"kept\"",
        );
        let error = Chip::parse(&kept.replace("0x40004000", "0x50004000")).expect_err("too large");
        assert!(
            error.to_string().contains("bytes is 2097152: expected 1048576 at most"),
            "{error}"
        );
        let error = Chip::parse(&" ".repeat(MAX_FILE + 1)).expect_err("too long").to_string();
        assert_eq!(error, "has 1048577 bytes: expected 1048576 at most");
    }

    /// Whatever the text, there is a chip whose map is valid, or an error in one line.
    fn is_chip_or_one_line(text: &str) {
        match Chip::parse(text) {
            Ok(chip) => {
                Memory::with_aliases(&chip.regions, &chip.aliases).expect("a valid map");
            }
            Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error:?}"),
        }
    }

    proptest! {
        #[test]
        fn any_change_of_a_file_gives_a_chip_or_one_line(
            at in 0..GOOD.len(),
            removed in 0..40usize,
            added in prop_oneof![any::<String>(), "[-0-9a-fx=\"\\[\\]{}, \n]{0,12}"],
        ) {
            let end = (at + removed).min(GOOD.len());
            is_chip_or_one_line(&format!("{}{added}{}", &GOOD[..at], &GOOD[end..]));
        }
    }
}
