// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties of random programs that run twice with different secrets: state that differs is
//! labelled, and differences in addresses, branches or time are reported.

use proptest::prelude::*;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use warifu_m3::chip::Chip;
use warifu_m3::core::{Core, Operation};
use warifu_m3::isa::Instruction;
use warifu_m3::machine::{Limits, Machine, Observer};
use warifu_m3::memory::Region;
use warifu_m3::program::Program;
use warifu_m3::stop::Stop;
use warifu_m3::taint::{Flag, LeakKind, PoisonedBy, Secret, Taint};
use warifu_m3::timing::{Cycles, Rules};

use crate::generate::{Generator, Item, load_constant};
use crate::image::Image;

/// The address of the secret, below the generator's window for loads and stores.
const SECRET: u32 = 0x2000_3f00;
const SECRET_WORDS: u32 = 16;
const DATA: u32 = 0x2000_0000;
/// The stack begins in the middle: SP-relative loads go upwards.
const DATA_BYTES: u32 = 0x2_0000;
/// The generator's window.
const WINDOW: u32 = 0x2000_4000;

/// What an outside observer sees of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    address: u32,
    access: Option<u32>,
    cycles: Cycles,
}

/// Taint, with a record of each instruction.
struct Recorded {
    taint: Taint,
    steps: Vec<Step>,
    operations: Vec<Operation>,
    access: Option<u32>,
    last: Cycles,
}

impl Observer for Recorded {
    fn before(&mut self, core: &Core, operation: &Operation) {
        self.access = match operation.instruction {
            Instruction::Load { address, .. } | Instruction::Store { address, .. } => {
                Some(core.effective_address(address).0)
            }
            _ => None,
        };
        self.taint.before(core, operation);
    }

    fn after(&mut self, core: &mut Core, operation: &Operation, now: Cycles) {
        self.steps.push(Step {
            address: operation.address,
            access: self.access,
            cycles: now - self.last,
        });
        self.operations.push(operation.clone());
        self.last = now;
        self.taint.after(core, operation, now);
    }

    fn exception(&mut self, core: &Core, entered: bool) {
        self.taint.exception(core, entered);
    }
}

fn small_chip() -> Chip {
    let region = |name: &str, base, bytes| Region {
        name: name.into(),
        base,
        bytes,
        writable: true,
        wait_states: 0,
        lines: None,
    };
    let regions = vec![region("code", 0, 0x2_0000), region("data", DATA, DATA_BYTES)];
    Chip {
        name: "small".into(),
        source: String::new(),
        regions,
        aliases: vec![],
        peripherals: vec![],
        uarts: vec![],
        priority_mask: 0xe0,
        vector_table: 0,
    }
}

/// Runs a program to its breakpoint, with random data in memory that is poisoned if `poisoned`.
fn run(items: &[Item], secret: u64, poisoned: bool) -> (Machine, Recorded) {
    let chip = small_chip();
    let mut machine =
        Machine::new(&chip, Rules::cortex_m3().expect("rules")).expect("a memory map");
    let program = Program::parse(&Image::new(items).elf()).expect("our own ELF file is read");
    program.load(&mut machine, &chip).expect("it fits");
    let mut generator = Generator::new(Xoshiro256PlusPlus::seed_from_u64(secret));
    for word in 0..SECRET_WORDS {
        assert!(machine.core.memory.set_word(SECRET + 4 * word, generator.operand()));
    }
    let mut taint = Taint::new(&machine);
    if poisoned {
        let by = PoisonedBy::Name("secret".into());
        taint.poison(Secret { address: SECRET, bytes: 4 * SECRET_WORDS, by });
    }
    let last = Cycles::default();
    let mut recorded =
        Recorded { taint, steps: Vec::new(), operations: Vec::new(), access: None, last };
    let stop = machine.run_observed(Limits { instructions: 100_000 }, &mut recorded);
    assert!(matches!(stop, Stop::Breakpoint { number: 1, .. }), "{stop}");
    (machine, recorded)
}

/// Public constants in some registers, the secret in others, random items, and a breakpoint.
fn program(seeds: &[u64], item: fn(&mut Generator) -> Item, stores: bool) -> Vec<Item> {
    let mut items: Vec<Item> =
        (0..13).map(|register| load_constant(register, 0x1234_5678 << (register & 7))).collect();
    items.push(load_constant(8, SECRET));
    // ldmia r8!, {r0, r2, r3, r5, r9, r11}; ldr r14, [r8]
    items.push(vec![0xe8b8, 0x0a2d, 0xf8d8, 0xe000]);
    items.extend(seeds.iter().map(|seed| {
        let mut generator = Generator::new(Xoshiro256PlusPlus::seed_from_u64(*seed));
        if seed % 16 == 0 { secret_access(&mut generator, stores) } else { item(&mut generator) }
    }));
    items.push(vec![0xbe01]);
    items
}

