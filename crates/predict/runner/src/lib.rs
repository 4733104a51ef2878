// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All trials of all cases of a study, on all cores.

mod batch;
mod boards;
mod exact;
mod middle;
mod rows;
mod strata;
mod timelines;

pub use batch::{Keep, Options, PredictError, Progress, Tier, check, predict};
