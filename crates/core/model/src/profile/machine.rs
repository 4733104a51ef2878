// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a device is made of: library, core, clock, memory. Nothing of it is a cost; the library
//! says whose recipes lower its messages to primitives, and the rest which devices are alike.

use std::fmt;
use std::str::FromStr;

use toml::Value;

use super::figure::{FigureOf, Figures, Input, Provenance};
use super::shown::{Show, Shown};
use crate::keyword::Keyword;
use crate::reader::{self, Section};
use crate::units::{ByteCount, UnitError};

/// What a device is made of; what its profile does not say is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The TLS library, by the name of its recipes in `profiles/recipes`.
    pub library: Option<String>,
    /// The core, by its maker's name in lower case: `cortex-m4`, `xtensa-lx6`, `rv32imc`.
    pub core: Option<String>,
    /// The core's clock.
    pub clock: Option<Hertz>,
    /// The kind of code that its public-key arithmetic is.
    pub code: Option<Code>,
    /// RAM of the device.
    pub ram: Option<ByteCount>,
    /// Flash of the device.
    pub flash: Option<ByteCount>,
    /// RAM that the stack takes, at its peak.
    pub stack_ram: Option<ByteCount>,
    /// Flash that the stack's code takes.
    pub stack_flash: Option<ByteCount>,
    /// All of these that are stated, with source and kind.
    pub figures: Vec<Input>,
}

/// A clock's frequency, Hz; never zero.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Hertz(pub f64);

/// What the public-key arithmetic is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// Assembly for this core.
    Assembly,
    /// Portable C.
    C,
    /// An accelerator.
    Hardware,
}

impl Machine {
    /// Reads what a device profile says of it.
    pub(super) fn read(name: &str, root: &Section<'_>, around: &Provenance) -> Machine {
        let of = FigureOf::Device;
        let mut figures = Figures::new(of, name, root, around);
        let mut machine = Machine {
            library: figures.read("library", "", word).map(|word| word.0),
            core: figures.read("core", "", word).map(|word| word.0),
            clock: figures.read("clock", "Hz", Hertz::read),
            code: figures.read("code", "", reader::keyword::<Code>),
            ram: figures.read("ram", "B", reader::size),
            flash: figures.read("flash", "B", reader::size),
            ..Machine::default()
        };
        machine.figures = figures.inputs;
        if let Some(stack) = root.section("stack_memory") {
            let around = Provenance::read(&stack, around);
            let mut figures = Figures::new(of, name, &stack, &around);
            machine.stack_ram = figures.read("ram", "B", reader::size);
            machine.stack_flash = figures.read("flash", "B", reader::size);
            stack.get("note");
            stack.refuse_unknown();
            let of_stack =
                |input: Input| Input { key: format!("stack_memory.{}", input.key), ..input };
            machine.figures.extend(figures.inputs.into_iter().map(of_stack));
        }
        machine
    }
}

impl Hertz {
    fn read(value: &Value) -> Result<Hertz, String> {
        value.as_str().unwrap_or_default().parse().map_err(|error: UnitError| error.0)
    }
}

impl FromStr for Hertz {
    type Err = UnitError;

    /// Reads `64 MHz`.
    fn from_str(text: &str) -> Result<Hertz, UnitError> {
        const UNITS: [(&str, f64); 4] = [("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)];
        let read = || {
            let (number, unit) = text.trim().split_once(' ')?;
            let &(_, scale) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
            let hertz = number.parse::<f64>().ok()? * scale;
            // No processor is slower than a watch's crystal, or faster than 100 GHz.
            (32e3..=1e11).contains(&hertz).then_some(Hertz(hertz))
        };
        read().ok_or_else(|| UnitError("expected a clock such as \"64 MHz\"".into()))
    }
}

impl fmt::Display for Hertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            hertz if hertz >= 1e9 => (1e9, "GHz"),
            hertz if hertz >= 1e6 => (1e6, "MHz"),
            _ => (1e3, "kHz"),
        };
        write!(f, "{} {unit}", self.0 / scale)
    }
}

/// A name as files and makers write them, in lower case.
struct Word(String);

fn word(value: &Value) -> Result<Word, String> {
    let text = value.as_str().unwrap_or_default();
    let allowed = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b'_')
    };
    if text.is_empty() || text.len() > 60 || !text.bytes().all(allowed) {
        return Err("expected a name in lower case such as \"mbedtls-3.6\" or \"cortex-m4\"".into());
    }
    Ok(Word(text.into()))
}