/// A load, or also a store, with an index of 0 to 252 from any register, which may be secret.
fn secret_access(generator: &mut Generator, stores: bool) -> Item {
    let (data, index, base) = (generator.below(8), generator.below(8), 12);
    let mut item = load_constant(base, WINDOW);
    // and index, index, #0xfc
    item.extend([(0xf000 | index) as u16, (index << 8 | 0xfc) as u16]);
    // ldr or str data, [base, index]
    let opcode = if stores && generator.below(2) == 0 { 0xf840 } else { 0xf850 };
    item.extend([(opcode | base) as u16, (data << 12 | index) as u16]);
    item
}

fn seeds() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(any::<u64>().no_shrink(), 1..250)
}

fn listing(recorded: &Recorded) -> String {
    recorded
        .operations
        .iter()
        .map(|o| format!("{:#x} {}\n", o.address, o.instruction.under(o.condition)))
        .collect()
}

fn has_leak(recorded: &Recorded, address: u32) -> bool {
    recorded.taint.leaks().iter().any(|leak| leak.operation.address == address)
}

fn data(machine: &Machine) -> &[u8] {
    machine.core.memory.slice(DATA, DATA_BYTES as usize).expect("the data region")
}

fn flags(machine: &Machine) -> [(Flag, bool); 5] {
    let bits = machine.core.registers.xpsr();
    [(Flag::N, 31), (Flag::Z, 30), (Flag::C, 29), (Flag::V, 28), (Flag::Q, 27)]
        .map(|(flag, bit)| (flag, bits >> bit & 1 == 1))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn state_that_depends_on_secret_is_labelled(seeds in seeds(), one: u64, other: u64) {
        let items = program(&seeds, Generator::straight, false);
        let (a, seen_a) = run(&items, one, true);
        let (b, _) = run(&items, other, true);
        for register in 0..15u8 {
            let (in_a, in_b) = (a.core.registers.get(register), b.core.registers.get(register));
            prop_assert!(in_a == in_b || seen_a.taint.register(register).is_some(),
                "r{register} is {in_a:#x} or {in_b:#x}, and public\n{}", listing(&seen_a));
        }
        for ((flag, in_a), (_, in_b)) in flags(&a).into_iter().zip(flags(&b)) {
            prop_assert!(in_a == in_b || seen_a.taint.flag(flag).is_some(),
                "{flag:?} differs, and is public\n{}", listing(&seen_a));
        }
        for (at, (in_a, in_b)) in (DATA..).zip(data(&a).iter().zip(data(&b))) {
            prop_assert!(in_a == in_b || seen_a.taint.byte(at).is_some(),
                "the byte at {at:#x} differs, and is public\n{}", listing(&seen_a));
        }
    }

    #[test]
    fn observable_difference_is_reported(seeds in seeds(), one: u64, other: u64) {
        let items = program(&seeds, Generator::item, true);
        let (_, seen_a) = run(&items, one, true);
        let (_, seen_b) = run(&items, other, true);
        let mut before = 0;
        for (in_a, in_b) in seen_a.steps.iter().zip(&seen_b.steps) {
            if in_a.address != in_b.address {
                prop_assert!(has_leak(&seen_a, before),
                    "the runs diverge after {before:#x}\n{}", listing(&seen_a));
                break;
            }
            prop_assert!(in_a == in_b || has_leak(&seen_a, in_a.address),
                "{in_a:?} or {in_b:?}, and no leak\n{}", listing(&seen_a));
            // After a store to a secret address one run cannot know where the other one stored.
            if seen_a.taint.leaks().iter().any(|leak| {
                leak.kind == LeakKind::StoreAddress && leak.operation.address == in_a.address
            }) {
                break;
            }
            before = in_a.address;
        }
    }

    #[test]
    fn no_secret_no_report(seeds in seeds(), one: u64) {
        let (_, seen) = run(&program(&seeds, Generator::item, true), one, false);
        prop_assert!(seen.taint.leaks().is_empty());
        prop_assert!(seen.taint.is_clean());
    }
}
