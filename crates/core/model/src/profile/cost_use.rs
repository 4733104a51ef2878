// SPDX-License-Identifier: Apache-2.0 OR MIT
//! By what an operation's cost was found, for manifests and reports.

use serde::{Deserialize, Serialize};

use crate::operation::Operation;

/// By what an operation's cost was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// The device's own figure of the operation.
    Own,
    /// The recipe of a library, by its name, and the device's primitives.
    Recipe(String),
    /// A primitive of the device's alone: a signature is its algorithm's call.
    Primitive,
}

/// What an operation of a case costs, and by what.
#[derive(Clone, Debug, PartialEq)]
pub struct CostUse {
    /// The device's profile.
    pub device: String,
    /// What is done, and by whom.
    pub operation: Operation,
    /// By what.
    pub source: CostSource,
    /// How often the case does it.
    pub count: u32,
    /// Mean of all of them together with warm caches, ns.
    pub mean_ns: f64,
    /// The share that is priced by the instruction, from 0 to 1; `None` for an own figure.
    pub remainder_share: Option<f64>,
}
