// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wait states on a whole chip: by lines and plain, beside none.

use warifu_m3::chip::Chip;
use warifu_m3::machine::{Limits, Machine};
use warifu_m3::profile::Profiler;
use warifu_m3::session::{Session, Setup};
use warifu_m3::stop::Stop;
use warifu_m3::timing::{Cycles, Rules};

#[path = "common/test_programs.rs"]
mod test_programs;

const CODE: u32 = 0x100;

/// Cycles of code in the flash of an LPC1768 up to BKPT 1, R0 pointing to RAM and R1 to flash.
fn cycles(code: &[u16], wait_states: u64, plain: bool) -> Cycles {
    cycles_on("lpc1768", code, wait_states, plain)
}

/// The same on any chip whose first memory is its flash.
fn cycles_on(chip: &str, code: &[u16], wait_states: u64, plain: bool) -> Cycles {
    let mut chip: Chip = chip.parse().expect("a known chip");
    let flash = chip.regions[0].base;
    let ram = chip.regions.iter().find(|region| region.writable).expect("RAM").base;
    chip.regions[0].wait_states = wait_states;
    if plain {
        chip.regions[0].lines = None;
    }
    let mut machine =
        Machine::new(&chip, Rules::cortex_m3().expect("rules")).expect("a memory map");
    let memory = &mut machine.core.memory;
    assert!(memory.program(flash, &(ram + 0x4000).to_le_bytes()));
    assert!(memory.program(flash + 4, &((flash + CODE) | 1).to_le_bytes()));
    for (at, half) in (flash + CODE..).step_by(2).zip(code.iter().chain(&[0xbe01])) {
        assert!(memory.program(at, &half.to_le_bytes()));
    }
    machine.core.reset(flash).expect("it starts");
    machine.core.registers.r[..2].copy_from_slice(&[ram, flash + 0x8000]);
    let stop = machine.run(Limits { instructions: 100_000 });
    assert!(matches!(stop, Stop::Breakpoint { number: 1, .. }), "{stop}");
    machine.core.clock
}

/// Cycles that wait states add.
fn added(code: &[u16], wait_states: u64, plain: bool) -> u64 {
    (cycles(code, wait_states, plain) - cycles(code, 0, plain)).high
}

const NOP: u16 = 0xbf00;
/// nop.w
const WIDE_NOP: [u16; 2] = [0xf3af, 0x8000];
/// ldr r2, [r1]
const LOAD: u16 = 0x680a;

#[test]
fn straight_code_waits_for_its_first_line_where_the_array_keeps_up() {
    // 8 instructions of 2 bytes to a line, which takes 5 cycles to read.
    assert_eq!(added(&[NOP; 400], 4, false), 4);
    // 4 of 4 bytes: a cycle is missing at each of the 99 lines after the first, and the BKPT waits
    // for the last one.
    assert_eq!(added(&WIDE_NOP.repeat(400), 4, false), 4 + 99 + 1);
    // Plain: each of 200 words, and that of the BKPT.
    assert_eq!(added(&[NOP; 400], 4, true), 201 * 4);
}

#[test]
fn loop_in_the_kept_lines_waits_once() {
    // movs r3, #100; 24 nops; subs r3, #1; bne back to the nops: 4 lines.
    let mut code = vec![0x2364];
    code.extend([NOP; 24]);
    code.extend([0x3b01, 0xd100 | ((-(24 + 1 + 2) & 0xff) as u16)]);
    assert_eq!(added(&code, 4, false), 4, "the lines are read ahead in the first round");
    assert!(added(&code, 4, true) > 100 * 13 * 4);
}

