// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A scenario's programs, flattened for running many times.

use std::collections::HashMap;

use warifu_model::{
    Band, BandOf, Case, Catalog, Costs, Error, KeyStoreCall, KeyStoreProfile, Mark, Operation,
    Role, Stage, SystemCall,
};
use warifu_trace::{Bytes, ChannelId, Episode, Message, Party, Program, Step, Trace};

use crate::carrier::CarrierModel;
use crate::cost::{CostPair, Sampler};
use crate::event_queue::Layout;
use crate::profiles::{self, key_store};
use crate::random::Stream;
use crate::route::End;
use crate::route::Heading;

/// Messages whose length depends on chance and can be told apart by a key, at most.
const MOST_VARYING: usize = 8;

/// One step, ready to run.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Processing whose time never varies: warm and cold, by stage.
    Constant {
        stages: [Stage; 2],
        warm: [u64; 2],
        cold: [u64; 2],
    },
    /// Processing whose time is drawn, from the role's own stream; the index is of
    /// [`Programs::costs`].
    Draw {
        cost: u32,
        stage: Stage,
        role: Role,
    },
    /// Processing of a model that is recorded, by its number in [`Detail::steps`]: each step by
    /// itself, whether or not it varies.
    Step {
        step: u32,
    },
    /// A call to the key store; the index is of [`Programs::calls`].
    KeyStore {
        call: u32,
        signs: bool,
    },
    Open {
        channel: u32,
    },
    Accept {
        channel: u32,
    },
    Send {
        channel: u32,
        end: End,
        first: u32,
        count: u32,
    },
    Receive {
        message: u32,
        channel: u32,
        end: End,
    },
    Close {
        channel: u32,
        end: End,
    },
    Pause {
        ns: u64,
    },
    Deadline {
        ns: u64,
    },
    /// A mark of an episode; `last` where it ends the episode.
    Mark {
        mark: Mark,
        episode: u32,
        last: bool,
    },
}

/// A party's program, of all episodes.
#[derive(Clone, Debug)]
pub(crate) struct PartyProgram {
    pub role: Role,
    pub ops: Vec<Op>,
}

/// A channel of a scenario, as a trial begins it.
#[derive(Clone, Debug)]
pub(crate) struct ChannelPlan {
    pub carrier: CarrierModel,
    /// The number of its first message, and how many there are.
    pub first: u32,
    pub messages: u32,
    /// The party at each end, who opens first.
    pub ends: [u32; 2],
    /// Which way packets from each end go.
    pub headings: [Heading; 2],
}

/// The programs of a scenario's parties, one episode after the other, and what they refer to.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// Of each party, the device's first.
    pub parties: Vec<PartyProgram>,
    pub channels: Vec<ChannelPlan>,
    pub episodes: u32,
    pub costs: Vec<CostPair>,
    /// The bands of all costs: a trial draws a board's place in each of them once.
    pub bands: Vec<BandName>,
    pub calls: Vec<Sampler>,
    pub messages: Vec<Bytes>,
    /// Of each message, its channel.
    pub channel_of: Vec<u32>,
    /// Their shortest lengths, and those whose length depends on chance.
    pub sizes: Vec<u32>,
    pub varying: Vec<u32>,
    /// Names of what happens, of a model that is recorded.
    pub detail: Option<Box<Detail>>,
    /// Waking up, for client and server; the index is of `costs`.
    pub wake: [u32; 2],
    /// Places of an instance's events.
    pub layout: Layout,
}

/// What a recording says of steps and messages, which nothing else needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detail {
    /// Each step that takes a processor.
    pub steps: Vec<DetailStep>,
    /// The name of each of [`Programs::calls`].
    pub calls: Vec<KeyStoreCall>,
    /// Of each message, what it is and who sends it.
    pub messages: Vec<(String, Role)>,
}

/// A step that takes a processor; the index is of [`Programs::costs`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetailStep {
    pub operation: Operation,
    pub cost: u32,
    pub stage: Stage,
}

/// A device's profile, and its figure that the band is of.
pub(crate) type BandName = (String, BandOf);

/// Compiles with the profiles of a case.
struct Compiler<'a> {
    case: &'a Case,
    devices: [Costs<'a>; 2],
    key_store: &'a KeyStoreProfile,
    costs: Vec<CostPair>,
    /// Of each band, the device's profile and the figure: a board that is at both ends is one.
    bands: Vec<BandName>,
    /// By operation, bytes, and whether it has just been done.
    known: HashMap<(Operation, u32, bool), u32>,
    calls: Vec<Sampler>,
    known_calls: HashMap<KeyStoreCall, u32>,
    detail: Option<Box<Detail>>,
}

