// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each cycle rule compared with a count that follows from its source. `--nocapture` prints a
//! table.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use warifu_m3::chip::Chip;
use warifu_m3::machine::{Limits, Machine};
use warifu_m3::stop::Stop;
use warifu_m3::timing::{CORTEX_M3, Cycles, Rules};

const CODE: u32 = 0x2000;
const AROUND: &str = "mov.w r12, #1\nmov.w r12, #1\n";

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    rules: Vec<String>,
    asm: String,
    cycles: Expected,
    why: String,
    memory: Option<u32>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Expected {
    One(u64),
    Band([u64; 2]),
}

impl Expected {
    fn cycles(self) -> Cycles {
        match self {
            Expected::One(cycles) => Cycles::both(cycles),
            Expected::Band([low, high]) => Cycles { low, high },
        }
    }
}

fn cases() -> Vec<Case> {
    toml::from_str::<Cases>(include_str!("cases.toml")).expect("cases.toml is read").case
}

/// Assembles and links code at `CODE`.
fn assemble(asm: &str, directory: &Path) -> Vec<u8> {
    let file = |name: &str| directory.join(name);
    let text = format!(
        ".syntax unified\n.thumb\n{AROUND}{}\n{AROUND}bkpt 1\n.ltorg\n",
        asm.replace("; ", "\n")
    );
    std::fs::write(file("case.s"), text).expect("the source is written");
    let run = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).current_dir(directory).status();
        assert!(
            status.expect("the Arm toolchain is installed: scripts/setup --with tests").success(),
            "{asm}"
        );
    };
    run("arm-none-eabi-as", &["-mcpu=cortex-m3", "case.s", "-o", "case.o"]);
    run("arm-none-eabi-ld", &["-Ttext=0x2000", "--entry=0x2001", "case.o", "-o", "case.elf"]);
    run("arm-none-eabi-objcopy", &["-O", "binary", "-j", ".text", "case.elf", "case.bin"]);
    std::fs::read(file("case.bin")).expect("the code is read")
}

fn run(code: &[u8], memory: Option<u32>) -> Cycles {
    // BX LR
    run_with(code, memory, [&[0x4770], &[0x4770]])
}

/// Runs code with handlers of SVC at 0x1000 and PendSV at 0x1100.
fn run_with(code: &[u8], memory: Option<u32>, handlers: [&[u16]; 2]) -> Cycles {
    let chip: Chip = "mps2-an385".parse().expect("a known chip");
    let mut machine =
        Machine::new(&chip, Rules::cortex_m3().expect("rules")).expect("a memory map");
    // Vectors and handlers.
    assert!(machine.core.memory.program(0, &0x2000_1000u32.to_le_bytes()));
    assert!(machine.core.memory.program(4, &(CODE | 1).to_le_bytes()));
    for (vector, at, handler) in [(11u32, 0x1000u32, handlers[0]), (14, 0x1100, handlers[1])] {
        assert!(machine.core.memory.program(vector * 4, &(at | 1).to_le_bytes()));
        let bytes: Vec<u8> = handler.iter().flat_map(|half| half.to_le_bytes()).collect();
        assert!(machine.core.memory.program(at, &bytes));
    }
    assert!(machine.core.memory.program(CODE, code));
    machine.core.reset(0).expect("it starts");
    let values = [0x2000_0100, 0x2000_0200, 3, 0x1234_5678, 4, 7, 0xffff, 0xffff_fff0];
    machine.core.registers.r[..8].copy_from_slice(&values);
    if let Some(value) = memory {
        assert!(machine.core.memory.set_word(0x2000_0100, value));
    }
    let stop = machine.run(Limits { instructions: 100_000 });
    assert!(matches!(stop, Stop::Breakpoint { number: 1, .. }), "{stop}");
    machine.core.clock
}

