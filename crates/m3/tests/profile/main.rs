// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles of programs with known calls, stacks and heap, at several optimisation levels.

mod bounds;
mod interruptions;
mod stacks;
#[path = "../common/test_programs.rs"]
mod test_programs;

use warifu_m3::machine::Limits;
use warifu_m3::profile::report::FunctionRow;
use warifu_m3::profile::{Profiler, Report};
use warifu_m3::session::{Session, Setup};
use warifu_m3::stop::Stop;
use warifu_m3::timing::Cycles;

fn bare(level: &str, source: &str) -> Vec<u8> {
    test_programs::compile(&[source], &[level])
}

fn profile(file: &[u8]) -> (Session, Report) {
    let setup = Setup { chip: "mps2-an385".into(), ..Setup::default() };
    let mut session = Session::new(file, &setup).expect("it can be run");
    let mut profiler = Profiler::new(&session.program, &session.machine);
    let stop = session.machine.run_observed(Limits { instructions: 10_000_000 }, &mut profiler);
    assert_eq!(stop, Stop::Exit { code: 0 }, "{}", session.describe(&stop));
    let report = profiler.report(&session.machine.core);
    (session, report)
}

fn row<'a>(report: &'a Report, name: &str) -> &'a FunctionRow {
    let found = report.functions.iter().find(|function| function.name == name);
    found.unwrap_or_else(|| panic!("{name} was executed: {:#?}", report.functions))
}

fn word(session: &Session, name: &str) -> u32 {
    let at = session.program.object(name).expect("the program has it").address;
    session.machine.core.memory.peek(at).expect("it is in memory")
}

fn calls(report: &Report, caller: &str, callee: &str) -> u64 {
    let of = |edge: &&warifu_m3::profile::report::EdgeRow| {
        edge.caller == caller && edge.callee == callee
    };
    report.edges.iter().filter(of).map(|edge| edge.calls).sum()
}

fn plus(cycles: impl Iterator<Item = Cycles>) -> Cycles {
    cycles.fold(Cycles::default(), |sum, one| sum + one)
}

/// Every cycle and instruction belongs to one function, one address and one call path, and every
/// byte of a stack to one function.
fn balances(session: &Session, report: &Report) {
    let whole = session.machine.core.clock;
    let functions = plus(report.functions.iter().map(|function| function.sum.exclusive));
    assert_eq!(functions + report.asleep, whole);
    assert_eq!(plus(report.stacks.iter().map(|(_, cycles)| *cycles)) + report.asleep, whole);
    let roots = report.edges.iter().filter(|edge| edge.caller.is_empty());
    assert_eq!(plus(roots.map(|edge| edge.inclusive)) + report.asleep, whole);
    let counted: u64 = report.addresses.iter().map(|(_, count)| count.instructions).sum();
    assert_eq!(counted, session.machine.instructions);
    let counted: u64 = report.functions.iter().map(|function| function.sum.instructions).sum();
    assert_eq!(counted, session.machine.instructions);
    for (deepest, frames) in &report.deepest {
        assert_eq!(frames.iter().map(|(_, bytes)| bytes).sum::<u32>(), deepest.bytes());
    }
}

#[test]
fn routines_without_type_and_size_extend_to_the_next_label() {
    let (session, report) = profile(&bare("-O1", "profile/labels.c"));
    balances(&session, &report);
    // MOV takes one cycle and BX LR three.
    for (name, cycles) in [("sized", 4), ("plain_short", 4), ("plain_long", 53)] {
        let found = row(&report, name);
        assert_eq!(found.sum.exclusive, Cycles::both(3 * cycles), "{name}");
        assert_eq!(calls(&report, "main", name), 3, "{name}");
    }
    assert!(report.functions.iter().all(|function| !function.name.starts_with("inside")));
}

