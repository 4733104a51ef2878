// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Follows secrets through registers, flags and memory, and notes where they show in time, addresses or branches.
//!
//! A result is secret where an operand is, whatever the operation does with it: nothing is computed on labels. Results that
//! do not depend on their operands are the exception (`eor r, r, r` and its like: [`transfer`]). A secret is whole
//! registers and whole bytes of memory; the flags are followed one by one. What goes to the chip's system registers, ports
//! and console is not followed.
//!
//! MUL, MLA and MLS take the same time for all operands (Arm DDI 0337I table 3-1) and are no leak.

mod exceptions;
mod labels;
mod leaks;
mod memory;
mod plan;
mod report;
mod transfer;

pub mod shadow;

pub use labels::{Origin, PoisonedBy, Secret};
pub use leaks::{Leak, LeakKind};
pub use report::{Place, Report, Row};

use std::collections::HashMap;

use labels::{Label, Labels};
use leaks::Leaks;
use plan::{Kind, Plan, Plans};
use shadow::Shadow;

use crate::block;
use crate::core::{Core, Fault, Operation, Trap};
use crate::isa::{Condition, Instruction, PC, Reg, SP};
use crate::machine::{Machine, Observer};
use crate::timing::Cycles;

/// Places in [`Taint::live`], R0 to R15 being its lowest bits. R15 is never secret: a jump is a leak, not a label.
const OTHER_STACK: u32 = 16;
const N: u32 = 1 << 17;
const Z: u32 = 1 << 18;
const C: u32 = 1 << 19;
const V: u32 = 1 << 20;
const Q: u32 = 1 << 21;
/// The address that LDREX marked, or whether it did.
const MONITOR: u32 = 1 << 22;
const PRIMASK: u32 = 1 << 23;
const BASEPRI: u32 = 1 << 24;
const FAULTMASK: u32 = 1 << 25;
const CONTROL: u32 = 1 << 26;
const FLAGS: u32 = N | Z | C | V;
/// Where the labels of [`FLAGS`] are.
const FLAG_LABELS: std::ops::Range<usize> = 17..21;

/// A flag, as [`Taint::flag`] takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the architecture's
pub enum Flag {
    N,
    Z,
    C,
    V,
    Q,
}

/// An observer that follows secrets.
#[derive(Debug)]
pub struct Taint {
    /// Which registers and flags are secret.
    live: u32,
    /// Their labels, where `live` says so.
    labels: [Label; 32],
    shadow: Shadow,
    /// Secrets in the words of system registers, by their addresses.
    system: HashMap<u32, Label>,
    labelled: u64,
    poisoned: u64,
    names: Labels,
    leaks: Leaks,
    /// Whether R13 is the process stack pointer, as `labels` has it.
    process_stack: bool,
    watches: Vec<(u32, Secret)>,
    plans: Plans,
    now: Present,
}

/// What was seen before the present instruction and is needed after it.
#[derive(Debug, Default)]
struct Present {
    plan: Plan,
    /// Its condition failed.
    skipped: bool,
    /// The secret that its condition depends on.
    control: Label,
    /// Where it loads or stores.
    at: u32,
    /// The secret in that address.
    address: Label,
    /// By how much it shifts.
    amount: u32,
    privileged: bool,
    /// Where the frame is that it takes from the stack if it ends an exception.
    frame: u32,
    /// Whether that is the process stack.
    process: bool,
    /// Another exception came at once, without a frame of its own.
    chained: bool,
    /// The instruction that ended an exception last.
    returned_by: Option<Operation>,
}

impl Taint {
    /// Nothing is secret yet.
    pub fn new(machine: &Machine) -> Self {
        Taint {
            live: 0,
            labels: [Label::CLEAN; 32],
            shadow: Shadow::new(&machine.core.memory),
            system: HashMap::new(),
            labelled: 0,
            poisoned: 0,
            names: Labels::default(),
            leaks: Leaks::default(),
            process_stack: machine.core.registers.process_stack,
            watches: Vec::new(),
            plans: Plans::default(),
            now: Present::default(),
        }
    }

    /// Makes bytes secret now. A program's start-up code writes its data anew: see [`Taint::poison_when`].
    pub fn poison(&mut self, secret: Secret) {
        let (address, bytes) = (secret.address, secret.bytes);
        let label = self.names.poisoned(secret);
        let bytes = self.shadow.set_each(address, bytes, label);
        self.labelled += bytes;
        self.poisoned += bytes;
    }

    /// Makes bytes secret each time that the instruction at `when` is about to be executed, `main`'s first for example.
    pub fn poison_when(&mut self, when: u32, secret: Secret) {
        self.watches.push((when & !1, secret));
    }

