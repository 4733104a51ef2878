// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace's programs, flattened for running many times.

use std::collections::HashMap;

use warifu_model::{
    Case, Catalog, DeviceProfile, Error, KeyStoreCall, KeyStoreProfile, Operation, ProfileKind,
    Role, Stage, SystemCall,
};
use warifu_trace::{Bytes, Mark, Step, Trace};

use crate::cost::Sampler;
use crate::random::Stream;

/// One step, ready to run.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Processing whose time never varies: warm and cold, for compute and for system.
    Constant {
        warm: [u64; 2],
        cold: [u64; 2],
    },
    /// Processing whose time is drawn; the index is of [`Programs::costs`].
    Draw {
        cost: u32,
        system: bool,
    },
    /// A call to the key store; the index is of [`Programs::calls`].
    KeyStore {
        call: u32,
        signs: bool,
    },
    Open,
    Accept,
    Send {
        first: u16,
        count: u16,
    },
    Receive {
        message: u16,
    },
    Close,
    Wait {
        ns: u64,
    },
    Deadline {
        ns: u64,
    },
    Mark(Mark),
}

/// Two laws of one cost.
#[derive(Clone, Debug)]
pub(crate) struct CostPair {
    pub warm: Sampler,
    pub cold: Sampler,
}

/// Both programs of a trace and what they refer to.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// The client's and the server's.
    pub ops: [Vec<Op>; 2],
    pub costs: Vec<CostPair>,
    pub calls: Vec<Sampler>,
    pub messages: Vec<Bytes>,
    /// Their shortest lengths, and those whose length depends on chance.
    pub sizes: Vec<u32>,
    pub varying: Vec<u16>,
    /// Waking up, for client and server; the index is of `costs`.
    pub wake: [u32; 2],
}

/// Compiles with the profiles of a case.
struct Compiler<'a> {
    case: &'a Case,
    devices: [&'a DeviceProfile; 2],
    key_store: &'a KeyStoreProfile,
    costs: Vec<CostPair>,
    known: HashMap<(Operation, u32), u32>,
    calls: Vec<Sampler>,
    known_calls: HashMap<KeyStoreCall, u32>,
}

impl Programs {
    /// Flattens a trace with the costs of a case.
    ///
    /// # Errors
    /// A profile that the case names is missing, or has no cost for an operation of the trace.
    pub(crate) fn compile(case: &Case, trace: &Trace, catalog: &Catalog) -> Result<Self, Error> {
        let mut compiler = Compiler {
            case,
            devices: [
                device(catalog, "device.profile", &case.device.profile)?,
                device(catalog, "server.profile", &case.server.profile)?,
            ],
            key_store: key_store(catalog, &case.key_store.profile)?,
            costs: Vec::new(),
            known: HashMap::new(),
            calls: Vec::new(),
            known_calls: HashMap::new(),
        };
        let ops = [
            compiler.program(trace.steps(Role::Client))?,
            compiler.program(trace.steps(Role::Server))?,
        ];
        let wake = [
            compiler.cost(Operation::System(Role::Client, SystemCall::Wake), 0)?,
            compiler.cost(Operation::System(Role::Server, SystemCall::Wake), 0)?,
        ];
        let messages: Vec<Bytes> = trace.messages.iter().map(|message| message.bytes).collect();
        let varies = |&index: &u16| {
            let bytes = messages[usize::from(index)];
            bytes.most() > bytes.fixed
        };
        Ok(Programs {
            ops,
            costs: compiler.costs,
            calls: compiler.calls,
            sizes: messages.iter().map(|bytes| bytes.fixed).collect(),
            varying: (0..messages.len() as u16).filter(varies).collect(),
            messages,
            wake,
        })
    }

    /// Whether any cost of a role is drawn.
    pub(crate) fn draws(&self, role: usize) -> bool {
        let drawn = |op: &Op| matches!(op, Op::Draw { .. });
        self.ops[role].iter().any(drawn) || !self.costs[self.wake[role] as usize].is_constant()
    }
}

impl Programs {
    /// Draws the lengths of all messages and adds them to a list.
    pub(crate) fn draw_sizes(&self, lengths: &mut Stream, sizes: &mut Vec<u32>) {
        let begin = sizes.len();
        sizes.extend_from_slice(&self.sizes);
        for &index in &self.varying {
            let bytes = self.messages[usize::from(index)];
            let mut size = i64::from(self.sizes[usize::from(index)]);
            for _ in 0..bytes.ecdsa_signatures {
                let bits = lengths.bits();
                size += der_surplus(bits as u32) + der_surplus((bits >> 32) as u32);
            }
            if bytes.uncertain_tickets > 0 {
                let tickets = u32::from(bytes.uncertain_tickets).min(63);
                size += 16 * i64::from((lengths.bits() & ((1 << tickets) - 1)).count_ones());
            }
            sizes[begin + usize::from(index)] = size as u32;
        }
    }
}

impl CostPair {
    pub(crate) fn is_constant(&self) -> bool {
        self.warm.as_constant().is_some() && self.cold.as_constant().is_some()
    }
}

