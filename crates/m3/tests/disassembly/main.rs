// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Disassembly compared with objdump's, for compiled programs and random encodings.

#[path = "../common/encodings.rs"]
mod encodings;
#[allow(dead_code)] // each test uses its part of what they share
#[path = "../common/generate.rs"]
mod generate;
#[path = "../common/test_programs.rs"]
mod test_programs;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use generate::{Generator, Item};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use warifu_m3::core::Operation;
use warifu_m3::isa::{self, Instruction};

/// A line of objdump's output.
struct Line {
    address: u32,
    halves: [u16; 2],
    text: String,
}

fn objdump(file: &Path) -> Vec<Line> {
    let output = Command::new("arm-none-eabi-objdump")
        .args(["-d", "-z", "-M", "reg-names-std"])
        .arg(file)
        .output();
    let output = output.expect("arm-none-eabi-objdump is installed: scripts/setup --with tests");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).lines().filter_map(parse).collect()
}

/// `    8000:\tf04f 30ff \tmov.w\tr0, #255\t@ 0xff`
fn parse(line: &str) -> Option<Line> {
    let (address, rest) = line.split_once(":\t")?;
    let (bytes, text) = rest.split_once('\t')?;
    let address = u32::from_str_radix(address.trim(), 16).ok()?;
    let mut halves = bytes.split_whitespace().map(|half| u16::from_str_radix(half, 16));
    let halves = [halves.next()?.ok()?, halves.next().unwrap_or(Ok(0)).ok()?];
    Some(Line { address, halves, text: text.replace('\t', " ") })
}

/// Compares our text of each line that is not data with objdump's; the number of lines.
fn compare(lines: &[Line]) -> usize {
    let mut it_state = 0;
    let mut different: BTreeMap<String, String> = BTreeMap::new();
    let mut count = 0;
    for line in lines.iter().filter(|line| !line.text.starts_with('.')) {
        let decoded = isa::decode(line.address, line.halves[0], line.halves[1], it_state != 0);
        let operation = Operation::new(&decoded, line.address, it_state);
        it_state = operation.it_after();
        count += 1;
        let mut ours =
            canonical_numbers(&decoded.instruction.under(operation.condition).to_string());
        if theirs_forgets_write_back(&decoded.instruction) {
            ours = ours.replace(", #0]!", "]");
        }
        let theirs = canonical(line);
        let unknown =
            matches!(decoded.instruction, Instruction::Undefined | Instruction::Coprocessor);
        let undefined = theirs.starts_with("udf") || line.text.contains("UNDEFINED");
        if ours != theirs && !(unknown && undefined) {
            different.insert(line.text.clone(), format!("{ours} | {theirs}"));
        }
    }
    assert!(different.is_empty(), "{} lines differ: {different:#?}", different.len());
    count
}

/// objdump 2.40 omits the write-back of LDRD and STRD with an offset of zero.
fn theirs_forgets_write_back(instruction: &Instruction) -> bool {
    matches!(instruction, Instruction::LoadDual { .. } | Instruction::StoreDual { .. })
}

/// objdump's text in our form: no width, comment or symbol; three operands; absolute addresses
/// instead of PC-relative ones.
fn canonical(line: &Line) -> String {
    let text = line.text.split(['@', ';', '<']).next().unwrap_or("").trim();
    let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
    if line.halves[0] == 0x46c0 {
        return format!("mov{} r8, r8", name.trim_start_matches("nop"));
    }
    let mut name = name.trim_end_matches(".n").trim_end_matches(".w").to_owned();
    let mut operands: Vec<String> = split(operands);
    for (theirs, ours) in
        [("addw", "add"), ("subw", "sub"), ("movw", "mov"), ("neg", "rsb"), ("dsb", "dmb")]
    {
        if let Some(rest) = name.strip_prefix(theirs) {
            if theirs == "neg" {
                operands.push("#0".into());
            }
            name = format!("{ours}{rest}");
        }
    }
    let place = (line.address + 4) & !3;
    for operand in &mut operands {
        if let Some(offset) = operand.strip_prefix("[pc, #") {
            let offset: i32 = offset.trim_end_matches(']').parse().expect("an offset");
            *operand = format!("{:#x}", place.wrapping_add_signed(offset));
            // LDRT and so on with PC as base are LDR (literal) (DDI 0403E section A7.7.67); objdump
            // prints LDRT.
            name = name.trim_end_matches('t').to_owned();
        }
        *operand = operand.replace(", #0]", "]").replace(", #-0]", "]").to_lowercase();
        if operand.ends_with("]!") && !operand.contains(',') {
            *operand = operand.replace("]!", ", #0]!");
        }
        let special = [("cpsr_f", "apsr"), ("apsr_nzcvq", "apsr"), ("cpsr", "apsr")];
        *operand =
            special.iter().fold(operand.clone(), |all, (theirs, ours)| all.replace(theirs, ours));
    }
    operands.retain(|operand| operand != "sy");
    let is = |stem: &str| {
        name.strip_prefix(stem).is_some_and(|rest| rest.trim_start_matches('s').len() <= 2)
    };
    if ["add", "sub"].iter().any(|stem| is(stem))
        && operands.get(1).is_some_and(|second| second == "pc")
        && operands.len() == 3
    {
        let offset: i32 = operands[2].trim_start_matches('#').parse().expect("an offset");
        let offset = if is("sub") { -offset } else { offset };
        let text =
            format!("adr{} {}, {:#x}", &name[3..], operands[0], place.wrapping_add_signed(offset));
        return canonical_numbers(&text);
    }
    let three =
        ["add", "adc", "sub", "sbc", "and", "orr", "eor", "bic", "lsl", "lsr", "asr", "ror"];
    if operands.len() == 2 && three.iter().any(|stem| is(stem)) {
        operands.insert(0, operands[0].clone());
    }
    if operands.len() == 2 && is("mul") {
        operands.push(operands[0].clone());
    }
    if operands.len() == 3 && is("mov") {
        let (shift, amount) = operands[2].split_once(' ').unwrap_or((&operands[2], ""));
        name = format!("{shift}{}", &name[3..]);
        operands = if amount.is_empty() {
            operands[..2].to_vec()
        } else {
            vec![operands[0].clone(), operands[1].clone(), amount.into()]
        };
    }
    if operands.first().is_some_and(|first| first == "sp!") {
        for (theirs, ours) in [("stmdb", "push"), ("ldmia", "pop")] {
            if let Some(rest) = name.strip_prefix(theirs) {
                name = format!("{ours}{rest}");
                operands.remove(0);
                break;
            }
        }
    }
    let branch = name.starts_with('b')
        && !["bfi", "bfc", "bic", "bkpt", "bx", "blx"].iter().any(|other| name.starts_with(other));
    if (branch || name.starts_with("cb"))
        && let Some(target) = operands.last_mut()
    {
        *target = format!("0x{target}");
    }
    let operands = operands.join(", ");
    canonical_numbers(format!("{name} {operands}").trim())
}