    /// Bytes are no longer secret.
    pub fn unpoison(&mut self, address: u32, bytes: u32) {
        self.labelled += self.shadow.set_each(address, bytes, Label::CLEAN);
    }

    /// How many bytes were made secret or public so far: work that one store may ask for.
    pub fn labelled(&self) -> u64 {
        self.labelled
    }

    /// How many bytes were made secret so far. Where it is none, that nothing leaked means nothing.
    pub fn poisoned(&self) -> u64 {
        self.poisoned
    }

    /// The leaks found so far, in the order in which they were met.
    pub fn leaks(&self) -> &[Leak] {
        self.leaks.found()
    }

    /// Where a secret register's content came from; `None` for a public one.
    pub fn register(&self, register: Reg) -> Option<&Origin> {
        self.known(self.first(1 << (register & 15)))
    }

    /// The same of a flag.
    pub fn flag(&self, flag: Flag) -> Option<&Origin> {
        self.known(self.first(N << flag as u32))
    }

    /// The same of a byte of memory.
    pub fn byte(&self, at: u32) -> Option<&Origin> {
        self.known(self.shadow.get(at, 1).unwrap_or_default())
    }

    /// The same of a leak.
    pub fn origin(&self, leak: &Leak) -> &Origin {
        self.names.origin(leak.label)
    }

    /// The secret that an origin names.
    pub fn secret(&self, origin: &Origin) -> Option<&Secret> {
        self.names.secret(origin.secret?)
    }

    /// Whether nothing at all is secret.
    pub fn is_clean(&self) -> bool {
        self.live == 0 && self.shadow.secret_bytes() == 0 && self.system.is_empty()
    }

    fn known(&self, label: Label) -> Option<&Origin> {
        label.is_secret().then(|| self.names.origin(label))
    }

    /// The label of the first secret one of some registers and flags.
    #[inline]
    fn first(&self, of: u32) -> Label {
        match self.live & of {
            0 => Label::CLEAN,
            secret => self.labels[secret.trailing_zeros() as usize],
        }
    }

    /// Labels some registers and flags.
    #[inline]
    fn set(&mut self, places: u32, label: Label) {
        let places = places & !(1 << PC);
        self.live &= !places;
        if label.is_secret() {
            self.live |= places;
            let mut left = places;
            if left & FLAGS == FLAGS {
                self.labels[FLAG_LABELS].fill(label);
                left &= !FLAGS;
            }
            while left != 0 {
                self.labels[left.trailing_zeros() as usize] = label;
                left &= left - 1;
            }
        }
    }

    /// Adds a label to what registers and flags have.
    #[inline]
    fn add(&mut self, places: u32, label: Label) {
        if label.is_secret() {
            self.set(places & !self.live, label);
        }
    }

    #[cold]
    fn leak(&mut self, kind: LeakKind, operation: &Operation, label: Label) {
        self.leaks.note(kind, operation, label);
    }

    fn watch(&mut self, address: u32) {
        if self.watches.iter().any(|(when, _)| *when == address) {
            self.reached(address);
        }
    }

    #[cold]
    fn reached(&mut self, address: u32) {
        let due: Vec<Secret> = self
            .watches
            .iter()
            .filter(|(when, _)| *when == address)
            .map(|(_, secret)| secret.clone())
            .collect();
        for secret in due {
            self.poison(secret);
        }
    }
}

impl Observer for Taint {
    #[inline]
    fn before(&mut self, core: &Core, operation: &Operation) {
        if !self.watches.is_empty() {
            self.watch(operation.address);
        }
        let plan = self.plans.find(operation);
        self.now.plan = plan;
        if operation.condition.is_conditional() {
            self.govern(core, operation);
        }
        match plan.kind {
            Kind::Result => {}
            Kind::Shown => {
                let label = self.first(plan.reads);
                self.show(plan.leak, operation, label);
            }
            Kind::Load | Kind::Store => self.look_at_address(core, operation, plan),
            Kind::Other => self.look(core, operation),
        }
    }

    #[inline]
    fn after(&mut self, core: &mut Core, operation: &Operation, _now: Cycles) {
        if operation.condition.is_conditional() {
            return self.governed(core, operation);
        }
        self.effect(core, operation);
    }

    fn faulted(&mut self, core: &mut Core, operation: &Operation) {
        if let Trap::Fault(Fault::Data { address, write: true }) = core.trap {
            self.stored_before(core, operation, address);
            if operation.condition.is_conditional() && self.now.control.is_secret() {
                self.depend_in_memory(core, operation, self.now.control);
            }
        }
    }