#[test]
fn call_counts_at_each_optimisation_level() {
    for level in ["-O0", "-Og", "-O2", "-Os"] {
        let (session, report) = profile(&bare(level, "profile/calls.c"));
        balances(&session, &report);
        assert_eq!(
            calls(&report, "main", "leaf"),
            3 + u64::from(level != "-O0" && level != "-Og"),
            "{level}"
        );
        assert_eq!(row(&report, "leaf").sum.calls, 6, "{level}");
        assert_eq!(row(&report, "recursive").sum.calls, 6, "{level}");
        assert_eq!(calls(&report, "recursive", "recursive"), 5, "{level}");
        assert_eq!(row(&report, "jumps").sum.calls, 4, "{level}");
        // After longjmp the caller is `caught`.
        assert_eq!(calls(&report, "caught", "leaf"), 1, "{level}: {:#?}", report.edges);
        assert_eq!(calls(&report, "", "sys_tick"), 5, "{level}");
        assert_eq!(calls(&report, "sys_tick", "handled"), 5, "{level}");
        assert_eq!(calls(&report, "waits", "sys_tick"), 0, "{level}");
        // It sleeps through most of the five periods.
        assert!((20_000..25_010).contains(&report.asleep.high), "{level}: {}", report.asleep);
        let main = row(&report, "main").sum;
        assert_eq!(calls(&report, "start_c", "main"), 1);
        assert!(
            main.inclusive.high > main.exclusive.high && main.inclusive.low <= main.inclusive.high
        );
    }
}

#[test]
fn call_cycles_match_clock_between_marks() {
    let (session, report) = profile(&bare("-O2", "profile/calls.c"));
    let marks = &session.machine.core.memory.ports.marks;
    assert_eq!(report.sections.len(), 4);
    assert_eq!(report.sections.iter().map(|section| section.mark).collect::<Vec<_>>(), *marks);
    // Between the marks `deep` and `jumps` there are two calls and a few instructions of main.
    let between = marks[2].at - marks[1].at;
    let called = ["recursive", "wide"].map(|name| {
        let edge = report.edges.iter().find(|edge| edge.caller == "main" && edge.callee == name);
        edge.expect("main calls it").inclusive
    });
    let rest = between - called[0] - called[1];
    assert!((2..=16).contains(&rest.high), "{rest} of {between}");
}

#[test]
fn deepest_stack_lists_functions_and_bytes() {
    for level in ["-O0", "-O2", "-Os"] {
        let (session, report) = profile(&bare(level, "profile/calls.c"));
        let top = session.program.label("__stack_top").expect("the linker script's");
        let (deepest, frames) = &report.deepest[0];
        assert_eq!(report.deepest.len(), 1);
        assert_eq!(deepest.top, top);
        let names: Vec<&str> = frames.iter().map(|(name, _)| name.as_str()).collect();
        let leaf = if level == "-O0" { &["leaf"][..] } else { &[] };
        assert_eq!(names[..3], ["start_c", "main", "wide"], "{level}: {frames:?}");
        assert_eq!(names[3..names.len().min(4)], *leaf, "{level}: {frames:?}");
        assert_eq!(frames.iter().map(|(_, bytes)| bytes).sum::<u32>(), deepest.bytes());
        let wide = row(&report, "wide").stack;
        assert!((512..560).contains(&wide), "{level}: {wide}");
        assert_eq!(frames[2].1, wide);
        // A function left by longjmp only has a frame too.
        assert!(row(&report, "jumps").stack >= 8, "{level}");
        // Only the section of the deepest call is that deep.
        let depths: Vec<u32> = report.sections.iter().map(|section| section.stack).collect();
        assert_eq!(depths[1], deepest.bytes());
        assert!(depths[0] < 100 && depths[2] < 200, "{level}: {depths:?}");
        // An exception pushes eight words.
        assert!(depths[3] >= depths[0].min(8) + 32, "{level}: {depths:?}");
    }
}