/// Two buffers of a line, as these chips have them: one is in use, the other one is for the line
/// that is read ahead, so that a loop across two lines waits in every round. The F2 keeps 64 beside
/// it.
#[test]
fn loop_across_two_lines_waits_each_round_where_there_are_two_buffers() {
    for (chip, line, waits) in [
        ("stm32f103", 8, true),
        ("stm32f103xg", 8, true),
        ("stm32l152xe", 8, true),
        ("sam3x8e", 16, true),
        ("stm32f205xg", 16, false),
        ("lpc1768", 16, false),
    ] {
        // movs r3, #100; nops up to one half-word below the line; nop; subs r3, #1; bne to that
        // nop.
        let mut code = vec![0x2364];
        code.extend(vec![NOP; line / 2 - 2]);
        code.extend([NOP, 0x3b01, 0xd100 | ((-(1 + 1 + 2) & 0xff) as u16)]);
        let added = (cycles_on(chip, &code, 2, false) - cycles_on(chip, &code, 0, false)).high;
        assert_eq!(added >= 100, waits, "{chip}: {added} cycles");
    }
}

#[test]
fn loads_from_flash_wait_once_for_each_line() {
    // The first load reads a line of data, which breaks into the read ahead of the next line of
    // code; that is there before it is needed. The others find their line.
    let once = [&[LOAD; 1][..], &[NOP; 15]].concat();
    let many = [&[LOAD; 5][..], &[NOP; 11]].concat();
    assert_eq!(added(&once, 2, false), 2 + 2);
    assert_eq!(added(&many, 2, false), 2 + 2);
    assert_eq!(added(&many, 2, true), 5 * 2 + 9 * 2);
}

#[test]
fn no_wait_states_leave_every_cycle_as_it_is() {
    let code = [&[LOAD; 3][..], &WIDE_NOP, &[NOP; 9]].concat();
    assert_eq!(cycles(&code, 0, false), cycles(&code, 0, true));
}

/// Cycles of a compiled program with wait states for its code and its constants.
fn compiled(file: &[u8], chip_file: &str, wait_states: u64, plain: bool, steps: u64) -> Cycles {
    let setup = Setup {
        chip_file: Some(chip_file.to_owned()),
        wait_states: vec![("ssram1".to_owned(), wait_states)],
        plain_wait_states: plain,
        ..Setup::default()
    };
    let mut session = Session::new(file, &setup).expect("it can be run");
    loop {
        session.machine.pause_at = session.machine.instructions + steps;
        match session.machine.run(Limits { instructions: 100_000_000 }) {
            Stop::Paused => {}
            stop => {
                assert_eq!(stop, Stop::Exit { code: 0 }, "{}", session.describe(&stop));
                return session.machine.core.clock;
            }
        }
    }
}

#[test]
fn compiled_code_lies_between_no_and_plain_wait_states() {
    let file = test_programs::compile(&["programs/structures.c"], &["-O2"]);
    let map = include_str!("../chips/mps2-an385.toml");
    for lines in [
        "lines = { bytes = 16, shared = 8, prefetch = true }",
        "lines = { bytes = 8, code = 2, data = 0, prefetch = true }",
        "lines = { bytes = 16, code = 64, data = 8, prefetch = true }",
    ] {
        let chip = map.replacen("writable = true", &format!("writable = true\n{lines}"), 1);
        let none = compiled(&file, &chip, 0, false, u64::MAX >> 1);
        let plain = compiled(&file, &chip, 3, true, u64::MAX >> 1);
        let by_lines = compiled(&file, &chip, 3, false, u64::MAX >> 1);
        println!("{lines}: none {none}, by lines {by_lines}, plain {plain}");
        assert!(none.low < by_lines.low && by_lines.high < plain.high, "{lines}");
        // Pauses change nothing.
        assert_eq!(compiled(&file, &chip, 3, false, 17), by_lines);
        // Nor does an observer.
        let setup = Setup {
            chip_file: Some(chip),
            wait_states: vec![("ssram1".to_owned(), 3)],
            ..Setup::default()
        };
        let mut session = Session::new(&file, &setup).expect("it can be run");
        let mut profiler = Profiler::new(&session.program, &session.machine);
        let stop = session.machine.run_observed(Limits { instructions: 1 << 30 }, &mut profiler);
        assert_eq!((stop, session.machine.core.clock), (Stop::Exit { code: 0 }, by_lines));
        let report = profiler.report(&session.machine.core);
        let sum: u64 = report.functions.iter().map(|row| row.sum.exclusive.high).sum();
        assert_eq!(sum, by_lines.high, "each cycle belongs to a function");
    }
}
