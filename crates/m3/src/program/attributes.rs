// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `.ARM.attributes`: the processor that an ELF file was built for ("Addenda to, and Errata in, the
//! ABI for the Arm Architecture", IHI 0045, sections 3.1 and 3.3.5).

/// Tag_CPU_name, Tag_CPU_arch, Tag_CPU_arch_profile.
const CPU_NAME: u32 = 5;
const CPU_ARCH: u32 = 6;
const CPU_ARCH_PROFILE: u32 = 7;

/// The processor, if it is not a Cortex-M3; `None` also where the section does not say.
pub fn other_core(section: &[u8]) -> Option<String> {
    let attributes = Attributes::read(section)?;
    let core = match (attributes.arch?, attributes.profile) {
        // v7: without a profile, or that of microcontrollers.
        (10, None | Some(b'M')) => return None,
        (10, Some(b'A')) => "a Cortex-A (ARMv7-A)",
        (10, Some(b'R')) => "a Cortex-R (ARMv7-R)",
        (11 | 12, _) => "a Cortex-M0, M0+ or M1 (ARMv6-M)",
        (13, _) => "a Cortex-M4 or M7 (ARMv7E-M)",
        (14, _) => "an ARMv8-A core",
        (15, _) => "an ARMv8-R core",
        (16, _) => "a Cortex-M23 (ARMv8-M baseline)",
        (17, _) => "a Cortex-M33 or M35P (ARMv8-M mainline)",
        (18..=20, _) => "an ARMv8 core",
        (21, _) => "a Cortex-M55 or M85 (ARMv8.1-M)",
        // Older architectures' Thumb code, which a Cortex-M3 runs, or unknown ones.
        _ => return None,
    };
    Some(match attributes.name {
        Some(name) => format!("{core}, {name}"),
        None => core.to_owned(),
    })
}

#[derive(Default)]
struct Attributes {
    name: Option<String>,
    arch: Option<u32>,
    profile: Option<u8>,
}

impl Attributes {
    /// The attributes of the whole file; `None` where the section is damaged.
    fn read(section: &[u8]) -> Option<Self> {
        let (b'A', mut rest) = section.split_first().map(|(version, rest)| (*version, rest))?
        else {
            return None;
        };
        let mut found = Attributes::default();
        while !rest.is_empty() {
            let (vendor, after) = sized(rest, 0)?;
            rest = after;
            let end = vendor.iter().position(|byte| *byte == 0)?;
            if &vendor[..end] != b"aeabi" {
                continue;
            }
            let mut parts = &vendor[end + 1..];
            while let Some((&tag, _)) = parts.split_first() {
                let (content, after) = sized(parts, 1)?;
                parts = after;
                // Tag_File; others are of sections and symbols.
                if tag == 1 {
                    found.of_file(content)?;
                }
            }
        }
        Some(found)
    }

    fn of_file(&mut self, mut content: &[u8]) -> Option<()> {
        while !content.is_empty() {
            let tag = number(&mut content)?;
            match tag {
                CPU_NAME => self.name = text(&mut content),
                CPU_ARCH => self.arch = Some(number(&mut content)?),
                CPU_ARCH_PROFILE => {
                    self.profile = u8::try_from(number(&mut content)?).ok().filter(|one| *one != 0);
                }
                // Tag_compatibility has both.
                32 => {
                    number(&mut content)?;
                    text(&mut content)?;
                }
                // Tag_CPU_raw_name, and odd tags from 32 on, are text.
                4 => {
                    text(&mut content)?;
                }
                _ if tag > 32 && tag % 2 == 1 => {
                    text(&mut content)?;
                }
                _ => {
                    number(&mut content)?;
                }
            }
        }
        Some(())
    }
}

/// What a length at an offset covers, without offset and length, and what follows it.
fn sized(bytes: &[u8], offset: usize) -> Option<(&[u8], &[u8])> {
    let length = bytes.get(offset..offset + 4)?.try_into().ok().map(u32::from_le_bytes)? as usize;
    if length < offset + 4 || length > bytes.len() {
        return None;
    }
    let (whole, after) = bytes.split_at(length);
    Some((&whole[offset + 4..], after))
}

/// ULEB128.
fn number(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in (0..32).step_by(7) {
        let (&first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Text up to a zero byte.
fn text(bytes: &mut &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    *bytes = &bytes[end + 1..];
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section with one vendor's attributes of the file.
    fn section(vendor: &str, attributes: &[u8]) -> Vec<u8> {
        let mut file = vec![1];
        file.extend((attributes.len() as u32 + 5).to_le_bytes());
        file.extend(attributes);
        let mut section = vec![b'A'];
        section.extend((4 + vendor.len() as u32 + 1 + file.len() as u32).to_le_bytes());
        section.extend(vendor.as_bytes());
        section.push(0);
        section.extend(file);
        section
    }

    #[test]
    fn another_architecture_is_named() {
        let m4 = section("aeabi", b"\x05Cortex-M4\0\x06\x0d\x07M\x09\x02");
        assert_eq!(other_core(&m4).as_deref(), Some("a Cortex-M4 or M7 (ARMv7E-M), Cortex-M4"));
        let m3 = section("aeabi", b"\x05Cortex-M3\0\x06\x0a\x07M");
        assert_eq!(other_core(&m3), None);
        // Tag_compatibility and an odd, unknown tag come first.
        let m0 = section("aeabi", b"\x20\x00gnu\0\x43text\0\x06\x0c");
        assert_eq!(other_core(&m0).as_deref(), Some("a Cortex-M0, M0+ or M1 (ARMv6-M)"));
        assert_eq!(other_core(&section("other", b"\x06\x0d")), None);
    }

    #[test]
    fn damaged_sections_are_ignored_without_a_panic() {
        let whole = section("aeabi", b"\x05Cortex-M4\0\x06\x0d\x07M");
        for end in 0..whole.len() {
            assert_eq!(other_core(&whole[..end]), None, "{end}");
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                let _ = other_core(&changed);
            }
        }
    }
}
