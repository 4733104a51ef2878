// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Leaky and clean programs: every planted leak is found, and nothing else.

#[path = "../common/encodings.rs"]
mod encodings;
#[allow(dead_code, reason = "the comparison with QEMU asks for whole programs")]
#[path = "../common/generate.rs"]
mod generate;
#[path = "../common/image.rs"]
mod image;
mod laws;
#[path = "../common/test_programs.rs"]
mod test_programs;

use std::collections::BTreeSet;

use warifu_m3::chip::Chip;
use warifu_m3::machine::{Limits, Machine};
use warifu_m3::program::Program;
use warifu_m3::source::Source;
use warifu_m3::stop::Stop;
use warifu_m3::taint::{LeakKind, Place, PoisonedBy, Report, Secret, Taint};
use warifu_m3::timing::Rules;

use LeakKind::{Branch, Condition, Divide, LoadAddress, Multiply, StoreAddress, Target};

/// Runs a program under taint to its end, with console input and faults delivered to its handlers.
fn run(elf: &[u8], prepare: impl FnOnce(&mut Taint, &Program)) -> (Taint, Report) {
    let chip: Chip = "mps2-an385".parse().expect("a known chip");
    let program = Program::parse(elf).expect("a linked program");
    let mut machine =
        Machine::new(&chip, Rules::cortex_m3().expect("rules")).expect("a memory map");
    program.load(&mut machine, &chip).expect("it fits");
    machine.deliver_faults = true;
    machine.semihosting.input.extend(b"abc");
    machine.semihosting.command_line = "line".into();
    let mut taint = Taint::new(&machine);
    prepare(&mut taint, &program);
    let stop = machine.run_observed(Limits { instructions: 10_000_000 }, &mut taint);
    let source = Source::parse(elf).expect("debugging information");
    let report = Report::new(&taint, &program, &source);
    assert_eq!(
        stop,
        Stop::Exit { code: 0 },
        "at {}\n{report}",
        program.describe(machine.core.registers.pc())
    );
    (taint, report)
}

/// Checks the kinds and functions of the leaks of an assembly program.
fn check(file: &str, mut expected: Vec<(LeakKind, &str)>) {
    let path = format!("taint/{file}");
    let elf = test_programs::compile(&["taint/main.c", &path], &["-O1"]);
    let (_, report) = run(&elf, |_, _| {});
    let mut found: Vec<_> =
        report.leaks.iter().map(|row| (row.kind, row.at.function.as_str())).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{file}\n{report}");
    print_table(file, &report, &path);
}

/// Prints the leaks of a program, for `--nocapture`.
fn print_table(program: &str, report: &Report, path: &str) {
    let text = std::fs::read_to_string(test_programs::folder().join(path)).expect("its source");
    let clean = text.lines().filter(|line| line.trim().starts_with("run clean_")).count();
    let rows = report.leaks.len();
    println!(
        "{program}: {rows} leaks planted, {rows} found, no other; {clean} clean functions\n{report}"
    );
}

#[test]
fn branches_and_targets() {
    check(
        "branch.S",
        vec![
            (Branch, "leak_beq"),
            (Branch, "leak_wide_blt"),
            (Branch, "leak_cbz"),
            (Branch, "leak_cbnz"),
            (Branch, "leak_branch_in_it"),
            (Branch, "leak_return_in_it"),
            (Target, "leak_bx"),
            (Target, "leak_blx"),
            (Target, "leak_mov_pc"),
            (Target, "leak_add_pc"),
            (Target, "leak_pop_pc"),
            (Target, "leak_ldr_pc"),
            (Target, "leak_ldm_pc"),
            (Target, "leak_tbb_index"),
            (LoadAddress, "leak_tbb_index"),
            (Target, "leak_tbh_index"),
            (LoadAddress, "leak_tbh_index"),
            (Target, "leak_tbb_entry"),
        ],
    );
}

