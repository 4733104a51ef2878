// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way of one DDS sample, without simulating it: what each step of its sender and its reader
//! costs, with the parts that an adviser puts in the place of others.

use warifu_model::{
    Case, Catalog, Cost, Costs, Dds, DdsCrypto, DdsMessage, Direction, Error, Nanos, Operation,
    Role, Stack, SystemCall,
};
use warifu_trace::{Message, MessageId, Step, Trace, scenario};

use crate::profiles;

/// Which part of a law is called usual: all but the twentieth at either end.
const USUAL: [f64; 2] = [0.05, 0.95];

/// One sample on its way, from the write to the reader.
#[derive(Clone, Debug, PartialEq)]
pub struct DdsPath {
    /// The writer's steps, and then the reader's until it has the sample.
    pub steps: Vec<PathStep>,
    /// What waking the reader takes, once.
    pub wake: Law,
    /// Half the link's round trip, and what both network interfaces add to a packet.
    pub delay: Nanos,
    /// The link's rate on the way to the reader, bit/s; `None` without a limit.
    pub rate: Option<u64>,
}

/// A step of either end.
#[derive(Clone, Debug, PartialEq)]
pub enum PathStep {
    /// It computes.
    Work(Work),
    /// The writer lets a datagram go.
    Send {
        /// Which.
        message: MessageId,
        /// Its length as UDP's payload, B.
        bytes: u32,
    },
    /// The reader needs a datagram to go on.
    Receive {
        /// Which.
        message: MessageId,
    },
}

/// An operation's cost, in parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// What is done, and by whom.
    pub operation: Operation,
    /// To how many bytes.
    pub bytes: u32,
    /// What it takes itself, its bytes left out; of a sample, what it takes without security.
    pub own: Law,
    /// What protection adds to a sample beside its layers, whatever these are.
    pub protected: Nanos,
    /// What it takes itself for each byte, ns.
    pub own_per_byte_ns: f64,
    /// What its cipher takes beside that.
    pub cipher: Option<CipherWork>,
}

/// What a cipher does for an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct CipherWork {
    /// The call's name in the device's profile: `aead.seal.AES-256-GCM`.
    pub primitive: String,
    /// What a call takes, its bytes left out.
    pub call: Law,
    /// What it takes for each byte, ns.
    pub per_byte_ns: f64,
    /// What the receivers' own tags take beside it.
    pub tags: Nanos,
}

/// A time: its usual bounds, what it takes between them, and what a pause adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Law {
    /// Its 5 % quantile, with warm caches.
    pub low: Nanos,
    /// Its mean, or the nearer bound where that lies outside both.
    pub mean: Nanos,
    /// Its 95 % quantile.
    pub high: Nanos,
    /// What a pause adds to its mean.
    pub cold: Nanos,
}

impl DdsPath {
    /// Of a case's first sample.
    ///
    /// # Errors
    /// The case is not of DDS or is not emulated, or a profile lacks a cost.
    pub fn of(case: &Case, catalog: &Catalog) -> Result<DdsPath, Error> {
        if case.stack.dds().is_none() {
            let message = "is not DDS: expected a stack such as dds/builtin";
            return Err(Error::in_case("stack.protocol", message));
        }
        let scenario = scenario(case).map_err(|error| Error::in_case(error.key, error.message))?;
        let Some(episode) = scenario.episodes.first() else {
            return Err(Error::in_case("pattern", "sends no sample"));
        };
        let [writer, reader] = profiles::ends(case, catalog)?;
        Ends { case, writer, reader }.path(&episode.trace)
    }
}

struct Ends<'a> {
    case: &'a Case,
    writer: Costs<'a>,
    reader: Costs<'a>,
}

