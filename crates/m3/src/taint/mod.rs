// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Taint tracking: follows secrets through registers, flags and memory, and reports leaks through
//! timing, addresses and branches.
//!
//! A result is secret if an operand is, whatever the operation. The exception are results that do
//! not depend on their operands, such as `eor r, r, r` ([`plan`]). Registers and bytes of memory
//! are tracked as a whole, flags one by one. Data that leaves through the console, a UART, ITM or
//! the pipe is reported apart ([`Taint::outputs`]) and not tracked further.
//!
//! MUL, MLA and MLS take the same time for all operands (Arm DDI 0337I table 3-1) and do not leak.

mod conditions;
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

use crate::core::{Core, Fault, Operation, Trap};
use crate::isa::{Condition, Instruction, PC, Reg};
use crate::machine::{Machine, Observer};
use crate::timing::Cycles;

/// Bits of [`Taint::live`] after R0 to R15. R15 is never secret: a secret jump target is reported
/// as a leak instead.
const OTHER_STACK: u32 = 16;
const N: u32 = 1 << 17;
const Z: u32 = 1 << 18;
const C: u32 = 1 << 19;
const V: u32 = 1 << 20;
const Q: u32 = 1 << 21;
/// The state of the exclusive monitor.
const MONITOR: u32 = 1 << 22;
const PRIMASK: u32 = 1 << 23;
const BASEPRI: u32 = 1 << 24;
const FAULTMASK: u32 = 1 << 25;
const CONTROL: u32 = 1 << 26;
const FLAGS: u32 = N | Z | C | V;
/// The indices of the labels of [`FLAGS`].
const FLAG_LABELS: std::ops::Range<usize> = 17..21;

/// A flag, for [`Taint::flag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the architecture's
pub enum Flag {
    N,
    Z,
    C,
    V,
    Q,
}

/// An observer that tracks secrets.
#[derive(Debug)]
pub struct Taint {
    /// Which registers and flags are secret.
    live: u32,
    /// Their labels, valid where the bit in `live` is set.
    labels: [Label; 32],
    shadow: Shadow,
    /// Labels of secret system registers, by word address.
    system: HashMap<u32, Label>,
    labelled: u64,
    poisoned: u64,
    names: Labels,
    leaks: Leaks,
    outputs: Leaks,
    /// Whether R13 in `labels` is the process stack pointer.
    process_stack: bool,
    watches: Vec<(u32, Secret)>,
    plans: Plans,
    current: Current,
}

/// Facts about the current instruction, recorded before its execution for use after it.
#[derive(Debug, Default)]
struct Current {
    plan: Plan,
    /// Whether its condition failed.
    skipped: bool,
    /// The label of its condition.
    control: Label,
    /// The address of its access.
    at: u32,
    /// The label of that address.
    address: Label,
    /// Its shift amount.
    amount: u32,
    privileged: bool,
    /// The address of the frame that an exception return takes from the stack.
    frame: u32,
    /// Whether that is on the process stack.
    process: bool,
    /// Whether the next exception was entered by tail-chaining, without a frame.
    chained: bool,
    /// The instruction of the last exception return.
    returned_by: Option<Operation>,
    /// The BKPT of a semihosting call.
    calls_host: Option<Operation>,
}

