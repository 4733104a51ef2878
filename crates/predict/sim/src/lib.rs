// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time: event engine, carriers, resources.
//!
//! A [`CaseModel`] is a case with every profile looked up; a [`Simulator`] runs one trial of it
//! at a time, deterministically for its seed. Nothing here reads a clock or the system's
//! randomness.

mod boards;
mod capture;
mod carrier;
mod case_model;
mod clock;
mod cost;
mod dds_path;
mod discovery;
mod engine;
mod event_queue;
mod exact;
mod instance;
mod key_store;
mod link;
mod memo;
mod operation_costs;
mod outcome;
mod packet;
mod party;
mod player;
mod profiles;
mod program;
mod random;
mod recording;
mod replay;
mod resource;
mod route;
mod speed;
mod step_costs;
mod steps;
mod tape;
mod time;
mod turn;
mod world;

pub use boards::Boards;
pub use capture::PacketEvent;
pub use case_model::{CaseModel, inputs, lacks, missing_operations};
pub use clock::KernelTime;
pub use dds_path::{CipherWork, DdsPath, Law, PathStep, Work};
pub use discovery::{Discovery, HandshakeWork, Span};
pub use engine::{Simulator, simulate_packets};
pub use exact::{Accuracy, Atom, Enumerated, TooManyPatterns};
pub use operation_costs::{Lacking, OperationCost, PricedOperation, cost_uses, operation_costs};
pub use outcome::{ConnectionOutcome, Outcome};
pub use random::{TrialSeeds, trial_seed};
pub use recording::{Activity, Carried, CarrierTimer, Doing, Expiry, Recording, Sent};
pub use replay::{Fate, LoggedConnection, LoggedPacket, Replayed, Unmatched};
pub use route::Heading;
pub use step_costs::{StepCost, step_costs};
