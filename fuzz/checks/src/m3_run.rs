// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any bytes are code, run from any registers, with interrupts, faults of its own and stores to
//! itself: it ends, an observer changes nothing and counts every cycle, nor do pauses, a trace has
//! a line for each instruction, and what depends on a secret is marked as secret.

use warifu_m3::core::{Core, Operation};
use warifu_m3::isa::{Instruction, SP};
use warifu_m3::machine::{Limits, Observer, Unobserved};
use warifu_m3::profile::Profiler;
use warifu_m3::semihosting::MAX_OUTPUT;
use warifu_m3::session::{Session, Setup};
use warifu_m3::stop::Stop;
use warifu_m3::taint::{Flag, PoisonedBy, Secret, Taint};
use warifu_m3::timing::Cycles;
use warifu_m3::trace::{Part, Tracer};

const FLASH: u32 = 0x0800_0000;
const RAM: u32 = 0x2000_0000;
const RAM_BYTES: u32 = 20 * 1024;
const SECRET_BYTES: u32 = 64;
const MOST: u64 = 3000;

/// Checks one input.
pub fn check(bytes: &[u8]) {
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
    assert!(plain.machine.semihosting.output.len() <= MAX_OUTPUT);

    let mut watched = start();
    let mut profiler = Profiler::new(&watched.program, &watched.machine);
    assert_eq!(run(&mut watched, &mut profiler), stop);
    same(&plain, &watched);
    let report = profiler.report(&watched.machine.core);
    let counted = report.functions.iter().fold(report.asleep, |sum, one| sum + one.sum.exclusive);
    if !report.functions.is_empty() {
        assert_eq!(counted, watched.machine.core.clock);
    }

    let mut paused = start();
    assert_eq!(run_with_pauses(&mut paused, u64::from(flags >> 3) + 1), stop);
    same(&plain, &paused);

    let mut traced = start();
    let mut tracer = Tracer::new(&traced.program, Part::All, u64::MAX);
    assert_eq!(run(&mut traced, &mut tracer), stop);
    same(&plain, &traced);
    assert!(tracer.lines() <= MOST);
    let text = tracer.take();
    let lines = text.lines().filter(|line| line.get(11..13) != Some("--"));
    assert_eq!(lines.count() as u64, tracer.lines());

    let mut followed = start();
    let mut seen = Followed { taint: Taint::new(&followed.machine), lost: false };
    let by = PoisonedBy::Name("memory".into());
    seen.taint.poison(Secret { address: RAM, bytes: SECRET_BYTES, by });
    assert_eq!(run(&mut followed, &mut seen), stop);
    same(&plain, &followed);
    assert!(seen.taint.labelled() <= MOST * u64::from(128 * 1024 + RAM_BYTES));

    // Another secret: as nothing of it shows, the run is the same, and what differs in the end is
    // marked as secret.
    if seen.lost || !seen.taint.leaks().is_empty() {
        return;
    }
    let mut other = start();
    for at in (RAM..RAM + SECRET_BYTES).step_by(4) {
        assert!(other.machine.core.memory.set_word(at, at.wrapping_mul(0x9e37_79b9)));
    }
    assert_eq!(run(&mut other, &mut Unobserved), stop);
    assert_eq!(other.machine.core.clock, plain.machine.core.clock);
    assert_eq!(other.machine.instructions, plain.machine.instructions);
    differs_where_secret(&plain, &other, &seen.taint);
}

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

fn run_with_pauses(session: &mut Session, every: u64) -> Stop {
    loop {
        let stop = run(session, &mut Pausing { every, since: 0 });
        if stop != Stop::Paused {
            return stop;
        }
    }
}

/// Follows a secret, up to where it is not followed.
struct Followed {
    taint: Taint,
    /// It went to the system registers, the ports, the host, the stack pointer or to code, or may
    /// have.
    lost: bool,
}

