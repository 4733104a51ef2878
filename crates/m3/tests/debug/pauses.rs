// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run that pauses anywhere goes on as if it had not.

use warifu_m3::core::{Core, Operation};
use warifu_m3::machine::{Limits, Machine, Observer, Unobserved};
use warifu_m3::session::{Session, Setup};
use warifu_m3::stop::Stop;
use warifu_m3::timing::Cycles;

use crate::{MOST, session, test_programs};

/// Pauses after every so many instructions.
struct Pausing {
    every: u64,
    since: u64,
}

impl Observer for Pausing {
    const PAUSES: bool = true;

    fn pauses_at(&mut self, _address: u32) -> bool {
        self.since >= self.every
    }

    fn before(&mut self, _core: &Core, _operation: &Operation) {
        self.since += 1;
    }

    fn after(&mut self, _core: &mut Core, _operation: &Operation, _now: Cycles) {}
}

fn end(file: &[u8], run: impl FnMut(&mut Machine) -> Stop) -> (String, u64, u64) {
    end_of(session(file), run)
}

fn end_of(mut session: Session, mut run: impl FnMut(&mut Machine) -> Stop) -> (String, u64, u64) {
    let mut pauses = 0;
    let stop = loop {
        match run(&mut session.machine) {
            Stop::Paused => pauses += 1,
            stop => break stop,
        }
    };
    let machine = &session.machine;
    let text = String::from_utf8_lossy(&machine.semihosting.output);
    let seen = format!(
        "{stop:?} {:?} {} {:?} {text}",
        machine.core.clock, machine.instructions, machine.core.registers
    );
    (seen, pauses, machine.instructions)
}

const LIMITS: Limits = Limits { instructions: MOST };

#[test]
fn pauses_change_neither_cycles_nor_state() {
    for (file, level) in [
        ("profile/interrupted.c", "-O2"),
        ("programs/sleep.c", "-O1"),
        ("programs/exceptions.c", "-O2"),
        ("bench/mixed.c", "-O2"),
    ] {
        let program = test_programs::compile(&[file], &[level, "-Wno-unused-function"]);
        let (plain, _, instructions) = end(&program, |machine| machine.run(LIMITS));
        for every in [1, 2, 3, 7, 100] {
            if instructions / every > 1_000_000 {
                continue;
            }
            let (paused, pauses, _) = end(&program, |machine| {
                machine.run_observed(LIMITS, &mut Pausing { every, since: 0 })
            });
            assert_eq!(paused, plain, "{file}, every {every}");
            assert!(pauses >= instructions / every / 2, "{file}: {pauses} pauses");
        }
    }
}

/// Flash whose lines are kept and read ahead has state of its own.
#[test]
fn pauses_change_no_cycles_of_a_flash_that_is_read_by_lines() {
    let chip = "name = \"lines\"
source = \"none: a test\"
priority-bits = 4
vector-table = 0
[[memory]]
name = \"flash\"
address = 0
bytes = \"4 MiB\"
writable = false
lines = { bytes = 16, code = 2, data = 1, prefetch = true }
[[memory]]
name = \"sram\"
address = 0x20000000
bytes = \"4 MiB\"
writable = true
";
    let program = test_programs::compile(&["profile/interrupted.c"], &["-O2"]);
    let start = || {
        let setup = Setup {
            chip_file: Some(chip.to_owned()),
            wait_states: vec![("flash".to_owned(), 4)],
            ..Setup::default()
        };
        Session::new(&program, &setup).expect("it can be run")
    };
    let (plain, ..) = end_of(start(), |machine| machine.run(LIMITS));
    for every in [1, 3, 50] {
        let (paused, ..) = end_of(start(), |machine| {
            machine.run_observed(LIMITS, &mut Pausing { every, since: 0 })
        });
        assert_eq!(paused, plain, "every {every}");
    }
}

/// Straight code is decoded in blocks that are cut somewhere: a pause there must not hide the
/// instruction before.
#[test]
fn pauses_between_blocks_change_no_cycles_of_straight_code() {
    for shift in 0..2 {
        let source = tempfile::Builder::new().suffix(".c").tempfile().expect("a file");
        // A load whose address is computed by the instruction before may take a cycle more.
        let pair = "add r3, r1, #0\\n ldr r0, [r3]\\n";
        let code = format!(
            "int main(void) {{ static int x; register int *r1 __asm__(\"r1\") = &x; \
             __asm__ volatile(\"{}{}\" :: \"r\"(r1) : \"r0\", \"r3\", \"memory\"); return 0; }}",
            "mov.w r3, #1\\n ".repeat(shift),
            pair.repeat(1000)
        );
        std::fs::write(source.path(), code).expect("written");
        let path = source.path().display().to_string();
        let program = test_programs::compile(&[&path], &["-O1"]);
        let (plain, ..) = end(&program, |machine| machine.run(LIMITS));
        let (sliced, pauses, _) = end(&program, |machine| {
            machine.pause_at = machine.instructions + 1;
            machine.run_observed(LIMITS, &mut Unobserved)
        });
        assert_eq!(sliced, plain, "{shift}");
        assert!(pauses > 8, "{pauses}");
    }
}