#[test]
fn load_and_store_addresses() {
    check(
        "address.S",
        vec![
            (LoadAddress, "leak_load_word"),
            (LoadAddress, "leak_load_byte_offset"),
            (LoadAddress, "leak_load_half_base"),
            (LoadAddress, "leak_load_signed"),
            (LoadAddress, "leak_load_signed"),
            (LoadAddress, "leak_load_pre"),
            (LoadAddress, "leak_load_post"),
            (LoadAddress, "leak_load_dual"),
            (LoadAddress, "leak_load_multiple"),
            (LoadAddress, "leak_load_exclusive"),
            (StoreAddress, "leak_store_word"),
            (StoreAddress, "leak_store_byte_offset"),
            (StoreAddress, "leak_store_half_base"),
            (StoreAddress, "leak_store_post"),
            (StoreAddress, "leak_store_dual"),
            (StoreAddress, "leak_store_multiple"),
            (StoreAddress, "leak_store_exclusive"),
            (StoreAddress, "leak_push"),
            (LoadAddress, "leak_push"),
            (LoadAddress, "leak_sbox"),
            (LoadAddress, "leak_sbox"),
            (LoadAddress, "leak_sbox"),
            (LoadAddress, "leak_loaded_by_secret"),
            (Branch, "leak_loaded_by_secret"),
        ],
    );
}

#[test]
fn multiplications_divisions_and_conditions() {
    check(
        "arithmetic.S",
        vec![
            (Multiply, "leak_umull"),
            (Multiply, "leak_umull_second"),
            (Multiply, "leak_smull"),
            (Multiply, "leak_umlal"),
            (Multiply, "leak_smlal"),
            (Multiply, "leak_umlal_sum"),
            (Divide, "leak_udiv"),
            (Divide, "leak_sdiv_second"),
            (Divide, "leak_derived"),
            (Branch, "leak_return_not_taken"),
            (Condition, "leak_frame_not_left"),
            (Branch, "leak_frame_not_left"),
            (Branch, "leak_call_not_made"),
            (Condition, "leak_it"),
            (Condition, "leak_it_skipped"),
            (Condition, "leak_it_skipped"),
            (Condition, "leak_it_store"),
            (Condition, "leak_it_else"),
            (Condition, "leak_it_else"),
            (Condition, "leak_it_result"),
            (Condition, "leak_it_result"),
            (Branch, "leak_it_result"),
            (Branch, "leak_it_result"),
        ],
    );
}

#[test]
fn flags() {
    check(
        "flags.S",
        vec![
            (Branch, "leak_carry_chain"),
            (Branch, "leak_carry_to_register"),
            (Divide, "leak_carry_mask"),
            (Branch, "leak_shifted_carry"),
            (Branch, "leak_register_shift_carry"),
            (Branch, "leak_secret_amount"),
            (Branch, "leak_secret_amount"),
            (Divide, "leak_rrx"),
            (Branch, "leak_overflow"),
            (Branch, "leak_muls"),
            (Branch, "leak_logical_keeps_carry"),
            (Branch, "leak_shift_by_zero"),
            (Branch, "leak_saturation"),
            (Condition, "leak_saturation_or_not"),
            (Branch, "leak_saturation_or_not"),
            (Divide, "leak_mrs"),
            (Branch, "leak_msr"),
        ],
    );
}

#[test]
fn memory_link_register_and_write_back() {
    check(
        "memory.S",
        vec![
            (Branch, "leak_spilled"),
            (Branch, "leak_pushed"),
            (Branch, "leak_byte_by_byte"),
            (Branch, "leak_one_byte_of_word"),
            (Branch, "leak_one_byte_of_word"),
            (Branch, "leak_unaligned"),
            (Branch, "leak_half_of_dual"),
            (Branch, "leak_multiple"),
            (Branch, "leak_exclusive"),
            (LoadAddress, "leak_mark"),
            (Condition, "leak_mark_cleared"),
            (Branch, "leak_mark_cleared"),
            (Branch, "leak_bit_band_load"),
            (Branch, "leak_bit_band_store"),
            (Branch, "leak_system_register"),
            (Branch, "leak_system_register"),
            (Branch, "leak_system_register"),
            (Branch, "leak_system_register"),
            (Branch, "leak_link_register"),
            (Branch, "leak_frame_pointer"),
        ],
    );
}

#[test]
fn exception_frames() {
    check(
        "exceptions.S",
        vec![
            // The handler's branch on R2, for three programs.
            (Branch, "sv_call"),
            (Branch, "leak_after_return"),
            (Branch, "leak_flag_after_return"),
            (Branch, "leak_stacked_by_handler"),
            // The exception return of the handler.
            (Target, "sv_call"),
            (Branch, "leak_process_stack"),
            (Branch, "pend_sv"),
            (Branch, "leak_behind_chain"),
        ],
    );
}