impl Ends<'_> {
    fn path(&self, trace: &Trace) -> Result<DdsPath, Error> {
        let mut steps = Vec::new();
        let of = |role| trace.programs.iter().filter(move |program| program.party.role == role);
        let own = |step: &&Step| !matches!(step, Step::Receive { .. });
        for step in of(Role::Client).flat_map(|program| program.steps.iter().take_while(own)) {
            steps.extend(self.steps(step, &trace.messages)?);
        }
        // The reader has the sample when it turns to its answer.
        let answers = |step: &&Step| {
            matches!(step, Step::Compute { operation: Operation::Dds(_, Direction::Send, _), .. })
        };
        for step in of(Role::Server)
            .flat_map(|program| program.steps.iter().take_while(|step| !answers(step)))
        {
            steps.extend(self.steps(step, &trace.messages)?);
        }
        cold_once(&mut steps);
        let wake = self.cost(Operation::System(Role::Server, SystemCall::Wake), 0)?;
        let link = &self.case.link;
        let interface = |role| {
            let operation = Operation::System(role, SystemCall::Interface);
            self.cost(operation, 0).map(|cost| cost.estimate_ns(false).round() as u64)
        };
        let interfaces = [interface(Role::Client)?, interface(Role::Server)?];
        Ok(DdsPath {
            steps,
            wake: Law::of(&wake),
            delay: Nanos(link.rtt.0 / 2 + interfaces.iter().sum::<u64>()),
            rate: link.rate_up.map(|rate| rate.0),
        })
    }

    fn steps(&self, step: &Step, messages: &[Message]) -> Result<Vec<PathStep>, Error> {
        Ok(match *step {
            Step::Compute { operation, bytes, .. } => {
                vec![PathStep::Work(self.work(operation, bytes)?)]
            }
            Step::Send { first, count, .. } => (first.0..first.0 + count)
                .map(|id| PathStep::Send {
                    message: MessageId(id),
                    bytes: messages.get(id as usize).map_or(0, |message| message.bytes.most()),
                })
                .collect(),
            Step::Receive { message } => vec![PathStep::Receive { message }],
            _ => Vec::new(),
        })
    }

    fn work(&self, operation: Operation, bytes: u32) -> Result<Work, Error> {
        // The bytes stand apart, each as long as another.
        let cost = self.cost(operation, 0)?;
        let device = self.device(operation.role()).device();
        let cipher = self.cost(operation, bytes)?.cipher.and_then(|of_cipher| {
            let primitive = of_cipher.primitive;
            let all = device.primitive(primitive, bytes)?.estimate_ns(false).round() as u64;
            let call = device.primitive(primitive, 0)?;
            Some(CipherWork {
                primitive: primitive.to_string(),
                call: Law::of(&call),
                per_byte_ns: call.per_byte_ns,
                tags: Nanos(of_cipher.warm.0.saturating_sub(all)),
            })
        });
        let own = Law::of(&cost);
        let plain = self.plain(operation).filter(|plain| plain.mean <= own.mean);
        Ok(Work {
            operation,
            bytes,
            own: plain.unwrap_or(own),
            protected: plain.map_or(Nanos::ZERO, |plain| own.mean - plain.mean),
            own_per_byte_ns: cost.per_byte_ns,
            cipher,
        })
    }

    fn cost(&self, operation: Operation, bytes: u32) -> Result<Cost<'_>, Error> {
        self.device(operation.role()).cost(operation, &self.case.stack, bytes)
    }

    /// What a secured sample takes itself without security, where the profile has that.
    fn plain(&self, operation: Operation) -> Option<Law> {
        let Operation::Dds(role, _, DdsMessage::Sample) = operation else { return None };
        let Stack::Dds(secured) = &self.case.stack else { return None };
        let plain = Stack::Dds(Dds { crypto: DdsCrypto::None, ..secured.clone() });
        Some(Law::of(&self.device(role).cost(operation, &plain, 0).ok()?))
    }

    const fn device(&self, role: Role) -> Costs<'_> {
        match role {
            Role::Client => self.writer,
            Role::Server => self.reader,
        }
    }
}

/// What a pause takes from the caches is paid for by the first of each kind, as the simulator has
/// it.
fn cold_once(steps: &mut [PathStep]) {
    let mut done = Vec::new();
    for step in steps {
        let PathStep::Work(work) = step else { continue };
        if !done.contains(&work.operation) {
            done.push(work.operation);
            continue;
        }
        work.own.cold = Nanos::ZERO;
        if let Some(cipher) = &mut work.cipher {
            cipher.call.cold = Nanos::ZERO;
        }
    }
}

impl Law {
    /// Of what a cost is without its bytes.
    fn of(cost: &Cost<'_>) -> Law {
        let law = cost.law(false);
        let [low, high] = USUAL.map(|p| law.quantile(p));
        let [warm, cold] = [false, true].map(|cold| Nanos(cost.estimate_ns(cold).round() as u64));
        Law { low, mean: warm.clamp(low, high), high, cold: cold - warm }
    }
}
