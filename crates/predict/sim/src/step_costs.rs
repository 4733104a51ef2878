// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the computing of a case goes, without simulating it: what each step costs by its own.

use warifu_model::{Case, Catalog, Error, Nanos, Operation, Role};
use warifu_trace::{Step, scenario};

use crate::profiles;

/// A step that takes a processor, as often as a program has it in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct StepCost {
    /// What is done, and by whom.
    pub operation: Operation,
    /// To how many bytes.
    pub bytes: u32,
    /// What it takes itself, per byte included, warm and cold.
    pub own: [Nanos; 2],
    /// What its cipher takes beside that, warm and cold.
    pub cipher: [Nanos; 2],
    /// The name of the cipher's call in the device's profile, if there is one.
    pub primitive: Option<String>,
}

/// What each step of a case's programs costs, in their order, the device's first. Waking and the
/// link are not among them.
///
/// # Errors
/// The case makes no connection, or a profile lacks a cost.
pub fn step_costs(case: &Case, catalog: &Catalog) -> Result<Vec<StepCost>, Error> {
    let scenario = scenario(case).map_err(|error| Error::in_case(error.key, error.message))?;
    let [client, server] = profiles::ends(case, catalog)?;
    let programs = scenario.episodes.iter().flat_map(|episode| &episode.trace.programs);
    let mut costs = Vec::new();
    for step in programs.flat_map(|program| &program.steps) {
        let Step::Compute { operation, bytes, .. } = *step else { continue };
        let device = match operation.role() {
            Role::Client => client,
            Role::Server => server,
        };
        let cost = device.cost(operation, &case.stack, bytes)?;
        costs.push(StepCost {
            operation,
            bytes,
            own: [false, true].map(|cold| Nanos(cost.estimate_ns(cold).round() as u64)),
            cipher: cost.cipher.map_or([Nanos::ZERO; 2], |of| [of.warm, of.cold]),
            primitive: cost.cipher.map(|of| of.primitive.to_string()),
        });
    }
    Ok(costs)
}