impl Taint {
    /// An observer for a machine in which nothing is secret.
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
            outputs: Leaks::default(),
            process_stack: machine.core.registers.process_stack,
            watches: Vec::new(),
            plans: Plans::default(),
            current: Current::default(),
        }
    }

    /// Makes bytes secret now. Start-up code overwrites initialised data: use
    /// [`Taint::poison_when`].
    pub fn poison(&mut self, secret: Secret) {
        let (address, bytes) = (secret.address, secret.bytes);
        let label = self.names.poisoned(secret);
        let bytes = self.shadow.set_each(address, bytes, label);
        self.labelled += bytes;
        self.poisoned += bytes;
    }

    /// Makes bytes secret before each execution of the instruction at `when`, such as the first of
    /// `main`.
    pub fn poison_when(&mut self, when: u32, secret: Secret) {
        self.watches.push((when & !1, secret));
    }

    /// Makes bytes public.
    pub fn unpoison(&mut self, address: u32, bytes: u32) {
        self.labelled += self.shadow.set_each(address, bytes, Label::CLEAN);
    }

    /// Bytes made secret or public so far; one store to the taint port may ask for many.
    pub fn labelled(&self) -> u64 {
        self.labelled
    }

    /// Bytes made secret so far. If none were, the absence of leaks means nothing.
    pub fn poisoned(&self) -> u64 {
        self.poisoned
    }

    /// The leaks found so far, in the order of their first occurrence.
    pub fn leaks(&self) -> &[Leak] {
        self.leaks.found()
    }

    /// The instructions that sent secret bytes.
    pub fn outputs(&self) -> &[Leak] {
        self.outputs.found()
    }

    /// The origin of a secret register; `None` for a public one.
    pub fn register(&self, register: Reg) -> Option<&Origin> {
        self.origin_of_label(self.first(1 << (register & 15)))
    }

    /// The origin of a secret flag.
    pub fn flag(&self, flag: Flag) -> Option<&Origin> {
        self.origin_of_label(self.first(N << flag as u32))
    }

    /// The origin of a secret byte of memory.
    pub fn byte(&self, at: u32) -> Option<&Origin> {
        self.origin_of_label(self.shadow.get(at, 1).unwrap_or_default())
    }

    /// The origin of the secret in a leak.
    pub fn origin(&self, leak: &Leak) -> &Origin {
        self.names.origin(leak.label)
    }

    /// The secret of an origin.
    pub fn secret(&self, origin: &Origin) -> Option<&Secret> {
        self.names.secret(origin.secret?)
    }

    /// Whether nothing is secret.
    pub fn is_clean(&self) -> bool {
        self.live == 0 && self.shadow.secret_bytes() == 0 && self.system.is_empty()
    }

    fn origin_of_label(&self, label: Label) -> Option<&Origin> {
        label.is_secret().then(|| self.names.origin(label))
    }

    /// The label of the first secret among registers and flags.
    #[inline]
    fn first(&self, of: u32) -> Label {
        match self.live & of {
            0 => Label::CLEAN,
            secret => self.labels[secret.trailing_zeros() as usize],
        }
    }

    /// Sets the label of registers and flags.
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

    /// Sets the label of those registers and flags that are public.
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
        self.current.plan = plan;
        if operation.condition.is_conditional() {
            self.before_conditional(core, operation);
        }
        match plan.kind {
            Kind::Result => {}
            Kind::LeakingResult => {
                let label = self.first(plan.reads);
                self.leak_if_secret(plan.leak, operation, label);
            }
            Kind::Load | Kind::Store => self.check_address(core, operation, plan),
            Kind::Other => self.check_unplanned(core, operation),
        }
    }

    #[inline]
    fn after(&mut self, core: &mut Core, operation: &Operation, _now: Cycles) {
        if operation.condition.is_conditional() {
            return self.after_conditional(core, operation);
        }
        self.effect(core, operation);
    }

    fn faulted(&mut self, core: &mut Core, operation: &Operation) {
        if let Trap::Fault(Fault::Data { address, write: true }) = core.trap {
            self.stored_before(core, operation, address);
            if operation.condition.is_conditional() && self.current.control.is_secret() {
                self.taint_conditional_store(core, operation, self.current.control);
            }
        }
    }

    fn semihosting_done(&mut self, core: &Core, written: &[(u32, u32)]) {
        self.host_answered(core, written);
    }

    fn exception(&mut self, core: &Core, entered: bool) {
        if entered {
            self.entered(core);
        } else {
            self.returned(core);
        }
    }

    fn written_bytes(&self) -> u64 {
        self.labelled
    }
}

impl Taint {
    /// Propagates labels after an executed instruction.
    #[inline]
    fn effect(&mut self, core: &mut Core, operation: &Operation) {
        let plan = self.current.plan;
        match plan.kind {
            Kind::Result | Kind::LeakingResult => {
                let label = self.first(plan.reads);
                self.set(plan.writes, label);
            }
            Kind::Load => {
                let at = self.current.at;
                let bytes = u32::from(plan.bytes);
                let label = self.loaded(core, operation, plan.from_stack, at, bytes);
                self.set(plan.writes, label);
            }
            Kind::Store => {
                let bytes = u32::from(plan.bytes);
                self.store(core, operation, plan.writes, self.current.at, bytes);
            }
            Kind::Other => self.transfer(core, operation),
        }
    }

    #[inline]
    fn check_address(&mut self, core: &Core, operation: &Operation, plan: Plan) {
        let (Instruction::Load { address, .. } | Instruction::Store { address, .. }) =
            operation.instruction
        else {
            return;
        };
        self.current.at = core.effective_address(address).0;
        self.current.address = self.first(plan.reads);
        self.leak_if_secret(plan.leak, operation, self.current.address);
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