#[test]
fn rules_give_cycles_of_their_sources() {
    let directory = tempfile::tempdir().expect("a folder");
    let around = run(&assemble("", directory.path()), None);
    let mut wrong = Vec::new();
    println!("| rules | code | cycles by source | counted | source |\n|---|---|---|---|---|");
    for case in cases() {
        let counted = run(&assemble(&case.asm, directory.path()), case.memory) - around;
        let expected = case.cycles.cycles();
        println!(
            "| {} | `{}` | {expected} | {counted} | {} |",
            case.rules.join(", "),
            case.asm,
            case.why
        );
        if counted != expected {
            wrong.push(format!("{}: {expected} by its source, {counted} counted", case.asm));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Blocks of decoded instructions are cut at some length: wherever that falls, the rules that look
/// at the instruction before must see it.
#[test]
fn long_straight_code_costs_what_its_parts_cost() {
    let directory = tempfile::tempdir().expect("a folder");
    let around = run(&assemble("", directory.path()), None);
    for (part, alone) in [
        ("add r9, r0, #4; ldr r10, [r9]", Cycles { low: 3, high: 4 }),
        ("add.w r8, r8, #1; add r9, r0, #4; str r4, [r9]", Cycles { low: 3, high: 4 }),
        ("movs r4, r5; it eq; addeq r4, r4, r5", Cycles::both(2)),
    ] {
        assert_eq!(run(&assemble(part, directory.path()), None) - around, alone, "{part}");
        // One instruction more moves the cuts to another place of the part.
        for shift in 0..3 {
            let shifts = vec!["mov.w r12, #1"; shift].join("; ");
            let code = format!("{shifts}; .rept 667; {part}; .endr");
            let counted = run(&assemble(&code, directory.path()), None) - around;
            let expected = Cycles {
                low: alone.low * 667 + shift as u64,
                high: alone.high * 667 + shift as u64,
            };
            assert_eq!(counted, expected, "{part}, {shift}");
        }
    }
}

/// A loop of instructions whose cost depends on their neighbours, after a set-up of SysTick.
fn cycles_with_timer(control: u32, reload: u32, directory: &Path) -> Cycles {
    let code = format!(
        "ldr r8, 3f; movw r9, #{reload}; str r9, [r8, #4]; mov r9, #0; str r9, [r8, #8]; \
         mov r9, #{control}; str r9, [r8]; mov.w r11, #1000; b 2f; \
         .balign 4; 3: .word 0xe000e010; .balign 4; \
         2: movs r4, r5; it eq; addeq r4, r4, r5; add r9, r0, #4; ldr r10, [r9]; str r4, [r0], #4; \
         str r5, [r0], #-4; subs.w r11, r11, #1; bne 2b; mov r9, #0; str r9, [r8]"
    );
    run(&assemble(&code, directory), None)
}

#[test]
fn running_timer_changes_no_cycles() {
    let directory = tempfile::tempdir().expect("a folder");
    let stopped = cycles_with_timer(0, 60_000, directory.path());
    assert!(stopped.low < stopped.high && stopped.high > 10_000, "{stopped}");
    // No interrupt occurs: it is disabled, or due after the end.
    for (control, reload) in [(5, 60_000), (5, 100), (7, 60_000), (7, stopped.high as u32 + 50)] {
        assert_eq!(
            cycles_with_timer(control, reload, directory.path()),
            stopped,
            "{control} {reload}"
        );
    }
}

#[test]
fn every_rule_has_a_case() {
    let rules: toml::Table = toml::from_str(CORTEX_M3).expect("rules.toml is a table");
    let tried: BTreeSet<String> = cases().into_iter().flat_map(|case| case.rules).collect();
    let untried: Vec<&String> = rules.keys().filter(|rule| !tried.contains(*rule)).collect();
    // Tail-chaining needs two exceptions: see `pending_exception_is_tail_chained`.
    assert_eq!(untried, ["tail_chain"]);
}

/// SVC's handler pends PendSV, which cannot preempt it and follows without a return.
#[test]
fn pending_exception_is_tail_chained() {
    let directory = tempfile::tempdir().expect("a folder");
    let code = assemble(
        "ldr r8, 1f; mov r9, #0x10000000; b 2f; .balign 4; 1: .word 0xe000ed04; 2: svc 0",
        directory.path(),
    );
    // mov.w r12, #1; bx lr
    let alone = run_with(&code, None, [&[0xf04f, 0x0c01, 0x4770], &[0x4770]]);
    // str.w r9, [r8]; bx lr
    let followed = run_with(&code, None, [&[0xf8c8, 0x9000, 0x4770], &[0x4770]]);
    // The first instructions of both handlers take one cycle. The difference is tail-chaining, six
    // cycles (TRM section 3.9.1), and BX LR, three.
    assert_eq!(followed - alone, Cycles::both(6 + 3));
}