#[test]
fn partial_effects_of_faulting_instructions() {
    check(
        "faults.S",
        vec![
            // The handler's branch on R2.
            (Branch, "fault"),
            (Branch, "leak_popped"),
            (Branch, "leak_loaded"),
            (Branch, "leak_stored_multiple"),
            (Branch, "leak_stored_downwards"),
            (Branch, "leak_stored_dual"),
            (Condition, "leak_stored_if"),
            (Branch, "leak_stored_if"),
        ],
    );
}

#[test]
fn semihosting_writes_are_public() {
    let (_, report) = run(&test_programs::compile(&["taint/host.c"], &["-O1"]), |_, _| {});
    let found: BTreeSet<&str> = report.leaks.iter().map(|row| row.at.function.as_str()).collect();
    let expected = [
        "leak_before_information",
        "leak_behind_information",
        "leak_behind_line",
        "leak_behind_read",
        "leak_far_behind_read",
    ];
    assert_eq!(found, BTreeSet::from(expected), "{report}");
}

#[test]
fn poison_beyond_memories_is_clipped_and_counted() {
    let elf = test_programs::compile(&["taint/all.c"], &["-O1"]);
    let (taint, _) = run(&elf, |_, _| {});
    // 24 MiB, of which 8 MiB are at a mirror as well, and 16 KiB at four addresses.
    let memories = (24 << 20) + (8 << 20) + 4 * (16 << 10);
    assert_eq!(taint.labelled(), 11 * memories + 40_000);
    assert!(taint.byte(0x2100_0000).is_some() && taint.byte(0x2100_9c40).is_none());
}

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-Os"];

/// The leaks of the functions in leaky.c at any optimisation level.
const LEAKY: [(&str, &[LeakKind]); 7] = [
    ("call_by", &[Target, LoadAddress]),
    ("early_exit", &[Branch]),
    ("histogram", &[StoreAddress]),
    ("remainder_of", &[Divide]),
    ("square_and_multiply", &[Branch]),
    ("table", &[LoadAddress]),
    ("wide_product", &[Multiply]),
];

fn leaks_of_leaky(report: &Report) -> BTreeSet<(String, LeakKind)> {
    // A condition may become a branch or an IT block.
    let kind = |kind| if kind == Condition { Branch } else { kind };
    report.leaks.iter().map(|row| (row.at.function.clone(), kind(row.kind))).collect()
}

fn expected_of_leaky() -> BTreeSet<(String, LeakKind)> {
    LEAKY
        .iter()
        .flat_map(|(name, kinds)| kinds.iter().map(|kind| ((*name).to_owned(), *kind)))
        .collect()
}

#[test]
fn leaky_c_at_each_optimisation_level() {
    for level in LEVELS {
        let (_, report) = run(&test_programs::compile(&["taint/leaky.c"], &[level]), |_, _| {});
        assert_eq!(leaks_of_leaky(&report), expected_of_leaky(), "{level}\n{report}");
        println!("leaky.c {level}: {} functions leak as planted\n{report}", LEAKY.len());
    }
}

#[test]
fn clean_c_at_each_optimisation_level() {
    for level in LEVELS {
        let elf = test_programs::compile(&["taint/clean.c"], &[level]);
        let (taint, report) = run(&elf, |_, _| {});
        assert!(report.leaks.is_empty(), "{level}\n{report}");
        println!("clean.c {level}: no leak planted, none found");
        // The key is still secret; declassified data is not.
        let program = Program::parse(&elf).expect("a linked program");
        let of = |name: &str| program.object(name).expect("an object of clean.c").address;
        assert!(taint.byte(of("key")).is_some());
        assert!(taint.byte(of("result")).is_none());
    }
}

