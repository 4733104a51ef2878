// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registers and flags after each of many random instructions, compared with QEMU (`-M
//! mps2-an385`). M3_RANDOM_INSTRUCTIONS sets their number, M3_SEED the seed.

#[path = "../common/encodings.rs"]
mod encodings;
#[allow(dead_code)] // each test uses its part of what they share
#[path = "../common/generate.rs"]
mod generate;
#[path = "../common/image.rs"]
mod image;
mod oracle;
mod programs;

use std::path::Path;

use generate::{CODE, Generator, Item};
use image::Image;
use oracle::{Oracle, State};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use warifu_m3::chip::Chip;
use warifu_m3::machine::{HOST_BYTES, Limits, Machine};
use warifu_m3::program::Program;
use warifu_m3::stop::Stop;
use warifu_m3::timing::Rules;

/// Items of one program, as many as fit the code memory.
const ITEMS: usize = 200_000;

fn asked(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn machine(image: &Image) -> Machine {
    let chip: Chip = "mps2-an385".parse().expect("a known chip");
    let mut machine =
        Machine::new(&chip, Rules::cortex_m3().expect("rules")).expect("a memory map");
    let program = Program::parse(&image.elf()).expect("our own ELF file is read");
    program.load(&mut machine, &chip).expect("it fits");
    machine
}

fn state(machine: &Machine) -> State {
    State { r: machine.core.registers.r, xpsr: machine.core.registers.xpsr() }
}

/// Steps both through a program of items: the number of instructions, or the first difference.
fn compare(items: &[Item], directory: &Path) -> Result<u64, String> {
    let image = Image::new(items);
    let elf = directory.join("program.elf");
    std::fs::write(&elf, image.elf()).expect("the program is written");
    let limit = 40 * items.len() as u64 + 1000;
    lockstep(machine(&image), &mut Oracle::start(&elf, directory), limit)
}

/// Steps a machine and QEMU in parallel until the program exits.
fn lockstep(mut machine: Machine, oracle: &mut Oracle, limit: u64) -> Result<u64, String> {
    let mut count = 0u64;
    let mut before = state(&machine);
    loop {
        let Some(expected) = oracle.next() else {
            return Err(format!("QEMU ended after {count} instructions"));
        };
        if machine.core.memory.half(before.r[15]) == Some(0xbeab) {
            // R0 is undefined after semihosting calls that print.
            machine.core.registers.r[0] = expected.r[0];
        }
        let ours = state(&machine);
        // Before the first instruction the flags are unknown.
        let known = if count == 0 { 0x07ff_ffff } else { u32::MAX };
        if ours.r != expected.r || (ours.xpsr ^ expected.xpsr) & known != 0 {
            let halves =
                [0, 2].map(|offset| machine.core.memory.half(before.r[15] + offset).unwrap_or(0));
            return Err(format!(
                "after instruction {count}, {:04x} {:04x} at {:#x}:\n\
                 before {before:x?}\nours   {ours:x?}\nQEMU   {expected:x?}",
                halves[0], halves[1], before.r[15]
            ));
        }
        if count == 0 {
            machine.core.registers.set_xpsr(expected.xpsr);
        }
        before = expected;
        // What was printed so far counts as well.
        let printed = machine.semihosting.handled / HOST_BYTES;
        let next = Limits { instructions: machine.instructions + printed + 1 };
        match machine.run(next) {
            Stop::InstructionLimit { .. } if count > limit => {
                return Err(format!("an endless loop at {:#x}", before.r[15]));
            }
            Stop::InstructionLimit { .. } => count += 1,
            Stop::Exit { code: 0 } => return Ok(count),
            stop => {
                return Err(format!("after {count} instructions at {:#x}: {stop}", before.r[15]));
            }
        }
    }
}

/// Removes items while the difference remains.
fn reduce(mut items: Vec<Item>, directory: &Path) -> Vec<Item> {
    let mut piece = items.len().div_ceil(2);
    while piece > 0 {
        let mut start = 0;
        while start < items.len() {
            let end = (start + piece).min(items.len());
            let shorter: Vec<Item> = items[..start].iter().chain(&items[end..]).cloned().collect();
            if !shorter.is_empty() && compare(&shorter, directory).is_err() {
                items = shorter;
            } else {
                start = end;
            }
        }
        piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
    }
    items
}

#[test]
fn random_instructions_match_qemu() {
    let wanted = asked("M3_RANDOM_INSTRUCTIONS", 100_000);
    let mut seed = asked("M3_SEED", 1);
    let directory = tempfile::tempdir().expect("a folder for a pipe");
    let mut done = 0;
    while done < wanted {
        let mut generator = Generator::new(Xoshiro256PlusPlus::seed_from_u64(seed));
        let left = (wanted - done) as usize;
        let items = generator.program(ITEMS.min(left / 2 + 1));
        match compare(&items, directory.path()) {
            Ok(count) => {
                agrees_with_whole_blocks(&items);
                done += count;
            }
            Err(difference) => {
                eprintln!("seed {seed}: {difference}\nreducing");
                let reduced = reduce(items, directory.path());
                let why = compare(&reduced, directory.path())
                    .expect_err("a reduced program still differs");
                panic!(
                    "seed {seed}: {difference}\nreduced to {reduced:04x?} from {CODE:#x} on:\n{why}"
                );
            }
        }
        println!("seed {seed}: {done} instructions the same");
        seed += 1;
    }
}

/// Execution by blocks and by single instructions gives the same state.
fn agrees_with_whole_blocks(items: &[Item]) {
    let image = Image::new(items);
    let mut stepped = machine(&image);
    let steps = loop {
        let limit = stepped.instructions + 1;
        match stepped.run(Limits { instructions: limit }) {
            Stop::InstructionLimit { .. } => {}
            _ => break stepped.instructions,
        }
    };
    let mut whole = machine(&image);
    assert_eq!(whole.run(Limits { instructions: u64::MAX }), Stop::Exit { code: 0 });
    assert_eq!(whole.instructions, steps);
    assert_eq!(whole.core.registers, stepped.core.registers);
    let window =
        |machine: &Machine| machine.core.memory.slice(0x2000_0000, 0x8000).map(<[u8]>::to_vec);
    assert_eq!(window(&whole), window(&stepped));
}