#[test]
fn newlib_heap_statistics() {
    for library in ["-lc", "--specs=nano.specs"] {
        let options = ["-O2", "-Wno-alloc-size-larger-than", library];
        let file = test_programs::compile_hosted(&["profile/heap.c"], &options);
        let (session, report) = profile(&file);
        balances(&session, &report);
        let heap = report.heap.expect("newlib's allocator is there");
        // The peak is 300 bytes and 1000 bytes grown to 3000. The block of 200 is never freed, nor
        // is what the library allocates before `main`.
        let own = heap.live - 200;
        assert!(own < 1000, "{library}: {heap:?}");
        assert_eq!((heap.peak - own, heap.failures), (3300, 1), "{library}: {heap:?}");
        assert!(heap.allocations >= 6 && heap.grown >= 3300, "{library}: {heap:?}");
        let peaks: Vec<u64> = report.sections.iter().map(|section| section.heap - own).collect();
        assert_eq!(peaks, [3300, 3300], "{library}");
    }
}

#[test]
fn source_lines_with_and_without_debug_information() {
    let file = bare("-O2", "profile/calls.c");
    let (session, report) = profile(&file);
    let rows = report.lines(
        |address| session.program.symbol_at(address).map(|symbol| (symbol.name.clone(), 7)),
        |address| session.program.describe(address),
    );
    // With one line a function, lines are functions.
    for function in &report.functions {
        let row = rows.iter().find(|row| row.place.0 == function.name).expect("a row");
        assert_eq!(row.count.instructions, function.sum.instructions, "{}", function.name);
    }
    let none = report.lines(|_| None, |_| "f".to_owned());
    assert_eq!(none.len(), 1);
    assert_eq!(none[0].count.instructions, session.machine.instructions);
}

#[test]
fn flame_graph_and_folded_stacks() {
    let (session, report) = profile(&bare("-O2", "profile/calls.c"));
    let folded = report.folded();
    assert!(folded.lines().any(|line| line.starts_with("start_c;main;wide;leaf ")), "{folded}");
    assert!(folded.lines().any(|line| line.starts_with("sys_tick;handled ")), "{folded}");
    let sum: u64 =
        folded.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
    assert_eq!(sum + report.asleep.high, session.machine.core.clock.high);
    let picture = report.flame_graph("calls").expect("a picture");
    assert!(picture.contains("<svg") && picture.contains("recursive"), "{picture}");
    assert_eq!(picture, report.flame_graph("calls").expect("a picture"));
}

#[test]
fn pauses_do_not_change_a_run() {
    for level in ["-O0", "-O2"] {
        let file = bare(level, "profile/calls.c");
        let (whole, _) = profile(&file);
        let setup = Setup { chip: "mps2-an385".into(), ..Setup::default() };
        let mut paused = Session::new(&file, &setup).expect("it can be run");
        let mut pauses = 0;
        let stop = loop {
            paused.machine.pause_at = paused.machine.instructions + 7;
            match paused.machine.run(Limits { instructions: 10_000_000 }) {
                Stop::Paused => pauses += 1,
                stop => break stop,
            }
        };
        assert_eq!(stop, Stop::Exit { code: 0 });
        assert!(pauses > 20, "{pauses}");
        assert_eq!(paused.machine.core.clock, whole.machine.core.clock);
        assert_eq!(paused.machine.core.registers, whole.machine.core.registers);
        assert_eq!(paused.machine.instructions, whole.machine.instructions);
    }
}

#[test]
fn failed_exception_entry_counts_cycles() {
    let setup = Setup { chip: "mps2-an385".into(), deliver_faults: true, ..Setup::default() };
    let file = test_programs::compile(&["command-line/ends.c"], &["-O2", "-DEND=1"]);
    let mut session = Session::new(&file, &setup).expect("it can be run");
    // HardFault's vector lacks the Thumb bit.
    assert!(session.machine.core.memory.set_word(12, 0x100));
    let mut profiler = Profiler::new(&session.program, &session.machine);
    let stop = session.machine.run_observed(Limits { instructions: 1000 }, &mut profiler);
    assert!(matches!(stop, Stop::ExceptionEntry { .. }), "{stop}");
    let report = profiler.report(&session.machine.core);
    let functions = plus(report.functions.iter().map(|function| function.sum.exclusive));
    assert_eq!(functions + report.asleep, session.machine.core.clock);
}
