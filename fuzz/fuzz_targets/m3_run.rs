// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any bytes are code, run from any registers, with interrupts, its own faults and its own stores to itself: it
//! ends, and whoever looks on changes nothing and counts every cycle.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warifu_m3::machine::{Limits, Observer, Unobserved};
use warifu_m3::profile::Profiler;
use warifu_m3::session::{Session, Setup};
use warifu_m3::stop::Stop;
use warifu_m3::taint::{PoisonedBy, Secret, Taint};

const FLASH: u32 = 0x0800_0000;
const RAM: u32 = 0x2000_0000;
const MOST: u64 = 3000;

fuzz_target!(|bytes: &[u8]| {
    let [flags, registers @ ..] = bytes else { return };
    let Some((registers, code)) = registers.split_at_checked(13) else { return };
    let file = elf(code);
    let setup = Setup {
        chip: "stm32f103".into(),
        deliver_faults: flags & 1 != 0,
        low_reading: flags & 2 != 0,
        input: code.iter().rev().copied().collect(),
        arguments: "fuzz 1 2 3".into(),
        ..Setup::default()
    };
    let start = || {
        let mut session = Session::new(&file, &setup).expect("it can be loaded");
        for (register, byte) in registers.iter().enumerate() {
            session.machine.core.registers.r[register] = value(*byte);
        }
        session.machine.core.stack_limit = if flags & 4 != 0 { RAM + 0x1000 } else { 0 };
        session
    };
    let mut plain = start();
    let stop = run(&mut plain, &mut Unobserved);
    assert!(plain.machine.instructions <= MOST);
    assert_eq!(plain.describe(&stop).lines().count(), 1);

    let mut watched = start();
    let mut profiler = Profiler::new(&watched.program, &watched.machine);
    assert_eq!(run(&mut watched, &mut profiler), stop);
    same(&plain, &watched);
    let report = profiler.report(&watched.machine.core);
    let counted = report.functions.iter().fold(report.asleep, |sum, one| sum + one.sum.exclusive);
    if !report.functions.is_empty() {
        assert_eq!(counted, watched.machine.core.clock);
    }

    let mut followed = start();
    let mut taint = Taint::new(&followed.machine);
    let by = PoisonedBy::Name("memory".into());
    taint.poison(Secret { address: RAM, bytes: 64, by });
    assert_eq!(run(&mut followed, &mut taint), stop);
    same(&plain, &followed);
});

fn run<O: Observer>(session: &mut Session, observer: &mut O) -> Stop {
    session.machine.run_observed(Limits { instructions: MOST }, observer)
}

fn same(one: &Session, other: &Session) {
    assert_eq!(one.machine.core.registers, other.machine.core.registers);
    assert_eq!(one.machine.core.clock, other.machine.core.clock);
    assert_eq!(one.machine.instructions, other.machine.instructions);
    assert_eq!(one.machine.semihosting.output, other.machine.semihosting.output);
    let memory =
        |session: &Session| session.machine.core.memory.slice(RAM, 20 * 1024).map(<[u8]>::to_vec);
    assert_eq!(memory(one), memory(other));
}

/// Small numbers, addresses in memory, flash, the system registers and the ports, and nothing.
fn value(byte: u8) -> u32 {
    let low = u32::from(byte & 0x1f);
    match byte >> 5 {
        0 | 1 => low,
        2 | 3 => RAM + 8 * low,
        4 => FLASH + 0x100 + 2 * low + 1,
        5 => 0xe000_e000 + 0x80 * low,
        6 => 0xf000_0000 + 0x20 * low,
        _ => low << 27 | low,
    }
}

/// A file with a vector table whose exceptions all go to places in the code.
fn elf(code: &[u8]) -> Vec<u8> {
    let mut table = vec![RAM + 0x5000];
    table.extend((1..64u32).map(|number| FLASH + 0x100 + 8 * (number - 1) + 1));
    let content: Vec<u8> =
        table.into_iter().flat_map(u32::to_le_bytes).chain(code.iter().copied()).collect();
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x28\0".to_vec();
    let half = |value: u16| value.to_le_bytes();
    // Version, entry, program headers, sections, flags; then the lengths of headers and their numbers.
    for word in [1, FLASH + 0x101, 52, 0, 0x0500_0000] {
        file.extend(word.to_le_bytes());
    }
    file.extend([52, 32, 1, 40, 0, 0].into_iter().flat_map(half));
    let length = content.len() as u32;
    for word in [1, 84, FLASH, FLASH, length, length, 5, 4] {
        file.extend(word.to_le_bytes());
    }
    file.extend(content);
    file
}
