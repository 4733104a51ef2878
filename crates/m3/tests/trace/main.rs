// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Execution traces.

#[path = "../common/test_programs.rs"]
mod test_programs;

use std::path::Path;

use warifu_m3::machine::Limits;
use warifu_m3::session::{Session, Setup};
use warifu_m3::stop::Stop;
use warifu_m3::trace::{Part, Tracer};

fn session(file: &[u8]) -> Session {
    let setup = Setup { chip: "mps2-an385".into(), ..Setup::default() };
    Session::new(file, &setup).expect("it can be run")
}

fn traced(file: &[u8], part: impl Fn(&Session) -> Part, most: u64) -> (String, Tracer, Session) {
    let mut session = session(file);
    let mut tracer = Tracer::new(&session.program, part(&session), most);
    let stop = session.machine.run_observed(Limits { instructions: 1_000_000 }, &mut tracer);
    let stopped = session.describe(&stop);
    let text = tracer.take();
    assert!(!text.contains("  \n"), "no spaces at the end of a line");
    assert!(matches!(stop, Stop::Exit { .. } | Stop::Fault { .. }), "{stopped}");
    (text, tracer, session)
}

fn effects() -> Vec<u8> {
    test_programs::compile_alone("trace/effects.S")
}

fn place(session: &Session, text: &str) -> Option<u32> {
    session.program.place(text)
}

/// The first word after the address of each line of an instruction, without its offset.
fn functions(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = text
        .lines()
        .filter(|line| line.get(11..13) != Some("--"))
        .filter_map(|line| line.get(20..)?.split([' ', '+']).next())
        .collect();
    names.dedup();
    names
}

/// With `WARIFU_UPDATE_GOLDENS=1` the golden trace is written anew (`make golden`).
#[test]
fn trace_is_the_golden_one() {
    let (text, ..) = traced(&effects(), |_| Part::All, u64::MAX);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/trace.txt");
    if std::env::var_os("WARIFU_UPDATE_GOLDENS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &text).expect("the golden trace is written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden trace is there");
    assert!(text == golden, "the trace is now\n{text}");
}

#[test]
fn trace_changes_neither_cycles_nor_registers_and_has_every_instruction() {
    let file = test_programs::compile(&["profile/interrupted.c"], &["-O2"]);
    let mut plain = session(&file);
    plain.machine.run(Limits { instructions: 1_000_000 });
    let (text, tracer, session) = traced(&file, |_| Part::All, u64::MAX);
    assert_eq!(session.machine.core.clock, plain.machine.core.clock);
    assert_eq!(session.machine.core.registers, plain.machine.core.registers);
    assert_eq!(tracer.lines(), plain.machine.instructions);
    assert!(text.contains("-- enters exception 15 (SysTick)"));
    assert!(text.contains("-- returns to Thread mode"));
    // Cycles never go back.
    let cycles: Vec<u64> =
        text.lines().map(|line| line[..10].trim().parse().expect("a cycle")).collect();
    assert!(cycles.is_sorted());
}

#[test]
fn call_is_traced_until_it_returns_each_time() {
    let call =
        |session: &Session| Part::Call(place(session, "accesses").expect("the function is there"));
    let (text, ..) = traced(&effects(), call, u64::MAX);
    assert_eq!(functions(&text), ["accesses"]);
    assert_eq!(text.matches("pop {r5, pc}").count(), 2);
    let leave =
        |session: &Session| Part::Call(place(session, "start").expect("the function is there"));
    let (text, ..) = traced(&effects(), leave, u64::MAX);
    assert_eq!(functions(&text)[..3], ["start", "accesses", "start"], "with what it calls");
}

#[test]
fn sections_begin_and_end_at_their_places() {
    let between = |since: Option<&'static str>, until: Option<&'static str>| {
        move |session: &Session| {
            let at = |text: &str| place(session, text).expect("the place is there");
            Part::Between(since.map(at), until.map(at))
        }
    };
    let file = effects();
    let (text, tracer, _) = traced(&file, between(Some("conditions"), Some("sv_call")), u64::MAX);
    assert_eq!(functions(&text), ["conditions", "start", "accesses", "start"]);
    assert!(!tracer.is_done(), "it may begin again");
    let (text, tracer, _) = traced(&file, between(None, Some("accesses+0x2")), u64::MAX);
    assert_eq!(functions(&text), ["start", "accesses"]);
    assert!(tracer.is_done() && !tracer.is_cut());
    let (text, ..) = traced(&file, between(Some("leave"), None), u64::MAX);
    assert_eq!(functions(&text), ["leave"]);
}

#[test]
fn limit_cuts_the_trace_and_not_the_run() {
    let (text, tracer, session) = traced(&effects(), |_| Part::All, 5);
    assert_eq!((text.lines().count(), tracer.lines()), (5, 5));
    assert!(tracer.is_done() && tracer.is_cut());
    assert!(session.machine.instructions > 5);
}

#[test]
fn places_are_symbols_offsets_and_addresses() {
    let session = session(&effects());
    let start = place(&session, "start").expect("a symbol");
    assert_eq!(place(&session, "start+0x2"), Some(start + 2));
    assert_eq!(place(&session, &format!("{start:#x}")), Some(start));
    for text in ["", "nowhere", "start+2", "start+0x", "0x", "0x+1", "0x100000000", "+0x2"] {
        assert_eq!(place(&session, text), None, "{text}");
    }
}