impl Programs {
    /// Flattens a scenario with the costs of a case; `in_detail` to be recorded.
    ///
    /// # Errors
    /// A profile that the case names is missing, or has no cost for an operation.
    pub(crate) fn compile(
        case: &Case,
        episodes: &[Episode],
        catalog: &Catalog,
        in_detail: bool,
    ) -> Result<Self, Error> {
        let mut compiler = Compiler {
            case,
            devices: profiles::ends(case, catalog)?,
            key_store: key_store(catalog, &case.key_store.profile)?,
            costs: Vec::new(),
            bands: Vec::new(),
            known: HashMap::new(),
            calls: Vec::new(),
            known_calls: HashMap::new(),
            detail: in_detail.then(Box::default),
        };
        let mut parties: Vec<Party> = Vec::new();
        for program in episodes.iter().flat_map(|episode| &episode.trace.programs) {
            if !parties.contains(&program.party) {
                parties.push(program.party);
            }
        }
        let place = |of: Party| parties.iter().position(|&party| party == of).unwrap_or(0) as u32;
        let mut ops: Vec<Vec<Op>> = vec![Vec::new(); parties.len()];
        let mut channels = Vec::new();
        let mut messages: Vec<Bytes> = Vec::new();
        let mut channel_of = Vec::new();
        for (number, episode) in (0..).zip(episodes) {
            let trace = &episode.trace;
            let shift = Shift {
                message: messages.len() as u32,
                channel: channels.len() as u32,
                episode: number,
            };
            for program in &trace.programs {
                let to = &mut ops[place(program.party) as usize];
                if program.party == Party::CLIENT {
                    to.extend(beginning(episode));
                }
                compiler.program(program, trace, shift, to)?;
            }
            for channel in &trace.channels {
                let number = channels.len() as u32 - shift.channel;
                let of = |message: &Message| message.channel.0 == number;
                channels.push(ChannelPlan {
                    carrier: CarrierModel::compile(&channel.carrier, case, catalog)?,
                    // Those of other channels in between have places that stay empty.
                    first: shift.message + trace.messages.iter().position(of).unwrap_or(0) as u32,
                    messages: trace.messages.iter().rposition(of).map_or(0, |last| {
                        (last - trace.messages.iter().position(of).unwrap_or(0)) as u32 + 1
                    }),
                    ends: channel.ends.map(place),
                    headings: channel.ends.map(|party| match party.role {
                        Role::Client => Heading::Up,
                        Role::Server => Heading::Down,
                    }),
                });
            }
            messages.extend(trace.messages.iter().map(|message| message.bytes));
            channel_of.extend(trace.messages.iter().map(|m| m.channel.0 + shift.channel));
            if let Some(detail) = &mut compiler.detail {
                let named = trace.messages.iter().map(|m| (m.label.clone(), m.from.role));
                detail.messages.extend(named);
            }
        }
        let wake = [
            compiler.cost(Operation::System(Role::Client, SystemCall::Wake), 0, false)?,
            compiler.cost(Operation::System(Role::Server, SystemCall::Wake), 0, false)?,
        ];
        let varies = |&index: &u32| {
            let bytes = messages[index as usize];
            bytes.most() > bytes.fixed
        };
        let ends: Vec<[u32; 2]> = channels.iter().map(|channel| channel.ends).collect();
        let layout = Layout::new(&ends, parties.len() as u32);
        let with_role = |(party, ops): (Party, _)| PartyProgram { role: party.role, ops };
        Ok(Programs {
            parties: parties.into_iter().zip(ops).map(with_role).collect(),
            layout,
            channels,
            episodes: episodes.len() as u32,
            costs: compiler.costs,
            bands: compiler.bands,
            calls: compiler.calls,
            sizes: messages.iter().map(|bytes| bytes.fixed).collect(),
            varying: (0..messages.len() as u32).filter(varies).collect(),
            messages,
            channel_of,
            detail: compiler.detail,
            wake,
        })
    }

