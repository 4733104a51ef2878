// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What each operation of a case costs, and by what: its own figure, or a recipe with its
//! primitives.

use warifu_model::{
    Case, Catalog, CostSource, CostUse, Costs, Error, KeyStoreCall, LoweredPart, Operation, Role,
};
use warifu_trace::{Step, scenario};

use crate::profiles;

/// An operation of a case, as often as it occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationCost {
    /// What is done, and by whom.
    pub operation: Operation,
    /// The device's profile.
    pub device: String,
    /// How often.
    pub count: u32,
    /// Bytes of all together.
    pub bytes: u64,
    /// What they take; the error names what the profile lacks.
    pub cost: Result<PricedOperation, Lacking>,
}

/// What an operation takes, each time and its bytes together.
#[derive(Clone, Debug, PartialEq)]
pub struct PricedOperation {
    /// By what.
    pub source: CostSource,
    /// With warm caches, ns: the mean of what varies, and each band in its middle.
    pub warm_ns: f64,
    /// The same with cold caches, ns.
    pub cold_ns: f64,
    /// The calls that it was lowered to.
    pub parts: Vec<LoweredPart>,
    /// What its instructions outside of the calls take, ns.
    pub remainder_ns: f64,
}

/// Why there is no cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Lacking {
    /// Names the file and what to do.
    pub error: Error,
    /// The primitives that are to be added; none where the operation has no recipe.
    pub primitives: Vec<String>,
}

/// What each operation of a case costs, in the order of its programs, the device's first. Waking,
/// the network's interfaces and the link are not among them.
///
/// # Errors
/// The case makes no connection, or names a profile that there is not.
pub fn operation_costs(case: &Case, catalog: &Catalog) -> Result<Vec<OperationCost>, Error> {
    let scenario = scenario(case).map_err(|error| Error::in_case(error.key, error.message))?;
    let [client, server] = profiles::ends(case, catalog)?;
    let software = profiles::key_store(catalog, &case.key_store.profile)?.software;
    let programs = scenario.episodes.iter().flat_map(|episode| &episode.trace.programs);
    let mut found: Vec<OperationCost> = Vec::new();
    for step in programs.flat_map(|program| &program.steps) {
        let (operation, bytes) = match *step {
            Step::Compute { operation, bytes, .. } => (operation, bytes),
            // A key in software is the device's own work, as the simulator has it.
            Step::KeyStore { call: KeyStoreCall::Sign, .. } if software => {
                (Operation::Sign(Role::Client), 0)
            }
            _ => continue,
        };
        let costs = match operation.role() {
            Role::Client => client,
            Role::Server => server,
        };
        let cost = priced(costs, operation, case, bytes);
        match found.iter_mut().find(|one| one.operation == operation) {
            Some(one) => one.add(bytes, cost),
            None => found.push(OperationCost {
                operation,
                device: costs.device().name.clone(),
                count: 1,
                bytes: bytes.into(),
                cost,
            }),
        }
    }
    Ok(found)
}

/// The same as manifests have it, of those that have a cost: a prediction of the case says what it
/// lacks.
///
/// # Errors
/// As [`operation_costs`].
pub fn cost_uses(case: &Case, catalog: &Catalog) -> Result<Vec<CostUse>, Error> {
    let to_use = |one: OperationCost| {
        let cost = one.cost.ok()?;
        let remainder_share = cost.remainder_share();
        Some(CostUse {
            device: one.device,
            operation: one.operation,
            source: cost.source,
            count: one.count,
            mean_ns: cost.warm_ns,
            remainder_share,
        })
    };
    Ok(operation_costs(case, catalog)?.into_iter().filter_map(to_use).collect())
}

fn priced(
    costs: Costs<'_>,
    operation: Operation,
    case: &Case,
    bytes: u32,
) -> Result<PricedOperation, Lacking> {
    let stack = &case.stack;
    let cost = costs.cost(operation, stack, bytes).map_err(|error| {
        let primitives = costs.missing_primitives(&[operation], stack);
        Lacking { error, primitives: primitives.iter().map(ToString::to_string).collect() }
    })?;
    let [of_cipher, of_cipher_cold] =
        cost.cipher.map_or([0.0; 2], |of| [of.warm, of.cold].map(|time| time.0 as f64));
    let [warm_ns, cold_ns] = [false, true].map(|cold| cost.estimate_ns(cold));
    let (source, parts, remainder_ns) = match cost.lowered {
        None => (CostSource::Own, Vec::new(), 0.0),
        Some(lowered) => {
            let recipe = lowered.recipe.map(|name| CostSource::Recipe(name.to_owned()));
            (recipe.unwrap_or(CostSource::Primitive), lowered.parts, lowered.remainder_ns)
        }
    };
    Ok(PricedOperation {
        source,
        warm_ns: warm_ns + of_cipher,
        cold_ns: cold_ns + of_cipher_cold,
        parts,
        remainder_ns,
    })
}

impl OperationCost {
    /// Adds the operation once more.
    fn add(&mut self, bytes: u32, cost: Result<PricedOperation, Lacking>) {
        self.count += 1;
        self.bytes += u64::from(bytes);
        let (Ok(all), Ok(one)) = (&mut self.cost, cost) else { return };
        all.warm_ns += one.warm_ns;
        all.cold_ns += one.cold_ns;
        all.remainder_ns += one.remainder_ns;
        for part in one.parts {
            match all
                .parts
                .iter_mut()
                .find(|of| (of.primitive, of.figure) == (part.primitive, part.figure))
            {
                Some(of) => {
                    of.calls = of.calls.saturating_add(part.calls);
                    of.bytes += part.bytes;
                    of.warm_ns += part.warm_ns;
                    of.cold_ns += part.cold_ns;
                }
                None => all.parts.push(part),
            }
        }
    }
}

impl PricedOperation {
    /// The share of what is priced by the instruction, from 0 to 1; `None` for an own figure.
    pub fn remainder_share(&self) -> Option<f64> {
        let counted = self.parts.iter().filter(|part| part.is_of_instructions());
        let all = self.remainder_ns + counted.map(|part| part.warm_ns).sum::<f64>();
        match self.source {
            CostSource::Own => None,
            _ if self.warm_ns > 0.0 => Some(all / self.warm_ns),
            _ => Some(0.0),
        }
    }
}