/// Splits operands at commas outside `[..]` and `{..}`.
fn split(operands: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut depth = 0;
    for letter in operands.chars() {
        depth += i32::from("[{".contains(letter)) - i32::from("]}".contains(letter));
        match (letter, depth, all.last_mut()) {
            (',', 0, _) => all.push(String::new()),
            (_, _, Some(last)) => last.push(letter),
            _ => {}
        }
    }
    all.iter()
        .map(|operand| operand.trim().to_owned())
        .filter(|operand| !operand.is_empty())
        .collect()
}

/// Writes every number in the same form.
fn canonical_numbers(text: &str) -> String {
    let mut result = String::new();
    for (index, word) in text.split_inclusive([' ', ',', ']', '!', '}']).enumerate() {
        let end = word.trim_end_matches([' ', ',', ']', '!', '}']).len();
        let (number, mark) = match word[..end].strip_prefix('#') {
            Some(number) => (number, "#"),
            None => (&word[..end], ""),
        };
        let (negative, digits) =
            number.strip_prefix('-').map_or((false, number), |digits| (true, digits));
        let value = match digits.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        };
        match value.filter(|_| index > 0) {
            Some(value) => {
                let value = if negative { value.wrapping_neg() } else { value };
                let _ = write!(result, "{mark}{value}{}", &word[end..]);
            }
            None => result.push_str(word),
        }
    }
    result
}

fn write_and_compare(elf: &[u8]) -> usize {
    let folder = tempfile::tempdir().expect("a folder for a program");
    let file = folder.path().join("program.elf");
    std::fs::write(&file, elf).expect("the program is written");
    compare(&objdump(&file))
}

#[test]
fn compiled_programs_match_objdump() {
    let library = ["-lc", "-lm", "-lc", "-lnosys"];
    let mut count = 0;
    for level in ["-O0", "-O2", "-Os"] {
        let options: Vec<&str> = [level].into_iter().chain(library).collect();
        count += write_and_compare(&test_programs::compile(&["library.c"], &options));
        for file in ["branch.S", "address.S", "arithmetic.S", "flags.S", "memory.S", "exceptions.S"]
        {
            let file = format!("taint/{file}");
            count += write_and_compare(&test_programs::compile(&["taint/main.c", &file], &[level]));
        }
    }
    assert!(count > 30_000, "{count} instructions only");
}

#[test]
fn random_encodings_match_objdump() {
    let mut generator = Generator::new(Xoshiro256PlusPlus::seed_from_u64(7));
    let items: Vec<Item> = (0..40_000).map(|_| generator.item()).collect();
    let mut source = String::from(".syntax unified\n.cpu cortex-m3\n.thumb\n");
    for item in items {
        let mut halves = item.into_iter();
        while let Some(half) = halves.next() {
            let second = if isa::is_wide(half) { halves.next() } else { None };
            let _ = match second {
                Some(second) => {
                    writeln!(source, ".inst.w {:#x}", u32::from(half) << 16 | u32::from(second))
                }
                None => writeln!(source, ".inst.n {half:#x}"),
            };
        }
    }
    let folder = tempfile::tempdir().expect("a folder for a program");
    let (text, object) = (folder.path().join("random.s"), folder.path().join("random.o"));
    std::fs::write(&text, source).expect("the program is written");
    let done = Command::new("arm-none-eabi-as")
        .arg(&text)
        .arg("-o")
        .arg(&object)
        .status()
        .expect("arm-none-eabi-as");
    assert!(done.success());
    assert!(compare(&objdump(&object)) > 50_000);
}