impl Show for Word {
    fn shown(&self, _: &str) -> Shown {
        Shown::word(self.0.as_str())
    }
}

impl Show for Code {
    fn shown(&self, _: &str) -> Shown {
        Shown::word(self.name())
    }
}

impl Show for Hertz {
    fn shown(&self, _: &str) -> Shown {
        Shown { text: self.to_string(), number: Some(self.0), last_digit: None }
    }
}

impl Show for ByteCount {
    fn shown(&self, _: &str) -> Shown {
        Shown { text: self.to_string(), number: Some(self.0 as f64), last_digit: None }
    }
}

#[cfg(test)]
mod tests {
    use crate::DeviceProfile;
    use crate::kind::Kind;

    use super::*;

    fn parse(text: &str) -> Result<DeviceProfile, String> {
        let text = format!(
            "name = \"d\"\ndescription = \"a device\"\n{text}\n[[primitive]]\nname = \"random\"\n\
             warm = \"1 us\"\n"
        );
        DeviceProfile::parse("d", &text, "d.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn machine_with_sources() {
        let text = "library = \"mbedtls-3.6\"\ncore = \"cortex-m4\"\nclock = \"64 MHz\"\n\
            code = \"c\"\nflash = \"1 MiB\"\n\
            ram = { value = \"256 KiB\", source = \"a data sheet\", kind = \"published\" }\n\
            [stack_memory]\nram = \"38 KiB\"\nsource = \"a paper\"\nkind = \"published\"\n";
        let machine = parse(text).unwrap().machine;
        assert_eq!(machine.library.as_deref(), Some("mbedtls-3.6"));
        assert_eq!((machine.clock, machine.code), (Some(Hertz(64e6)), Some(Code::C)));
        assert_eq!(machine.ram, Some(ByteCount(256 << 10)));
        assert_eq!((machine.stack_ram, machine.stack_flash), (Some(ByteCount(38 << 10)), None));
        let kind = |key: &str| {
            let found = machine.figures.iter().find(|figure| figure.key == key).unwrap();
            (found.value.text.clone(), found.kind)
        };
        assert_eq!(kind("clock"), ("64 MHz".into(), Kind::Assumed));
        assert_eq!(kind("ram"), ("256 KiB".into(), Kind::Published));
        assert_eq!(kind("stack_memory.ram"), ("38 KiB".into(), Kind::Published));
        assert_eq!(parse("").unwrap().machine, Machine::default());
    }

    #[test]
    fn mistakes_in_a_machine() {
        for (text, expected) in [
            ("clock = \"64MHz\"", "d.toml: clock is \"64MHz\": expected a clock such as"),
            ("clock = \"0 MHz\"", "expected a clock"),
            ("clock = \"inf GHz\"", "expected a clock"),
            ("core = \"Cortex M4\"", "d.toml: core is \"Cortex M4\": expected a name in lower"),
            ("library = 3", "d.toml: library is 3: expected a name in lower case"),
            ("code = \"C++\"", "expected one of \"assembly\", \"c\", \"hardware\""),
            ("ram = \"256 GB\"", "expected a size such as"),
            (
                "[stack_memory]\nrom = \"1 KiB\"",
                "d.toml: stack_memory.rom is unknown; did you mean ram?",
            ),
            ("cpu = \"m4\"", "cpu is unknown"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }

    #[test]
    fn instruction_is_finer_than_a_nanosecond() {
        let profile = |line: &str| {
            let text = format!(
                "name = \"d\"\ndescription = \"a device\"\n[[primitive]]\n\
                 name = \"instruction\"\n{line}"
            );
            DeviceProfile::parse("d", &text, "d.toml").map_err(|error| error.to_string())
        };
        let cost = |profile: &DeviceProfile| {
            profile.primitive(crate::Primitive::Instruction, 1_000).unwrap().bytes_cost.0
        };
        let found = profile("warm = \"0.31 ns\"\ncode = \"c\"\n").unwrap();
        assert_eq!(cost(&found), 310);
        assert_eq!(found.code(crate::Primitive::Instruction), Some(Code::C));
        assert_eq!(found.code(crate::Primitive::Random), None);
        for (line, expected) in [
            ("", "warm is missing: expected its time, such as \"0.8 ns\""),
            ("warm = \"1 us\"", "expected a time per byte"),
            ("warm = \"1 ns\"\ncold = \"2 ns\"", "cold is unknown"),
        ] {
            let error = profile(line).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