    fn answered(&mut self, core: &Core, written: &[(u32, u32)]) {
        self.host_answered(core, written);
    }

    fn exception(&mut self, core: &Core, entered: bool) {
        if entered {
            self.entered(core);
        } else {
            self.returned(core);
        }
    }
}

impl Taint {
    /// What an executed instruction does to labels.
    #[inline]
    fn effect(&mut self, core: &mut Core, operation: &Operation) {
        let plan = self.now.plan;
        match plan.kind {
            Kind::Result | Kind::Shown => {
                let label = self.first(plan.reads);
                self.set(plan.writes, label);
            }
            Kind::Load => {
                let at = self.now.at;
                let bytes = u32::from(plan.bytes);
                let label = self.loaded(core, operation, plan.from_stack, at, bytes);
                self.set(plan.writes, label);
            }
            Kind::Store => {
                let bytes = u32::from(plan.bytes);
                self.store(core, operation, plan.writes, self.now.at, bytes);
            }
            Kind::Other => self.transfer(core, operation),
        }
    }

    #[inline]
    fn look_at_address(&mut self, core: &Core, operation: &Operation, plan: Plan) {
        let (Instruction::Load { address, .. } | Instruction::Store { address, .. }) =
            operation.instruction
        else {
            return;
        };
        self.now.at = core.effective_address(address).0;
        self.now.address = self.first(plan.reads);
        self.show(plan.leak, operation, self.now.address);
    }

    /// Before an instruction of an IT block.
    #[inline(never)]
    fn govern(&mut self, core: &Core, operation: &Operation) {
        self.now.skipped = !core.registers.flags.hold(operation.condition);
        self.now.control = self.first(read_by(operation.condition));
        if self.now.control.is_secret() {
            let jumps = operation.instruction.operands().writes.contains(PC);
            let kind = if jumps { LeakKind::Branch } else { LeakKind::Condition };
            self.leak(kind, operation, self.now.control);
        }
    }

    /// After one.
    #[inline(never)]
    fn governed(&mut self, core: &mut Core, operation: &Operation) {
        if !self.now.skipped {
            self.effect(core, operation);
        }
        // What comes next is executed.
        self.now.skipped = false;
        if self.now.control.is_secret() && !goes_away(core, operation) {
            self.depend(core, operation);
        }
    }

    /// A secret decided whether this was executed: all that it writes depends on the secret, executed or not.
    #[cold]
    fn depend(&mut self, core: &Core, operation: &Operation) {
        let label = self.now.control;
        let written = operation.instruction.operands();
        let mut places = u32::from(written.writes.0);
        for (sets, flags) in [(written.sets_nz, N | Z), (written.sets_c, C), (written.sets_v, V)] {
            places |= if sets { flags } else { 0 };
        }
        places |= match operation.instruction {
            Instruction::Saturate { .. } | Instruction::Msr { sysm: 0..=3, .. } => Q,
            Instruction::LoadExclusive { .. }
            | Instruction::StoreExclusive { .. }
            | Instruction::ClearExclusive => MONITOR,
            Instruction::ChangeState { .. } => PRIMASK | FAULTMASK,
            Instruction::Msr { .. } => {
                PRIMASK | FAULTMASK | BASEPRI | CONTROL | 1 << OTHER_STACK | 1 << SP
            }
            _ => 0,
        };
        self.add(places, label);
        self.depend_in_memory(core, operation, label);
    }
}

/// Whether an instruction of an IT block is a jump, or on the way to one under the same condition: what a secret decides
/// there is a branch, and on either side of it is known what was executed.
fn goes_away(core: &Core, operation: &Operation) -> bool {
    let mut one = operation.clone();
    loop {
        let operands = one.instruction.operands();
        if one.condition == operation.condition {
            if operands.writes.contains(PC) {
                return true;
            }
            if operands.sets_nz || operands.sets_c || operands.sets_v {
                return false;
            }
        }
        let (at, it_state) = (one.next(), one.it_after());
        let next = if it_state == 0 { None } else { block::fetch(at, &core.memory, true) };
        let Some(next) = next else { return false };
        one = Operation::new(&next, at, it_state);
    }
}

/// The flags that a condition depends on (DDI 0403E table A7-1).
fn read_by(condition: Condition) -> u32 {
    match condition.0 >> 1 {
        0 => Z,
        1 => C,
        2 => N,
        3 => V,
        4 => C | Z,
        5 => N | V,
        6 => N | Z | V,
        _ => 0,
    }
}
