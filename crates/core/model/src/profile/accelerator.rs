// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An accelerator profile: what a call of an AEAD takes outside the processor's ordinary
//! instructions, and what it takes to get the bytes there and back.

use toml::Value;

use super::figure::{FigureOf, Figures, Input, Provenance, non_empty};
use super::heading::heading;
use super::span::{Clock, Span, Work};
use crate::case::DdsAead;
use crate::error::Error;
use crate::keyword::Keyword;
use crate::reader::{self, Mistakes, Section};

/// The block that datasheets count cycles by: AES's (FIPS 197), B.
const BLOCK: f64 = 16.0;

/// Something that computes AEADs in the place of a device's software.
#[derive(Clone, Debug)]
pub struct AcceleratorProfile {
    /// Its name, the file's without ending.
    pub name: String,
    /// The file it was read from, for errors.
    pub file: String,
    /// What it is.
    pub description: String,
    /// What a device has to get for it, in words: `an FPGA on the processor's bus`.
    pub needs: String,
    /// Whether it is part of a processor (its instructions, a microcontroller's engine): who has it
    /// uses it already, and who has it not needs another processor.
    pub built_in: bool,
    /// What the way there and back adds to each call.
    pub bus: Terms,
    ciphers: Vec<(DdsAead, Terms)>,
    figures: Vec<Input>,
}

/// What a call takes: a part for itself and one for each byte.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// For the call.
    pub set_up: Span,
    /// For each byte.
    pub per_byte: Span,
}

impl Terms {
    /// For so many bytes.
    pub fn of(&self, bytes: u32) -> Span {
        self.set_up + self.per_byte.times(f64::from(bytes))
    }
}

impl AcceleratorProfile {
    /// Reads a profile; `file` is the name to give in errors.
    ///
    /// # Errors
    /// The first mistake: a key that is missing, unknown or has no such value.
    pub fn parse(name: &str, text: &str, file: &str) -> Result<AcceleratorProfile, Error> {
        let mistakes = Mistakes::new(file);
        let profile = mistakes.parse(text).and_then(|table| read(name, &table, file, &mistakes));
        mistakes.first_or(profile)
    }

    /// The AEADs that it has, in the order of the file.
    pub fn aeads(&self) -> impl Iterator<Item = DdsAead> {
        self.ciphers.iter().map(|(aead, _)| *aead)
    }

    /// What the cipher itself takes, the bus left out; `None` for an AEAD that it does not have.
    pub fn cipher(&self, aead: DdsAead) -> Option<Terms> {
        self.ciphers.iter().find(|(known, _)| *known == aead).map(|(_, terms)| *terms)
    }

    /// What a call for so many bytes takes with the bus; `None` for an AEAD that it does not have.
    pub fn call(&self, aead: DdsAead, bytes: u32) -> Option<Span> {
        Some(self.cipher(aead)?.of(bytes) + self.bus.of(bytes))
    }

    /// The figures that a call of an AEAD rests on: its own, the clock's and the bus's. What is
    /// part of a processor has no bus, and the zero that says so is no figure.
    pub fn inputs(&self, aead: DdsAead) -> Vec<Input> {
        let prefix = format!("{}.", aead.name());
        let has_bus = !(self.built_in && self.bus == Terms::default());
        let applies = |figure: &&Input| {
            figure.key.starts_with(&prefix)
                || (has_bus && figure.key.starts_with("bus."))
                || figure.key == "clock"
        };
        self.figures.iter().filter(applies).cloned().collect()
    }
}