impl Compiler<'_> {
    fn program(&mut self, steps: &[Step]) -> Result<Vec<Op>, Error> {
        let mut ops = Vec::with_capacity(steps.len());
        for step in steps {
            match *step {
                Step::Open { .. } => ops.push(Op::Open),
                Step::Accept { .. } => ops.push(Op::Accept),
                Step::Compute { operation, bytes, .. } => {
                    let cost = self.cost(operation, bytes)?;
                    self.push_cost(&mut ops, cost, stage_is_system(operation));
                }
                Step::KeyStore { call, .. } => self.push_call(&mut ops, call)?,
                Step::Send { first, count, .. } => ops.push(Op::Send { first: first.0, count }),
                Step::Receive { message } => ops.push(Op::Receive { message: message.0 }),
                Step::Close { .. } => ops.push(Op::Close),
                Step::Wait { duration } => ops.push(Op::Wait { ns: duration.0 }),
                Step::Deadline { duration } => ops.push(Op::Deadline { ns: duration.0 }),
                Step::Mark(mark) => ops.push(Op::Mark(mark)),
            }
        }
        Ok(ops)
    }

    /// Adds a cost; neighbours that never vary become one.
    fn push_cost(&self, ops: &mut Vec<Op>, cost: u32, system: bool) {
        let pair = &self.costs[cost as usize];
        let (Some(warm), Some(cold)) = (pair.warm.as_constant(), pair.cold.as_constant()) else {
            ops.push(Op::Draw { cost, system });
            return;
        };
        if warm == 0 && cold == 0 {
            return;
        }
        let at = usize::from(system);
        if let Some(Op::Constant { warm: all_warm, cold: all_cold }) = ops.last_mut() {
            all_warm[at] += warm;
            all_cold[at] += cold;
            return;
        }
        let mut op = ([0; 2], [0; 2]);
        op.0[at] = warm;
        op.1[at] = cold;
        ops.push(Op::Constant { warm: op.0, cold: op.1 });
    }

    /// A key in software has no calls: its signature is the device's own work.
    fn push_call(&mut self, ops: &mut Vec<Op>, call: KeyStoreCall) -> Result<(), Error> {
        if self.key_store.software {
            if call == KeyStoreCall::Sign {
                let cost = self.cost(Operation::Sign(Role::Client), 0)?;
                self.push_cost(ops, cost, false);
            }
            return Ok(());
        }
        let index = match self.known_calls.get(&call) {
            Some(&index) => index,
            None => {
                let law = self.key_store.call(call)?;
                let index = self.calls.len() as u32;
                self.calls.push(Sampler::new(law, warifu_model::Nanos::ZERO));
                self.known_calls.insert(call, index);
                index
            }
        };
        ops.push(Op::KeyStore { call: index, signs: call == KeyStoreCall::Sign });
        Ok(())
    }

    fn cost(&mut self, operation: Operation, bytes: u32) -> Result<u32, Error> {
        if let Some(&index) = self.known.get(&(operation, bytes)) {
            return Ok(index);
        }
        let device = match operation.role() {
            Role::Client => self.devices[0],
            Role::Server => self.devices[1],
        };
        let pair = pair(device, operation, self.case, bytes)?;
        let index = self.costs.len() as u32;
        self.costs.push(pair);
        self.known.insert((operation, bytes), index);
        Ok(index)
    }
}

/// Both laws of an operation's cost.
pub(crate) fn pair(
    device: &DeviceProfile,
    operation: Operation,
    case: &Case,
    bytes: u32,
) -> Result<CostPair, Error> {
    let cost = device.cost(operation, &case.stack, bytes)?;
    Ok(CostPair {
        warm: Sampler::new(cost.warm, cost.bytes_cost),
        cold: Sampler::new(cost.cold, cost.bytes_cost),
    })
}

pub(crate) fn device<'a>(
    catalog: &'a Catalog,
    key: &str,
    name: &str,
) -> Result<&'a DeviceProfile, Error> {
    catalog.device(name).ok_or_else(|| missing(catalog, ProfileKind::Device, key, name))
}

pub(crate) fn key_store<'a>(
    catalog: &'a Catalog,
    name: &str,
) -> Result<&'a KeyStoreProfile, Error> {
    let kind = ProfileKind::KeyStore;
    catalog.key_store(name).ok_or_else(|| missing(catalog, kind, "key_store.profile", name))
}

/// What to say of a profile that is not there.
pub(crate) fn missing(catalog: &Catalog, kind: ProfileKind, key: &str, name: &str) -> Error {
    let known = catalog.names(kind).join(", ");
    let message =
        format!("is \"{name}\", which profiles/{} does not have: it has {known}", kind.folder());
    Error::new("profiles", key, message)
}

fn stage_is_system(operation: Operation) -> bool {
    matches!(operation, Operation::System(..))
}

/// The stages that a party's processing belongs to: compute, then system.
pub(crate) const PROCESSING: [[Stage; 2]; 2] =
    [[Stage::ClientCompute, Stage::ClientSystem], [Stage::ServerCompute, Stage::ServerSystem]];

/// By how much the DER form of a uniform 256-bit integer differs from 32 bytes, given its top
/// bits: one more for a top bit that is set, one less for each whole byte that leading zeros
/// save beyond it (X.690 section 8.3.2).
fn der_surplus(top: u32) -> i64 {
    1 - i64::from(top.leading_zeros().div_ceil(8))
}

#[cfg(test)]
mod tests {
    use super::der_surplus;

    #[test]
    fn leading_zeros_shorten_an_integer() {
        for (top, surplus) in
            [(0x8000_0000, 1), (0x4000_0000, 0), (0x0080_0000, 0), (0x0040_0000, -1), (0x8000, -1)]
        {
            assert_eq!(der_surplus(top), surplus, "{top:#x}");
        }
    }
}
