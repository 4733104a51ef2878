// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interrupts between any two instructions.

use crate::{balances, bare, calls, profile, row, test_programs, word};

/// An interrupt between a jump and its target loses neither.
#[test]
fn interrupts_between_any_two_instructions_keep_calls_and_returns() {
    for level in ["-O0", "-O2", "-Os"] {
        let (session, report) = profile(&bare(level, "profile/interrupted.c"));
        balances(&session, &report);
        let ticks = u64::from(word(&session, "ticks"));
        assert!(ticks > 1000, "{level}: {ticks}");
        assert_eq!(calls(&report, "", "sys_tick"), ticks, "{level}");
        assert_eq!(calls(&report, "", "pend_sv"), u64::from(word(&session, "pended")), "{level}");
        for (caller, callee) in
            [("main", "calls_leaf"), ("main", "tail"), ("calls_leaf", "leaf"), ("main", "malloc")]
        {
            let times = if callee == "malloc" { 501 } else { 3000 };
            assert_eq!(calls(&report, caller, callee), times, "{level}: {caller} {callee}");
        }
        // At -O0 `tail` calls `leaf`; otherwise it is a tail call, which counts for the caller.
        let (direct, by_tail) = if level == "-O0" { (3000, 3000) } else { (6000, 0) };
        assert_eq!(calls(&report, "main", "leaf"), direct, "{level}");
        assert_eq!(calls(&report, "tail", "leaf"), by_tail, "{level}");
        assert_eq!(row(&report, "main").sum.calls, 1, "{level}");
        let heap = report.heap.expect("newlib's allocator is there");
        assert_eq!((heap.live, heap.peak), (40, 599), "{level}: {heap:?}");
        assert_eq!((heap.allocations, heap.failures), (501, 0), "{level}: {heap:?}");
    }
}

/// Each function executes as many instructions as without interrupts.
#[test]
fn instruction_counts_under_interrupts() {
    let quiet = test_programs::compile(&["profile/interrupted.c"], &["-O2", "-DQUIET"]);
    let (_, quiet) = profile(&quiet);
    let (_, report) = profile(&bare("-O2", "profile/interrupted.c"));
    for name in ["leaf", "calls_leaf", "tail", "main", "_malloc_r", "_free_r"] {
        let of = |report| row(report, name).sum.instructions;
        assert_eq!(of(&report), of(&quiet), "{name}");
    }
}

/// A handler that tail-calls the allocator returns from there.
#[test]
fn handler_tail_calls_allocator() {
    for level in ["-O0", "-O2"] {
        let options = [level, "-DHANDLER_FREES", "-Wno-unused-function"];
        let (session, report) =
            profile(&test_programs::compile(&["profile/interrupted.c"], &options));
        balances(&session, &report);
        assert_eq!(word(&session, "pended"), 3, "{level}");
        let heap = report.heap.expect("newlib's allocator is there");
        assert_eq!((heap.live, heap.peak, heap.allocations), (0, 100, 3), "{level}: {heap:?}");
    }
}

/// A handler that changes the return address causes a jump.
#[test]
fn handler_changes_return_address() {
    let (session, report) = profile(&bare("-O2", "profile/redirected.c"));
    balances(&session, &report);
    assert_eq!(word(&session, "sink"), 5);
    for (caller, callee) in [("main", "redirected"), ("main", "elsewhere"), ("", "sv_call")] {
        assert_eq!(calls(&report, caller, callee), 5, "{caller} {callee}");
    }
    assert_eq!(row(&report, "redirected").sum.instructions, 5);
    assert_eq!(row(&report, "main").sum.calls, 1);
}
