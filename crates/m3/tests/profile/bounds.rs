// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs with deeper calls or more call paths than the profiler tracks.

use warifu_m3::machine::Limits;
use warifu_m3::profile::{MAX_BLOCKS, MAX_FRAMES, MAX_NODES, MAX_STACKS, Profiler, Report};
use warifu_m3::session::{Session, Setup};
use warifu_m3::stop::Stop;

use crate::{balances, bare, profile, row, test_programs, word};

#[test]
fn call_paths_beyond_max_nodes_keep_function_counts() {
    let (session, report) = profile(&bare("-O2", "profile/call_paths.c"));
    balances(&session, &report);
    let calls = ["left", "right"].map(|name| row(&report, name).sum.calls);
    // -O2 turns the self tail call at the end of `right` into a loop.
    assert_eq!(calls.iter().sum::<u64>(), u64::from(word(&session, "count")));
    assert!(report.stacks.len() <= MAX_NODES + 2, "{}", report.stacks.len());
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    assert!(report.notes[0].contains("more than 65536 call paths"), "{:?}", report.notes);
    assert_eq!(profile(&bare("-O2", "profile/calls.c")).1.notes, [""; 0]);
}

#[test]
fn endless_recursion_without_stack_is_bounded() {
    let setup = Setup { chip: "mps2-an385".into(), ..Setup::default() };
    let file = test_programs::compile(&["profile/call_paths.c"], &["-O2", "-DENDLESS"]);
    let mut session = Session::new(&file, &setup).expect("it can be run");
    let mut profiler = Profiler::new(&session.program, &session.machine);
    let limits = Limits { instructions: 1_200_000 };
    let stop = session.machine.run_observed(limits, &mut profiler);
    assert_eq!(stop, Stop::InstructionLimit { limit: 1_200_000 });
    let report = profiler.report(&session.machine.core);
    balances(&session, &report);
    // Below it are `start_c` and `main`.
    assert_eq!(row(&report, "endless").sum.calls, MAX_FRAMES as u64 - 2);
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    assert!(report.notes[0].contains("nested deeper than 1048576"), "{:?}", report.notes);
}

/// Runs a variant of `profile/without_number.c`.
fn without_number(variant: &str) -> Report {
    let setup = Setup { chip: "mps2-an385".into(), ..Setup::default() };
    let file = test_programs::compile(&["profile/without_number.c"], &["-O2", variant]);
    let mut session = Session::new(&file, &setup).expect("it can be run");
    let mut profiler = Profiler::new(&session.program, &session.machine);
    let limits = Limits { instructions: 12_000_000 };
    let stop = session.machine.run_observed(limits, &mut profiler);
    let is_done = matches!(stop, Stop::InstructionLimit { .. } | Stop::Exit { code: 0 });
    assert!(is_done, "{}", session.describe(&stop));
    profiler.report(&session.machine.core)
}

#[test]
fn process_stacks_without_number_are_bounded() {
    let report = without_number("-DSTACKS");
    assert_eq!(report.deepest.len(), MAX_STACKS);
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    assert!(report.notes[0].contains("more than 65536 process stacks"), "{:?}", report.notes);
}

#[test]
fn heap_blocks_without_number_are_bounded() {
    let report = without_number("-DBLOCKS");
    let heap = report.heap.expect("the program has an allocator");
    assert_eq!((heap.live, heap.peak), (MAX_BLOCKS as u64, MAX_BLOCKS as u64));
    assert!(heap.allocations > heap.live, "{heap:?}");
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    assert!(report.notes[0].contains("more than 1048576 blocks"), "{:?}", report.notes);
}

#[test]
fn functions_on_all_stacks_together_are_bounded() {
    // Each of the process stacks begins below a thousand calls.
    let report = without_number("-DFUNCTIONS");
    let listed: usize = report.deepest.iter().map(|(deepest, _)| deepest.frames.len()).sum();
    assert!(listed <= 1 << 22, "{listed}");
    let says = |note: &String| note.contains("more than 4194304 functions");
    assert!(report.notes.iter().any(says), "{:?}", report.notes);
}
