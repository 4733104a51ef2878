// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stack depth where the stack pointer is assigned, and on process stacks.

use crate::{balances, profile, row, test_programs, word};

/// A variable-length array in the outermost function does not begin a new stack.
#[test]
fn variable_length_array_in_outermost_function() {
    for (level, thread) in [("-O0", false), ("-O2", false), ("-O0", true), ("-O2", true)] {
        let options = if thread { vec![level, "-DTHREAD"] } else { vec![level] };
        let (session, report) = profile(&test_programs::compile(&["profile/stacks.c"], &options));
        balances(&session, &report);
        assert_eq!(report.deepest.len(), 1 + usize::from(thread));
        let (deepest, frames) = &report.deepest[usize::from(thread)];
        let top = match thread {
            true => word(&session, "thread_top"),
            false => session.program.label("__stack_top").expect("the linker script's"),
        };
        assert_eq!(deepest.top, top, "{level}");
        assert!((4000..4120).contains(&deepest.bytes()), "{level}: {deepest:?}");
        let names: Vec<&str> = frames.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [if thread { "thread" } else { "start_c" }, "deep"], "{level}");
    }
}

/// Start-up code switches stacks after it used one: the deepest of them counts.
#[test]
fn start_up_code_moves_stack_twice() {
    // Constants from literals, and one that MOV can encode.
    let places =
        [0x10_0008, 0x2468, 0x2000].into_iter().flat_map(|at| [(at, "mov sp"), (at, "msr msp")]);
    for (second, by) in places {
        let options = ["-O2", &format!("-DTWICE={second}"), &format!("-DBY=\"{by}\"")];
        let (session, report) = profile(&test_programs::compile(&["profile/stacks.c"], &options));
        balances(&session, &report);
        let (deepest, frames) = &report.deepest[0];
        assert_eq!(deepest.top, 0x2000_0000 + second, "{by}");
        assert!((4000..4040).contains(&deepest.bytes()), "{second:#x} {by}: {deepest:?}");
        assert_eq!(frames.last().map(|(name, _)| name.as_str()), Some("deep"));
    }
}

/// Thousands of frames, each the deepest in its turn.
#[test]
fn deep_recursion_lists_every_frame() {
    let (session, report) =
        profile(&test_programs::compile(&["profile/call_paths.c"], &["-O2", "-DDEEP=50000"]));
    balances(&session, &report);
    let (deepest, frames) = &report.deepest[0];
    let downs: Vec<u32> =
        frames.iter().filter(|(name, _)| name == "down").map(|(_, bytes)| *bytes).collect();
    assert_eq!((downs.len(), frames.len()), (50_001, 50_003));
    assert!(downs.iter().all(|bytes| *bytes == downs[0] && *bytes >= 8), "{deepest:?}");
    assert_eq!(row(&report, "down").stack, downs[0]);
}

/// Registers that a scheduler saves on a thread's stack count: the stack must have room for them.
#[test]
fn thread_stack_includes_registers_saved_by_scheduler() {
    for level in ["-O0", "-O2", "-Os"] {
        let (session, report) =
            profile(&test_programs::compile(&["profile/scheduler.c"], &[level]));
        let used = [word(&session, "used_by_first"), word(&session, "used_by_second")];
        assert!(used[1] > used[0] && used[0] > 64, "{used:?}");
        let threads: Vec<u32> =
            report.deepest[1..].iter().map(|(deepest, _)| deepest.bytes()).collect();
        assert_eq!(threads, used, "{level}");
    }
}

/// The depths of two stacks are not added up.
#[test]
fn main_switches_to_process_stack() {
    let (session, report) = profile(&test_programs::compile(&["profile/control.c"], &["-O2"]));
    balances(&session, &report);
    assert!(row(&report, "main").stack < 64, "{:?}", row(&report, "main"));
    let (deepest, frames) = &report.deepest[1];
    let names: Vec<&str> = frames.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..2], ["main", "thread"], "{frames:?}");
    assert!(names.contains(&"leaf") && (80..160).contains(&deepest.bytes()), "{deepest:?}");
    assert_eq!(frames.iter().map(|(_, bytes)| bytes).sum::<u32>(), deepest.bytes());
}

/// Sleep-on-exit is sleep, as WFI's is.
#[test]
fn sleep_on_exit_counts_as_asleep() {
    let (session, report) = profile(&test_programs::compile(&["programs/sleep.c"], &["-O2"]));
    balances(&session, &report);
    let (asleep, whole) = (report.asleep.high, session.machine.core.clock.high);
    assert!(asleep > 110_000 && whole < 125_000, "{asleep} of {whole}");
}