    /// Whether any cost of a role is drawn.
    pub(crate) fn draws(&self, role: Role) -> bool {
        let drawn = |op: &Op| match *op {
            Op::Draw { .. } => true,
            Op::Step { step } => self.detail.as_ref().is_some_and(|detail| {
                let cost = detail.steps[step as usize].cost;
                self.costs[cost as usize].as_constant().is_none()
            }),
            _ => false,
        };
        let of_role = self.parties.iter().filter(|party| party.role == role);
        of_role.flat_map(|party| &party.ops).any(drawn)
            || self.costs[self.wake[role as usize] as usize].as_constant().is_none()
    }
}

impl Programs {
    /// Draws the lengths of all messages and adds them to a list. Returns what stands for them, one
    /// byte for each that varies; `None` if that is not enough.
    pub(crate) fn draw_sizes(&self, lengths: &mut Stream, sizes: &mut Vec<u32>) -> Option<u64> {
        let begin = sizes.len();
        sizes.extend_from_slice(&self.sizes);
        let sizes = &mut sizes[begin..];
        let (mut key, mut fits) = (0, self.varying.len() <= MOST_VARYING);
        for &index in &self.varying {
            let bytes = self.messages[index as usize];
            let mut change = 0;
            for _ in 0..bytes.ecdsa_signatures {
                let bits = lengths.bits();
                change += der_surplus(bits as u32) + der_surplus((bits >> 32) as u32);
            }
            if bytes.uncertain_tickets > 0 {
                let tickets = u32::from(bytes.uncertain_tickets).min(63);
                change += 16 * (lengths.bits() & ((1 << tickets) - 1)).count_ones() as i32;
            }
            let size = &mut sizes[index as usize];
            *size = size.saturating_add_signed(change);
            fits &= i8::try_from(change).is_ok();
            key = key << 8 | u64::from(change as u8);
        }
        fits.then_some(key)
    }
}

/// What an episode's numbers are raised by, for those before it, and its own number.
#[derive(Clone, Copy)]
struct Shift {
    message: u32,
    channel: u32,
    episode: u32,
}

/// What the device does before an episode's own steps.
fn beginning(episode: &Episode) -> impl Iterator<Item = Op> {
    let gap = (episode.gap.0 > 0).then_some(Op::Pause { ns: episode.gap.0 });
    let deadline = episode.deadline.map(|deadline| Op::Deadline { ns: deadline.0 });
    gap.into_iter().chain(deadline)
}

