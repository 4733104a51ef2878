// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any bytes are an ELF file that can be run and measured on each chip, or one mistake in one line.

use warifu_m3::chip::{Chip, names};
use warifu_m3::machine::Limits;
use warifu_m3::profile::Profiler;
use warifu_m3::program::Program;
use warifu_m3::semihosting::MAX_OUTPUT;
use warifu_m3::session::{Session, Setup};
use warifu_m3::size::Sizes;
use warifu_m3::source::Source;

/// Checks one input.
pub fn check(bytes: &[u8]) {
    for name in names() {
        let chip: Chip = name.parse().expect("a known chip");
        match Sizes::of(bytes, &chip) {
            Ok(sizes) => {
                let whole: u64 = sizes.sections.iter().map(|one| u64::from(one.bytes)).sum();
                let symbols: u64 = sizes.symbols.iter().map(|one| u64::from(one.bytes)).sum();
                assert_eq!(symbols, whole);
                assert!(sizes.flash() <= whole && sizes.memory() <= whole);
            }
            Err(error) => assert_eq!(error.to_string().lines().count(), 1),
        }
    }
    if let Err(error) = Source::parse(bytes).map(|source| source.line(0x0800_0000)) {
        assert_eq!(error.to_string().lines().count(), 1);
    }
    // However many headers name the same bytes, no byte of the chip is loaded twice.
    if let Ok(program) = Program::parse(bytes) {
        let mut end = 0;
        for (address, content) in program.segments() {
            assert!(u64::from(address) >= end && !content.is_empty());
            end = u64::from(address) + content.len() as u64;
        }
    }
    // The smallest chip: its memories are made anew each time.
    let setup = Setup { chip: "stm32f103".into(), ..Setup::default() };
    let mut session = match Session::new(bytes, &setup) {
        Ok(session) => session,
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
            return;
        }
    };
    let mut profiler = Profiler::new(&session.program, &session.machine);
    let stop = session.machine.run_observed(Limits { instructions: 2000 }, &mut profiler);
    // Names of symbols are the file's, and may hold anything.
    assert_eq!(session.describe(&stop).lines().count(), 1);
    assert!(session.machine.semihosting.output.len() <= MAX_OUTPUT);
    let limit = session.machine.core.stack_limit;
    assert!(
        limit == 0
            || session.machine.core.memory.region_of(limit.saturating_sub(1)).is_some()
            || session.machine.core.memory.region_of(limit).is_some(),
        "{limit:#x}"
    );
    let report = profiler.report(&session.machine.core);
    assert_eq!(report.folded().lines().count(), report.stacks.len());
    if !report.stacks.is_empty() {
        report.flame_graph("fuzz").expect("a picture");
    }
}