impl Observer for Followed {
    fn before(&mut self, core: &Core, operation: &Operation) {
        let register = |register| self.taint.register(register).is_some();
        let from = |register: u8, bytes: u32| {
            let at = core.registers.r[usize::from(register)];
            (0..bytes).any(|index| self.taint.byte(at.wrapping_add(index)).is_some())
        };
        self.lost |= operation.address >= RAM;
        self.lost |= match operation.instruction {
            Instruction::Msr { rn, sysm } => sysm > 3 && register(rn),
            Instruction::Breakpoint { number: 0xab } => {
                // SYS_OPEN's answer depends on bytes elsewhere; SYS_WRITEC and SYS_WRITE0 only
                // print theirs.
                let call = core.registers.r[0];
                call == 1 || register(0) || register(1) || !matches!(call, 3 | 4) && from(1, 16)
            }
            Instruction::Load { address, .. } | Instruction::Store { address, .. } => {
                core.effective_address(address).0 >= 0xdfff_ff00
            }
            ref other => {
                let used = other.operands().address;
                (0..16).any(|base| {
                    used.contains(base) && core.registers.r[usize::from(base)] >= 0xdfff_f000
                })
            }
        };
        self.taint.before(core, operation);
    }

    fn after(&mut self, core: &mut Core, operation: &Operation, now: Cycles) {
        self.taint.after(core, operation, now);
        self.lost |= self.taint.register(SP).is_some();
    }

    fn faulted(&mut self, core: &mut Core, operation: &Operation) {
        self.taint.faulted(core, operation);
    }

    fn semihosting_done(&mut self, core: &Core, written: &[(u32, u32)]) {
        self.taint.semihosting_done(core, written);
    }

    fn exception(&mut self, core: &Core, entered: bool) {
        self.taint.exception(core, entered);
        self.lost |= self.taint.register(SP).is_some();
    }
}

fn differs_where_secret(one: &Session, other: &Session, taint: &Taint) {
    let [a, b] = [one, other].map(|session| session.machine.core.registers);
    for register in 0..15 {
        let differs = a.get(register) != b.get(register);
        assert!(!differs || taint.register(register).is_some(), "r{register} is public");
    }
    for (flag, bit) in [(Flag::N, 31), (Flag::Z, 30), (Flag::C, 29), (Flag::V, 28), (Flag::Q, 27)] {
        let differs = (a.xpsr() ^ b.xpsr()) >> bit & 1 == 1;
        assert!(!differs || taint.flag(flag).is_some(), "{flag:?} is public");
    }
    for (at, (a, b)) in (RAM..).zip(memory(one).iter().zip(memory(other))) {
        assert!(a == b || taint.byte(at).is_some(), "the byte at {at:#x} is public");
    }
}

fn run<O: Observer>(session: &mut Session, observer: &mut O) -> Stop {
    session.machine.run_observed(Limits { instructions: MOST }, observer)
}

fn same(one: &Session, other: &Session) {
    assert_eq!(one.machine.core.registers, other.machine.core.registers);
    assert_eq!(one.machine.core.clock, other.machine.core.clock);
    assert_eq!(one.machine.instructions, other.machine.instructions);
    assert_eq!(one.machine.semihosting.output, other.machine.semihosting.output);
    assert_eq!(memory(one), memory(other));
}

fn memory(session: &Session) -> &[u8] {
    session.machine.core.memory.slice(RAM, RAM_BYTES as usize).expect("the chip's memory")
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
pub(crate) fn elf(code: &[u8]) -> Vec<u8> {
    let mut table = vec![RAM + 0x5000];
    table.extend((1..64u32).map(|number| FLASH + 0x100 + 8 * (number - 1) + 1));
    let content: Vec<u8> =
        table.into_iter().flat_map(u32::to_le_bytes).chain(code.iter().copied()).collect();
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x28\0".to_vec();
    let half = |value: u16| value.to_le_bytes();
    // Version, entry, program headers, sections, flags; then the lengths of headers and their
    // numbers.
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