impl Compiler<'_> {
    fn program(
        &mut self,
        program: &Program,
        trace: &Trace,
        shift: Shift,
        ops: &mut Vec<Op>,
    ) -> Result<(), Error> {
        let steps = &program.steps;
        let end = |channel: ChannelId| {
            let ends = trace.channels.get(channel.0 as usize).map(|channel| channel.ends);
            match ends {
                Some([opener, _]) if opener == program.party => End::Opener,
                _ => End::Acceptor,
            }
        };
        // An episode ends with the device's last mark; another party may set marks of its own.
        let last_mark = (program.party == Party::CLIENT)
            .then(|| steps.iter().rposition(|step| matches!(step, Step::Mark(_))))
            .flatten();
        let moved = |channel: ChannelId| channel.0 + shift.channel;
        // Costs of neighbouring episodes stay apart.
        let begin = ops.len();
        // A large DDS sample repeats its operations hundreds of times, and the first has brought
        // what the pause took from the caches: until the program has sent something and waits for
        // what comes of it. Messages of other protocols come once, and their figures were found so.
        let repeats = self.case.stack.dds().is_some();
        let mut done: Vec<Operation> = Vec::new();
        let mut sent = false;
        for (at, step) in steps.iter().enumerate() {
            match *step {
                Step::Open { channel } => ops.push(Op::Open { channel: moved(channel) }),
                Step::Accept { channel } => ops.push(Op::Accept { channel: moved(channel) }),
                Step::Compute { operation, bytes, .. } => {
                    let again = repeats && done.contains(&operation);
                    done.push(operation);
                    let cost = self.cost(operation, bytes, again)?;
                    self.push_cost(ops, begin, cost, operation);
                }
                Step::KeyStore { call, .. } => self.push_call(ops, begin, call)?,
                Step::Send { first, count, channel } => {
                    sent = true;
                    ops.push(Op::Send {
                        channel: moved(channel),
                        end: end(channel),
                        first: first.0 + shift.message,
                        count,
                    });
                }
                Step::Receive { message } => {
                    if std::mem::take(&mut sent) {
                        done.clear();
                    }
                    let channel = trace.message(message).map_or(ChannelId(0), |of| of.channel);
                    ops.push(Op::Receive {
                        message: message.0 + shift.message,
                        channel: moved(channel),
                        end: end(channel),
                    });
                }
                Step::Close { channel } => {
                    ops.push(Op::Close { channel: moved(channel), end: end(channel) });
                }
                Step::Wait { duration } => ops.push(Op::Pause { ns: duration.0 }),
                Step::Deadline { duration } => ops.push(Op::Deadline { ns: duration.0 }),
                Step::Mark(mark) => {
                    ops.push(Op::Mark { mark, episode: shift.episode, last: last_mark == Some(at) })
                }
            }
        }
        Ok(())
    }

    /// Adds a cost; neighbours that never vary become one.
    fn push_cost(&mut self, ops: &mut Vec<Op>, begin: usize, cost: u32, operation: Operation) {
        let role = operation.role();
        let (stages, at) = (PROCESSING[role as usize], usize::from(is_system(operation)));
        if let Some(detail) = &mut self.detail {
            ops.push(Op::Step { step: detail.steps.len() as u32 });
            detail.steps.push(DetailStep { operation, cost, stage: stages[at] });
            return;
        }
        let Some([warm, cold]) = self.costs[cost as usize].as_constant() else {
            ops.push(Op::Draw { cost, stage: stages[at], role });
            return;
        };
        if warm == 0 && cold == 0 {
            return;
        }
        if let Some(Op::Constant { stages: before, warm: all_warm, cold: all_cold }) =
            ops[begin..].last_mut()
            && *before == stages
            // What a factor is to be multiplied with is rounded step by step, as in a recording.
            && self.devices[role as usize].device().speed.is_none()
        {
            all_warm[at] += warm;
            all_cold[at] += cold;
            return;
        }
        let mut op = ([0; 2], [0; 2]);
        op.0[at] = warm;
        op.1[at] = cold;
        ops.push(Op::Constant { stages, warm: op.0, cold: op.1 });
    }

    /// A key in software has no calls: its signature is the device's own work.
    fn push_call(
        &mut self,
        ops: &mut Vec<Op>,
        begin: usize,
        call: KeyStoreCall,
    ) -> Result<(), Error> {
        if self.key_store.software {
            if call == KeyStoreCall::Sign {
                let operation = Operation::Sign(Role::Client);
                let cost = self.cost(operation, 0, false)?;
                self.push_cost(ops, begin, cost, operation);
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
                if let Some(detail) = &mut self.detail {
                    detail.calls.push(call);
                }
                index
            }
        };
        ops.push(Op::KeyStore { call: index, signs: call == KeyStoreCall::Sign });
        Ok(())
    }

    /// Of an operation that its program has just done (`again`), both laws are the warm one.
    fn cost(&mut self, operation: Operation, bytes: u32, again: bool) -> Result<u32, Error> {
        if let Some(&index) = self.known.get(&(operation, bytes, again)) {
            return Ok(index);
        }
        let device = match operation.role() {
            Role::Client => self.devices[0],
            Role::Server => self.devices[1],
        };
        let cost = device.cost(operation, &self.case.stack, bytes)?;
        let (name, bands) = (&device.device().name, &mut self.bands);
        let number = |band: &Band| {
            let known = bands.iter().position(|(of, figure)| of == name && *figure == band.of);
            known.unwrap_or_else(|| {
                bands.push((name.clone(), band.of));
                bands.len() - 1
            }) as u32
        };
        let mut pair = CostPair::new(&cost, number);
        if again {
            pair = pair.warm();
        }
        let index = self.costs.len() as u32;
        self.costs.push(pair);
        self.known.insert((operation, bytes, again), index);
        Ok(index)
    }
}

fn is_system(operation: Operation) -> bool {
    matches!(operation, Operation::System(..))
}

/// The stages that a party's processing belongs to: compute, then system.
pub(crate) const PROCESSING: [[Stage; 2]; 2] =
    [[Stage::ClientCompute, Stage::ClientSystem], [Stage::ServerCompute, Stage::ServerSystem]];

/// By how much the DER form of a uniform 256-bit integer differs from 32 bytes, given its top
/// bits: one more for a top bit that is set, one less for each whole byte that leading zeros
/// save beyond it (X.690 section 8.3.2).
fn der_surplus(top: u32) -> i32 {
    1 - top.leading_zeros().div_ceil(8) as i32
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
