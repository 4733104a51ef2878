// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any bytes are the debugging information of an ELF file: it has lines, or one mistake in a line.
//! It takes no more memory than `fuzz/run` leaves, however often its parts are repeated.

use warifu_m3::source::Source;

/// Repetitions of a part: 64 Ki at most.
const MOST: u32 = 16;
/// Bytes of a part when it is repeated at most.
const MAX_BYTES: usize = 8 << 20;

/// Checks one input: the repetitions of units and of the line program (powers of two), the lengths
/// of abbreviations, unit, line program's header and line program, then these and, as strings and
/// ranges, the rest.
pub fn check(bytes: &[u8]) {
    let [units, rows, a, b, c, d, rest @ ..] = bytes else { return };
    let mut rest = rest;
    let [abbreviations, unit, header, program] = [a, b, c, d].map(|length| {
        let (part, after) = rest.split_at(usize::from(*length).min(rest.len()));
        rest = after;
        part
    });
    let program = repeated(program, *rows);
    // Before its length it has the version, and in DWARF 5 two sizes.
    let before = if header.first().is_some_and(|version| *version >= 5) { 4 } else { 2 };
    let (version, header) = header.split_at(header.len().min(before));
    let header_length = header.len() as u32;
    let line = [version, &header_length.to_le_bytes(), header, &program, &[0, 1, 1]].concat();
    let units = repeated(&with_length(unit), *units);
    let file = elf(&[
        (".debug_abbrev", abbreviations),
        (".debug_info", &units),
        (".debug_line", &with_length(&line)),
        (".debug_str", rest),
        (".debug_ranges", rest),
        (".debug_rnglists", rest),
        (".debug_aranges", rest),
    ]);
    match Source::parse(&file) {
        Ok(source) => {
            for address in [0, 0x0010_0000, 0x0800_0000] {
                source.line(address);
            }
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
}

fn repeated(part: &[u8], exponent: u8) -> Vec<u8> {
    let times = 1 << (u32::from(exponent) % (MOST + 1));
    part.repeat(times.min(MAX_BYTES / part.len().max(1)))
}

fn with_length(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_le_bytes(), content].concat()
}

/// A file of sections, without segments.
fn elf(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut content = Vec::new();
    // The first header is empty (System V ABI, chapter 4).
    let mut headers = vec![0; 40];
    let mut add = |name: &str, kind: u32, bytes: &[u8], names: &mut Vec<u8>| {
        let (at, offset) = (names.len() as u32, 52 + content.len() as u32);
        names.extend(name.bytes().chain([0]));
        let bytes = if kind == 3 { names.clone() } else { bytes.to_vec() };
        for word in [at, kind, 0, 0, offset, bytes.len() as u32, 0, 0, 1, 0] {
            headers.extend(word.to_le_bytes());
        }
        content.extend(bytes);
    };
    for (name, bytes) in sections {
        add(name, 1, bytes, &mut names);
    }
    add(".shstrtab", 3, &[], &mut names);
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x28\0".to_vec();
    for word in [1, 0, 0, 52 + content.len() as u32, 0x0500_0000] {
        file.extend(word.to_le_bytes());
    }
    let count = sections.len() as u16 + 2;
    for half in [52, 32, 0, 40, count, count - 1] {
        file.extend(half.to_le_bytes());
    }
    [file, content, headers].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the fuzzer begins with reaches the line program, or its search would find nothing.
    #[test]
    fn first_seed_has_lines() {
        let abbreviations = [1, 0x11, 0, 0x10, 0x17, 0x11, 0x01, 0x12, 0x06, 0, 0, 0];
        let unit = [4, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f];
        let header = [1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, b'a', 0, 0, 0, 0, 0];
        let program = [0, 5, 2, 0, 0, 0x10, 0, 30, 30, 0, 1, 1];
        let line = [&[2, 0][..], &with_length(&header), &program].concat();
        let file = elf(&[
            (".debug_abbrev", &abbreviations),
            (".debug_info", &with_length(&unit)),
            (".debug_line", &with_length(&line)),
        ]);
        let line = Source::parse(&file).expect("it is whole").line(0x0010_0001);
        assert_eq!(line.map(|line| line.to_string()), Some("a:2".to_owned()));
    }
}
