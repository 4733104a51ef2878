// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C programs at several optimisation levels: registers after each instruction, and output.

use std::path::{Path, PathBuf};
use std::process::Command;

use warifu_m3::chip::Chip;
use warifu_m3::machine::{Limits, Machine};
use warifu_m3::program::Program;
use warifu_m3::stop::Stop;
use warifu_m3::timing::Rules;

use crate::lockstep;
use crate::oracle::{Oracle, board};

const LEVELS: [&str; 3] = ["-O0", "-O2", "-Os"];

/// Compiles one of test-programs/programs.
fn compile(name: &str, level: &str, directory: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("test-programs");
    let elf = directory.join(format!("{name}{level}.elf"));
    let status = Command::new("arm-none-eabi-gcc")
        .args([
            "-mcpu=cortex-m3",
            "-mthumb",
            "-g",
            "-Wall",
            "-Werror",
            "-ffreestanding",
            "-nostartfiles",
            level,
            "-T",
        ])
        .arg(folder.join("mps2-an385.ld"))
        .arg(folder.join("start.c"))
        .arg(folder.join("programs").join(format!("{name}.c")))
        .arg("-o")
        .arg(&elf)
        .status();
    assert!(
        status.expect("the Arm toolchain is installed: scripts/setup --with tests").success(),
        "{name} {level}"
    );
    elf
}

fn machine(elf: &Path) -> Machine {
    let chip: Chip = "mps2-an385".parse().expect("a known chip");
    let mut machine =
        Machine::new(&chip, Rules::cortex_m3().expect("rules")).expect("a memory map");
    machine.deliver_faults = true;
    let program = Program::parse(&std::fs::read(elf).expect("the program")).expect("an ELF file");
    program.load(&mut machine, &chip).expect("it fits");
    machine
}

/// Standard output of the program in QEMU. Single-stepped: in longer translation blocks QEMU 7.2
/// shows stale registers after a trapped division by zero.
fn output_of_qemu(elf: &Path) -> String {
    let output = board()
        .args([
            "-chardev",
            "stdio,id=console",
            "-semihosting-config",
            "enable=on,target=native,chardev=console",
        ])
        .args(["-singlestep", "-kernel"])
        .arg(elf)
        .output()
        .expect("qemu-system-arm is installed: scripts/setup --with tests");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn output_of_ours(elf: &Path) -> (String, u64) {
    let mut machine = machine(elf);
    assert_eq!(machine.run(Limits { instructions: 100_000_000 }), Stop::Exit { code: 0 });
    (String::from_utf8(machine.semihosting.output).expect("text"), machine.instructions)
}

#[test]
fn program_output_matches_qemu() {
    let directory = tempfile::tempdir().expect("a folder");
    for name in ["arithmetic", "structures", "exceptions", "clock", "system"] {
        let mut before: Option<String> = None;
        for level in LEVELS {
            let elf = compile(name, level, directory.path());
            let (ours, instructions) = output_of_ours(&elf);
            assert!(!ours.is_empty());
            assert_eq!(ours, output_of_qemu(&elf), "{name} {level}");
            // The output does not depend on the optimisation level, except for stack addresses.
            if name != "exceptions" && before.as_ref().is_some_and(|before| *before != ours) {
                panic!("{name} prints something else with {level}");
            }
            println!("{name} {level}: {instructions} instructions, the same output");
            before = Some(ours);
        }
    }
}

/// QEMU may end WFI at any time and does not implement sleep-on-exit: the expected output follows
/// DDI 0403E sections B1.5.18 and B1.5.19.
#[test]
fn sleep_ends_at_each_tick() {
    let directory = tempfile::tempdir().expect("a folder");
    for level in LEVELS {
        let (output, _) = output_of_ours(&compile("sleep", level, directory.path()));
        assert_eq!(
            output,
            "00000006 sleeps for six ticks\n00000006 ticks before the thread goes on\n"
        );
    }
}

#[test]
fn program_registers_match_qemu() {
    let directory = tempfile::tempdir().expect("a folder");
    // The architecture does not define the instruction at which a software-pended interrupt is
    // taken: exceptions.c is left out.
    for name in ["arithmetic", "structures"] {
        for level in LEVELS {
            let elf = compile(name, level, directory.path());
            let mut oracle = Oracle::start(&elf, directory.path());
            match lockstep(machine(&elf), &mut oracle, 20_000_000) {
                Ok(count) => println!("{name} {level}: {count} instructions the same"),
                Err(difference) => panic!("{name} {level}: {difference}"),
            }
        }
    }
}