fn read(
    name: &str,
    table: &toml::Table,
    file: &str,
    mistakes: &Mistakes<'_>,
) -> Option<AcceleratorProfile> {
    let root = Section::root(table, mistakes);
    let description = heading(&root, name);
    if root.get("needs").is_none() {
        root.refuse("needs", "is missing: say what a device has to get for it");
    }
    let needs = root.read("needs", non_empty);
    let built_in = root.read("built_in", reader::boolean).unwrap_or(false);
    let around = Provenance::read(&root, &Provenance::NONE);
    let mut whole = Figures::new(FigureOf::Accelerator, name, &root, &around);
    let clock = whole.read("clock", "MHz", Clock::read);
    let mut figures = whole.inputs;
    let mut ciphers: Vec<(DdsAead, Terms)> = Vec::new();
    for section in root.sections("cipher") {
        if section.get("aead").is_none() {
            section.refuse("aead", "is missing: expected an AEAD such as \"AES-256-GCM\"");
        }
        let aead = section.read("aead", reader::keyword::<DdsAead>);
        let prefix = aead.map_or("cipher", Keyword::name);
        // A cipher may have a source of its own.
        let own = Provenance::read(&section, &around);
        let terms = read_terms(&section, (name, prefix), clock, &own, &mut figures);
        let Some((aead, terms)) = aead.zip(terms) else { continue };
        if ciphers.iter().any(|(known, _)| *known == aead) {
            section.refuse("aead", format!("is {} again", aead.name()));
        }
        ciphers.push((aead, terms));
    }
    if ciphers.is_empty() && !mistakes.any() {
        root.refuse("cipher", "is missing: state an AEAD that it has in [[cipher]]");
    }
    if root.get("bus").is_none() {
        root.refuse("bus", "is missing: state what the way there and back takes, if only 0 ns");
    }
    let bus = root.section("bus").and_then(|section| {
        let own = Provenance::read(&section, &around);
        read_terms(&section, (name, "bus"), clock, &own, &mut figures)
    });
    root.refuse_unknown();
    (!mistakes.any()).then(|| AcceleratorProfile {
        name: name.into(),
        file: file.into(),
        description,
        needs: needs.unwrap_or_default(),
        built_in,
        bus: bus.unwrap_or_default(),
        ciphers,
        figures,
    })
}