#[test]
fn secret_by_symbol_matches_secret_by_port() {
    // With WARIFU_M3=0 the program does not use the port.
    let elf = test_programs::compile(&["taint/leaky.c"], &["-O2", "-DWARIFU_M3=0"]);
    let (taint, report) = run(&elf, |_, _| {});
    assert!(report.leaks.is_empty() && taint.is_clean(), "{report}");
    let (_, report) = run(&elf, |taint, program| {
        let key = program.object("key").expect("leaky.c has a key");
        let by = PoisonedBy::Name("key".into());
        let secret = Secret { address: key.address, bytes: key.bytes, by };
        taint.poison_when(program.label("main").expect("a main"), secret);
    });
    assert_eq!(leaks_of_leaky(&report), expected_of_leaky(), "{report}");
    assert!(
        report.leaks.iter().all(|row| row.secret.starts_with("key (16 bytes at 0x2")),
        "{report}"
    );
}

#[test]
fn leak_reports_line_and_load() {
    let elf = test_programs::compile(&["taint/leaky.c"], &["-O2"]);
    let (_, report) = run(&elf, |_, _| {});
    let text =
        std::fs::read_to_string(test_programs::folder().join("taint/leaky.c")).expect("leaky.c");
    let line_of = |place: &Place| {
        let line = place.line.clone().expect("compiled with -g");
        assert!(line.file.ends_with("taint/leaky.c"), "{line}");
        text.lines().nth(line.line as usize - 1).expect("a line of the file").trim().to_owned()
    };
    let row = report.leaks.iter().find(|row| row.at.function == "histogram").expect("the store");
    assert_eq!(line_of(&row.at), "box[from[1]] = 1;");
    let loaded_by = row.loaded_by.as_ref().expect("a load");
    assert_eq!(
        (loaded_by.function.as_str(), line_of(loaded_by).as_str()),
        ("histogram", "box[from[1]] = 1;")
    );
    assert!(loaded_by.instruction.starts_with("ldrb "), "{loaded_by}");
    assert!(
        row.secret.contains("<key>, poisoned at ") && row.secret.contains("leaky.c:"),
        "{}",
        row.secret
    );
    assert_eq!(row.count, 1);
    // main assembles the exponent; its eight bits are tested.
    let row = report
        .leaks
        .iter()
        .find(|row| row.at.function == "square_and_multiply")
        .expect("a condition");
    assert_eq!(row.loaded_by.as_ref().map(|place| place.function.as_str()), Some("main"));
    assert_eq!(row.count, 8);
}

#[test]
fn frames_of_inlined_function() {
    let elf = test_programs::compile(&["taint/leaky.c"], &["-O2"]);
    let program = Program::parse(&elf).expect("a linked program");
    let source = Source::parse(&elf).expect("debugging information");
    let start = program.label("square_and_multiply").expect("a function of leaky.c");
    let frames = (start..start + 60).step_by(2).map(|address| source.frames(address));
    let names: Vec<Vec<String>> = frames
        .map(|frames| frames.into_iter().filter_map(|frame| frame.function).collect())
        .collect();
    assert!(names.contains(&vec!["touch".into(), "square_and_multiply".into()]), "{names:?}");
}

#[test]
fn unknown_symbol_suggests_nearest() {
    let program = Program::parse(&test_programs::compile(&["taint/leaky.c"], &["-O2"]))
        .expect("a linked program");
    let error = program.object("keys").expect_err("there is none");
    assert_eq!(error.to_string(), "no symbol keys with a size: did you mean key?");
}

#[test]
fn bytes_labelled_by_one_store_count_against_the_limit() {
    let elf = test_programs::compile(&["taint/label_all.c"], &["-O2"]);
    let chip: Chip = "mps2-an385".parse().expect("a known chip");
    let program = Program::parse(&elf).expect("a linked program");
    let mut machine =
        Machine::new(&chip, Rules::cortex_m3().expect("rules")).expect("a memory map");
    program.load(&mut machine, &chip).expect("it fits");
    let mut taint = Taint::new(&machine);
    let limit = 1_000_000;
    let stop = machine.run_observed(Limits { instructions: limit }, &mut taint);
    assert_eq!(stop, Stop::InstructionLimit { limit });
    // Four megabytes a store: had each counted as one, there were a hundred thousand of them.
    assert!(taint.labelled() >= 64 * (limit - 10_000), "{}", taint.labelled());
    assert!(taint.labelled() <= 64 * limit + (4 << 20), "{}", taint.labelled());
    assert!(machine.instructions < 10_000, "{}", machine.instructions);
}
