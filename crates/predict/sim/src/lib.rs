// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time: event engine, carriers, resources.
//!
//! A [`CaseModel`] is a case with every profile looked up; a [`Simulator`] runs one trial of it
//! at a time, deterministically for its seed; [`predict`] runs all trials of a study on all
//! cores. Nothing here reads a clock or the system's randomness.

mod agenda;
mod case_model;
mod clock;
mod connection;
mod cost;
mod kernel;
mod link;
mod memo;
mod outcome;
mod packet;
mod party;
mod program;
mod random;
mod resource;
mod running;
mod simulator;
mod sweep;
mod tcp;
mod timeline;

pub use case_model::{CaseModel, inputs, missing_operations};
pub use link::Heading;
pub use outcome::{ConnectionOutcome, Outcome};
pub use random::trial_seed;
pub use simulator::Simulator;
pub use sweep::{Keep, Options, PredictError, Progress, check, predict};
pub use timeline::{PacketEvent, simulate_packets};