/// `set_up`, and `per_byte` or `per_block`. Their figures go to `figures` under `prefix`.
fn read_terms(
    section: &Section<'_>,
    (profile, prefix): (&str, &str),
    clock: Option<Clock>,
    around: &Provenance,
    figures: &mut Vec<Input>,
) -> Option<Terms> {
    let mut reading = Figures::new(FigureOf::Accelerator, profile, section, around);
    let work = |value: &Value| Work::read(value).and_then(|work| work.at(clock));
    let set_up = reading.need("set_up", "ns", work);
    let per_byte = match (section.get("per_byte"), section.get("per_block")) {
        (None, Some(_)) => {
            reading.read("per_block", "ns", work).map(|span| span.times(1.0 / BLOCK))
        }
        (Some(_), Some(_)) => {
            section.refuse("per_block", "is given beside per_byte: remove one of them");
            None
        }
        _ => reading.need("per_byte", "ns", work),
    };
    figures.extend(
        reading
            .inputs
            .into_iter()
            .map(|input| Input { key: format!("{prefix}.{}", input.key), ..input }),
    );
    section.get("note");
    section.refuse_unknown();
    Some(Terms { set_up: set_up?, per_byte: per_byte? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;

    const HEAD: &str = "name = \"a\"\ndescription = \"an accelerator\"\nneeds = \"a core\"\n";
    const CIPHER: &str = "[[cipher]]\naead = \"AES-256-GCM\"\nset_up = \"1 us\"\n\
                          per_byte = \"0.5 ns\"\n";
    const BUS: &str = "[bus]\nset_up = \"2 us to 10 us\"\nper_byte = \"0.25 ns\"\n";

    fn parse(body: &str) -> Result<AcceleratorProfile, String> {
        AcceleratorProfile::parse("a", &format!("{HEAD}{body}"), "a.toml")
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_call_pays_the_cipher_and_the_bus() {
        let profile = parse(&format!("{CIPHER}{BUS}")).unwrap();
        let call = profile.call(DdsAead::Aes256Gcm, 1000).unwrap();
        // 1 us + 500 ns of the cipher; 2 to 10 us + 250 ns of the bus.
        assert_eq!((call.low_ns, call.high_ns), (3_750.0, 11_750.0));
        assert_eq!(profile.call(DdsAead::Aegis256, 1000), None);
        assert_eq!(profile.aeads().collect::<Vec<_>>(), [DdsAead::Aes256Gcm]);
        assert!(!profile.built_in);
    }

    #[test]
    fn cycles_a_block_at_a_clock() {
        let body = format!(
            "source = \"a datasheet\"\nkind = \"published\"\n\
             clock = {{ value = \"100 MHz to 200 MHz\", kind = \"assumed\" }}\n{}{BUS}",
            "[[cipher]]\naead = \"AES-128-GCM\"\nset_up = \"0 ns\"\nper_block = \"32 cycles\"\n"
        );
        let profile = parse(&body).unwrap();
        let terms = profile.cipher(DdsAead::Aes128Gcm).unwrap();
        // 32 cycles are 160 ns at 200 MHz and 320 ns at 100 MHz; a block has 16 B.
        assert_eq!(terms.per_byte, Span { low_ns: 10.0, high_ns: 20.0 });
        let inputs = profile.inputs(DdsAead::Aes128Gcm);
        let kinds: Vec<(&str, Kind)> =
            inputs.iter().map(|input| (input.key.as_str(), input.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("clock", Kind::Assumed),
                ("AES-128-GCM.set_up", Kind::Published),
                ("AES-128-GCM.per_block", Kind::Published),
                ("bus.set_up", Kind::Published),
                ("bus.per_byte", Kind::Published),
            ]
        );
        assert_eq!(inputs[0].value.text, "100 MHz to 200 MHz");
        assert_eq!(inputs[2].value.text, "160 ns to 320 ns");
    }

    #[test]
    fn no_bus_within_a_processor_is_no_figure() {
        let keys = |body: &str| -> Vec<String> {
            let profile = parse(body).unwrap();
            profile.inputs(DdsAead::Aes256Gcm).into_iter().map(|input| input.key).collect()
        };
        let own = ["AES-256-GCM.set_up", "AES-256-GCM.per_byte"];
        let with_bus = [&own[..], &["bus.set_up", "bus.per_byte"]].concat();
        let none = "[bus]\nset_up = \"0 ns\"\nper_byte = \"0 ns\"\n";
        assert_eq!(keys(&format!("built_in = true\n{CIPHER}{none}")), own);
        assert_eq!(keys(&format!("built_in = true\n{CIPHER}{BUS}")), with_bus);
        assert_eq!(keys(&format!("{CIPHER}{none}")), with_bus);
    }

    #[test]
    fn mistakes() {
        let cycles = CIPHER.replace("1 us", "9 cycles");
        for (text, expected) in [
            (BUS.to_owned(), "a.toml: cipher is missing: state an AEAD"),
            (CIPHER.to_owned(), "a.toml: bus is missing: state what the way"),
            (format!("{CIPHER}{CIPHER}{BUS}"), "a.toml: cipher[1].aead is AES-256-GCM again"),
            (
                format!("{CIPHER}per_block = \"1 ns\"\n{BUS}"),
                "a.toml: cipher[0].per_block is given beside per_byte",
            ),
            (
                format!("{}{BUS}", CIPHER.replace("256-GCM", "255-GCM")),
                "a.toml: cipher[0].aead is \"AES-255-GCM\": expected",
            ),
            (
                format!("{cycles}{BUS}"),
                "a.toml: cipher[0].set_up is \"9 cycles\": expected a time, or state clock",
            ),
            (
                format!("{}{BUS}", CIPHER.replace("0.5 ns", "-1 ns")),
                "a.toml: cipher[0].per_byte is \"-1 ns\": expected a time such as \"5.7 ns\"",
            ),
            (
                format!("{CIPHER}{}", BUS.replace("set_up", "set_upp")),
                "a.toml: bus.set_up is missing",
            ),
            (format!("speed = 1\n{CIPHER}{BUS}"), "a.toml: speed is unknown"),
            (
                format!("{CIPHER}kind = \"measured\"\n{BUS}"),
                "a.toml: cipher[0].kind is \"measured\": expected a source beside it",
            ),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let text = HEAD.replace("needs = \"a core\"\n", "") + CIPHER + BUS;
        let error = AcceleratorProfile::parse("a", &text, "a.toml").unwrap_err().to_string();
        assert_eq!(error, "a.toml: needs is missing: say what a device has to get for it");
    }
}
